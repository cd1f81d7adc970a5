"""Write wire/messages from the classes of kio: `python -m tools.render_messages [TARGET]` (`make messages`).

kio has a class per message and version. What is written here is a class per message, with the fields of all versions:
see `wire.message_schema`. TARGET is the folder that stands for the root of the project. A test keeps the result fresh.
"""

import datetime as dt
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from kquorum.wire.protocol.api_keys import api_name
from tests.support.kio.known_fields import kafka_name
from tools.kio_extensions import extended

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = Path("wire/messages")

# Of the messages that are in other messages or in records, those that a node reads or writes; the control records of
# the metadata log are in `wire.control_records`.
DATA: Final = (
    "consumer_protocol_assignment",
    "consumer_protocol_subscription",
    "default_principal_data",
    "end_txn_marker",
)
# kio leaves Kafka's mark `ignorable` out. These fields of requests have it, and some version lacks them.
IGNORABLE: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(names.split())
    for name, names in {
        "ApiVersionsRequest": "client_software_name client_software_version",
        "BeginQuorumEpochRequest": "voter_id voter_directory_id leader_endpoints",
        "BrokerRegistrationRequest": "log_dirs previous_broker_epoch",
        "DeleteTopicsRequest": "topic_names",
        "EndQuorumEpochRequest": "preferred_successors preferred_candidates leader_endpoints",
        "FetchRequest": "cluster_id session_id session_epoch topic topic_id current_leader_epoch log_start_offset "
        "replica_directory_id high_watermark rack_id annotation",
        "FetchSnapshotRequest": "replica_directory_id",
        "JoinGroupRequest": "rebalance_timeout_ms reason",
        "LeaveGroupRequest": "reason",
        "ListOffsetsRequest": "current_leader_epoch timeout_ms",
        "MetadataRequest": "topic_id",
        "OffsetCommitRequest": "retention_time_ms name topic_id committed_leader_epoch",
        "OffsetFetchRequest": "OffsetFetchRequestGroup.member_id member_epoch OffsetFetchRequestTopics.name topic_id",
        "OffsetForLeaderEpochRequest": "replica_id",
        "ProduceRequest": "name topic_id",
        "ShareFetchRequest": "share_acquire_mode",
        "SyncGroupRequest": "protocol_type protocol_name",
        "TxnOffsetCommitRequest": "committed_leader_epoch",
        "VoteRequest": "voter_id replica_directory_id voter_directory_id",
        "WriteShareGroupStateRequest": "delivery_complete_count",
        "WriteTxnMarkersRequest": "transaction_version",
    }.items()
}
SECRET: Final = frozenset(("auth_bytes", "hmac", "salted_password"))

_KINDS: Final = {"timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}
_TYPES: Final = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "Records",
    "uuid": "UUID",
    "error_code": "ErrorCode",
}
_ZEROS: Final = {
    "bool": "False",
    "float64": "0.0",
    "string": '""',
    "bytes": 'b""',
    "records": 'b""',
    "uuid": "ZERO_UUID",
    "error_code": "ErrorCode.none",
}


@dataclass
class MergedField:
    """A field in all versions that have it."""

    name: str
    kind: str  # of Kafka's schemas, "struct" for structs
    is_array: bool
    tag: int | None
    default: object  # of the newest version; MISSING where kio has none
    nested: "MergedStruct | None" = None
    versions: list[int] = field(default_factory=list)
    nullable: list[int] = field(default_factory=list)


@dataclass
class MergedStruct:
    """A struct in all versions that have it, with its fields in the order of the wire."""

    name: str
    kio_name: str
    fields: dict[str, MergedField] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)
    is_default: bool = False  # of some field, so that it has to be frozen


@dataclass(frozen=True)
class MergedMessage:
    base: str  # "Request", "Response" or "Data"
    top: MergedStruct
    structs: tuple[MergedStruct, ...]  # without `top`; each after those that it holds
    flexible_since: int | None


def merged(base: str, classes: Mapping[int, type[Any]]) -> MergedMessage:
    """One message of the classes of its versions."""
    known: dict[str, MergedStruct] = {}
    for version in sorted(classes, reverse=True):
        _merge(classes[version], version, known)
    for struct in known.values():
        struct.versions.sort()
        for each in struct.fields.values():
            each.versions.sort()
            each.nullable.sort()
            assert each.versions == [v for v in struct.versions if each.versions[0] <= v <= each.versions[-1]]
    flexible = [version for version, cls in classes.items() if cls.__flexible__]
    top = known[classes[max(classes)].__name__]
    return MergedMessage(
        base=base,
        top=top,
        structs=tuple(_in_order(top)),
        flexible_since=min(flexible) if flexible else None,
    )


def _merge(cls: type[Any], version: int, known: dict[str, MergedStruct]) -> MergedStruct:
    """Versions come from the newest to the oldest."""
    struct = known.setdefault(cls.__name__, MergedStruct(cls.__name__, cls.__name__))
    if version in struct.versions:
        return struct
    struct.versions.append(version)
    previous: str | None = None
    for each in fields(cls):
        found = _field(each, version, known)
        mine = struct.fields.get(found.name)
        if mine is None:
            struct.fields = _with_field(struct.fields, found, after=previous)
            mine = found
        assert (mine.kind, mine.is_array, mine.tag, mine.nested) == (
            found.kind,
            found.is_array,
            found.tag,
            found.nested,
        ), f"{cls.__name__}.{found.name} changes its type between versions"
        assert mine.default == found.default, f"{cls.__name__}.{found.name} changes its default"
        if mine is not found:
            mine.versions += found.versions
            mine.nullable += found.nullable
        previous = found.name
    positional = [each.name for each in map(_named, fields(cls)) if each.tag is None]
    assert positional == [name for name in struct.fields if name in positional], f"{cls.__name__}: the order"
    return struct


@dataclass(frozen=True)
class _Named:
    name: str
    tag: int | None


def _named(each: "Field[Any]") -> _Named:
    return _Named(kafka_name(each.name, each.metadata.get("kafka_type", "")), each.metadata.get("tag"))


def _with_field(
    known: dict[str, MergedField], found: MergedField, after: str | None
) -> dict[str, MergedField]:
    items = list(known.items())
    place = 0 if after is None else [name for name, _ in items].index(after) + 1
    return dict([*items[:place], (found.name, found), *items[place:]])


def _field(each: "Field[Any]", version: int, known: dict[str, MergedStruct]) -> MergedField:
    inner, nullable = _without_none(each.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    nested = _merge(inner, version, known) if is_dataclass(inner) and isinstance(inner, type) else None
    kafka_type = "struct" if nested else each.metadata["kafka_type"]
    kind = _KINDS.get(kafka_type, kafka_type)
    # kio reads the zero uuid and the time -1 as None; here they are values.
    if kafka_type in ("uuid", "datetime_i64") and not is_array:
        nullable = False
    named = _named(each)
    if nested is not None and not is_array and each.default is not None:
        nested.is_default = True
    return MergedField(
        name=named.name,
        kind=kind,
        is_array=is_array,
        tag=None if named.tag is None else int(named.tag),
        default=_plain(each.default, kafka_type, is_array),
        nested=nested,
        versions=[version],
        nullable=[version] if nullable else [],
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (inner,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    return inner, True


def _plain(default: object, kafka_type: str, is_array: bool) -> object:
    if default == () or is_dataclass(default):
        return MISSING  # the same as without: structs have their fields' defaults
    if isinstance(default, dt.timedelta):
        return default // dt.timedelta(milliseconds=1)
    if default is None and not is_array:
        return {"datetime_i64": -1, "uuid": MISSING}.get(kafka_type)
    return int(default) if isinstance(default, int) and not isinstance(default, bool | ErrorCode) else default


def _in_order(struct: MergedStruct) -> Iterator[MergedStruct]:
    seen: list[MergedStruct] = []

    def visit(each: MergedStruct) -> None:
        for member in each.fields.values():
            if member.nested is not None and not any(member.nested is other for other in seen):
                visit(member.nested)
                seen.append(member.nested)

    visit(struct)
    return iter(seen)


# Source


def module_text(title: str, messages: Sequence[MergedMessage], api_key: int | None) -> str:
    """One module; `ruff format` makes it neat."""
    _name_apart(messages)
    body: list[str] = []
    names = {message.base for message in messages} | {"kafka", "message"}
    for message in messages:
        for struct in message.structs:
            decorator = "frozen_struct" if struct.is_default else "struct"
            names |= {"Struct", decorator}
            body += _struct_lines(struct, message, [f"@{decorator}"], "Struct")
        lowest, highest = message.top.versions[0], message.top.versions[-1]
        key = "" if api_key is None else f", api_key={api_key}"
        base = message.base
        if base == "Request":
            key += f", response={messages[0].top.name}"
            base = f"Request[{messages[0].top.name}]"
        decorator = f"@message(versions=({lowest}, {highest}), flexible_since={message.flexible_since}{key})"
        body += _struct_lines(message.top, message, [decorator], base)
    text = "\n".join(body)
    lowest, highest = messages[0].top.versions[0], messages[0].top.versions[-1]
    versions = f"version {lowest}" if lowest == highest else f"versions {lowest} to {highest}"
    head = [f'"""{title}, {versions}. Written by `make messages`; do not edit."""', ""]
    if "UUID" in text.replace("ZERO_UUID", ""):
        head += ["from uuid import UUID", ""]
    names |= {"Records"} if re.search(r"\bRecords\b", text) else set()
    head.append(f"from kquorum.wire.message_schema import {', '.join(sorted(names, key=_import_order))}")
    if "ErrorCode" in text:
        head.append("from kquorum.wire.messages.error_codes import ErrorCode")
    if "ZERO_UUID" in text:
        head.append("from kquorum.wire.uuids import ZERO_UUID")
    return "\n".join([*head, "", "", text]) + "\n"


def _import_order(name: str) -> tuple[bool, str]:
    return name[0].islower(), name


def _name_apart(messages: Sequence[MergedMessage]) -> None:
    """Structs of one name in both directions get the direction before it."""
    names = [struct.name for message in messages for struct in (*message.structs, message.top)]
    for message in messages:
        for struct in message.structs:
            if names.count(struct.kio_name) > 1:
                struct.name = f"{message.base}{struct.kio_name}"


def _struct_lines(
    struct: MergedStruct, message: MergedMessage, decorators: list[str], base: str
) -> list[str]:
    lines = [*decorators, f"class {struct.name}({base}):"]
    lines += [f"    {_field_line(each, struct, message)}" for each in struct.fields.values()]
    if not struct.fields:
        lines.append("    __slots__ = ()")
    return [*lines, "", ""]


def _field_line(each: MergedField, struct: MergedStruct, message: MergedMessage) -> str:
    inner = each.nested.name if each.nested else _TYPES.get(each.kind, "int")
    annotation = f"tuple[{inner}, ...]" if each.is_array else inner
    if each.nullable:
        annotation += " | None"
    if each.nested:
        kind = f"[{inner}]" if each.is_array else inner
    else:
        kind = f'"[]{each.kind}"' if each.is_array else f'"{each.kind}"'
    arguments = [kind, _default_text(each, inner)]
    lowest, highest = struct.versions[0], struct.versions[-1]
    if each.versions[0] != lowest:
        arguments.append(f"since={each.versions[0]}")
    if each.versions[-1] != highest:
        arguments.append(f"until={each.versions[-1]}")
    if each.nullable:
        is_always = each.nullable[0] == each.versions[0]
        arguments.append("nullable=True" if is_always else f"nullable_since={each.nullable[0]}")
    if each.tag is not None:
        arguments.append(f"tag={each.tag}")
    is_partial = each.versions[0] != lowest or each.versions[-1] != highest
    ignorable = IGNORABLE.get(message.top.name, frozenset())
    if is_partial and (each.name in ignorable or f"{struct.kio_name}.{each.name}" in ignorable):
        arguments.append("is_ignorable=True")
    if each.name in SECRET:
        arguments.append("is_secret=True")
    return f"{each.name}: {annotation} = kafka({', '.join(arguments)})"


def _default_text(each: MergedField, inner: str) -> str:
    default = each.default
    if each.is_array:
        return "default=None" if default is None else "default=()"
    if each.nested is not None:
        return "default=None" if default is None else f"default={inner}()"
    if default is MISSING:
        return f"default={_ZEROS.get(each.kind, '0')}"
    if isinstance(default, ErrorCode):
        return f"default=ErrorCode.{default.name}"
    return f"default={default!r}".replace("''", '""')


def modules() -> dict[str, str]:
    """The text of each module by its name, before it is formatted."""
    found: dict[str, str] = {}
    for api_key, name in sorted(api_key_map.items()):
        pair = [
            merged(base, {version: _kio_class(api_key, version, kind) for version in schema_name_map[name]})
            for base, kind in (("Response", EntityType.response), ("Request", EntityType.request))
        ]
        found[name] = module_text(f"{api_name(api_key)} ({api_key})", pair, api_key)
    for name in DATA:
        classes = {version: _data_class(name, version) for version in _data_versions(name)}
        found[name] = module_text(classes[max(classes)].__name__, [merged("Data", classes)], None)
    found["index"] = _index_text()
    found["error_codes"] = _error_codes_text()
    return found


def _kio_class(api_key: int, version: int, kind: Any) -> type[Any]:
    module, _, name = schema_name_map[api_key_map[api_key]][version][kind].partition(":")
    return extended(api_key, version, kind, getattr(import_module(module), name))


def _data_versions(name: str) -> list[int]:
    package = import_module(f"kio.schema.{name}")
    return sorted(int(path.name[1:]) for path in Path(package.__path__[0]).glob("v[0-9]*"))


def _data_class(name: str, version: int) -> type[Any]:
    module = import_module(f"kio.schema.{name}.v{version}.data")
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and getattr(value, "__type__", None) is EntityType.data
    )
    return found


def _index_text() -> str:
    lines = [
        '"""The messages of each API by its key. Written by `make messages`; do not edit."""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final, NamedTuple",
        "",
        "",
        "class ApiMessages(NamedTuple):",
        '    """Names of the module and the classes, lowest and highest version, first flexible version."""',
        "",
        "    module: str",
        "    request: str",
        "    response: str",
        "    versions: tuple[int, int]",
        "    flexible_since: int | None",
        "",
        "",
        "MESSAGES: Final[Mapping[int, ApiMessages]] = {",
    ]
    for key, name in sorted(api_key_map.items()):
        versions = schema_name_map[name]
        newest = versions[max(versions)]
        classes = [newest[kind].partition(":")[2] for kind in (EntityType.request, EntityType.response)]
        flexible = [v for v in versions if _kio_class(key, v, EntityType.request).__flexible__]
        since = min(flexible) if flexible else None
        arguments = f'"{name}", "{classes[0]}", "{classes[1]}", ({min(versions)}, {max(versions)}), {since}'
        lines.append(f"    {key}: ApiMessages({arguments}),")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _error_codes_text() -> str:
    """kio's enum is not imported by the product: it takes kio's types along, which are slow to import."""
    lines = [
        '"""The error codes of Kafka\'s protocol. Written by `make messages`; do not edit."""',
        "",
        "from enum import IntEnum",
        "",
        "",
        "class ErrorCode(IntEnum):",
        '    """In lower case, as Kafka names them."""',
        "",
    ]
    lines += [f"    {code.name} = {int(code)}" for code in ErrorCode]
    return "\n".join(lines) + "\n"


def render(target: Path) -> tuple[Path, ...]:
    """Write the modules beneath `target`; answers their paths relative to it."""
    folder = target / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in modules().items():
        (folder / f"{name}.py").write_text(text)
        written.append(FOLDER / f"{name}.py")
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff) if ruff.exists() else shutil.which("ruff") or "ruff"]
    for step in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        paths = [str(target / path) for path in written]
        subprocess.run([*command, *step, "--config", str(ROOT / "pyproject.toml"), *paths], check=True)
    return tuple(written)


def main(arguments: Sequence[str]) -> int:
    written = render(Path(arguments[0]) if arguments else ROOT)
    for path in set((ROOT / FOLDER).glob("*.py")) - {ROOT / each for each in written}:
        if path.name != "__init__.py" and not arguments:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
