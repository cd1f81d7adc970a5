"""Declares metadata records and control records: one frozen class per record, for all its versions.

    @metadata_record(api_key=2, versions=(0, 0))
    class TopicRecord(MetadataRecord):
        name: str = kafka("string")
        topic_id: UUID = kafka("uuid")

Fields are declared in wire order. All these messages are flexible (KIP-482): a field with a `tag` is written
only where it differs from its default. Tagged fields that a class does not know are kept in
`unknown_tagged_fields` and written back (`keeps_unknown_tags` of `plan_of`), so that decoding and encoding again loses
nothing. To add a field in a new version, declare it with `since` and raise the higher end of `versions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Final, TypeVar, dataclass_transform

from kquorum.wire.codegen.compiler import Codec, compile_codec
from kquorum.wire.codegen.kinds import FIXED
from kquorum.wire.codegen.plan import FieldPlan, StructPlan

_METADATA_KEY: Final = "kafka"
_EMPTY: Final[Mapping[str, object]] = {"string": "", "bytes": b""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """The base of every record and of every struct in a record: it keeps unknown tagged fields, by ascending tag."""

    unknown_tagged_fields: tuple[tuple[int, bytes], ...] = ()


class MetadataRecord(Struct):
    """A record of the metadata log. `versions` are the lowest and the highest known."""

    __slots__ = ()
    api_key: ClassVar[int]
    versions: ClassVar[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Declaration:
    kind: str
    struct: type[Struct] | None
    is_array: bool
    nullable: bool
    since: int
    tag: int | None
    default: object


def kafka(
    kind: str | type[Struct] | list[type[Struct]],
    *,
    default: Any = MISSING,
    since: int = 0,
    tag: int | None = None,
    nullable: bool = False,
    is_secret: bool = False,
) -> Any:
    """Declare a field.

    `kind` is a name of Kafka's schemas ("int32", "[]uuid", "string"), a struct class, or a list of one struct
    class for an array of it. `since` is the first version with the field; older versions read it as its
    default (the zero of its kind unless given) and refuse to write any other value. A field without `default`
    must be given by name. A field that `is_secret` is left out of the repr, because errors and logs print the repr.
    """
    struct = kind[0] if isinstance(kind, list) else None if isinstance(kind, str) else kind
    name = kind.removeprefix("[]") if isinstance(kind, str) else "struct"
    is_array = isinstance(kind, list) or (isinstance(kind, str) and kind.startswith("[]"))
    zero = _zero(name, is_array) if default is MISSING else default
    declaration = _Declaration(name, struct, is_array, nullable, since, tag, zero)
    return field(default=default, metadata={_METADATA_KEY: declaration}, repr=not is_secret)


S = TypeVar("S", bound=Struct)
R = TypeVar("R", bound=MetadataRecord)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(kafka,))
def struct(cls: type[S]) -> type[S]:
    """Make a frozen dataclass of a struct, which follows the version of the record that holds it."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(kafka,))
def metadata_record(*, api_key: int, versions: tuple[int, int]) -> Callable[[type[R]], type[R]]:
    """Make a frozen dataclass of a metadata record with its type number and its lowest and highest version."""

    def make(cls: type[R]) -> type[R]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        made.api_key = api_key
        made.versions = versions
        return made

    return make


_CODECS: Final[dict[tuple[type[Struct], int], Codec]] = {}


def codec_of(cls: type[Struct], version: int) -> Codec:
    """The compiled codec of a record or struct class at one version."""
    codec = _CODECS.get((cls, version))
    if codec is None:
        codec = _CODECS[cls, version] = compile_codec(plan_of(cls, version))
    return codec


def plan_of(cls: type[Struct], version: int) -> StructPlan:
    """The fields of a record or struct class as they are at `version`."""
    declared = {item.name: item.metadata[_METADATA_KEY] for item in fields(cls) if item.metadata}
    present = {name: it for name, it in declared.items() if version >= it.since}
    absent = {name: it for name, it in declared.items() if version < it.since}
    return StructPlan(
        cls=cls,
        version=version,
        flexible=True,
        fields=tuple(_field_plan(name, it, version) for name, it in present.items()),
        absent=tuple((name, it.default) for name, it in absent.items()),
        forbidden_tags=tuple(it.tag for it in absent.values() if it.tag is not None),
        keeps_unknown_tags=True,
    )


def _field_plan(name: str, declaration: _Declaration, version: int) -> FieldPlan:
    return FieldPlan(
        name=name,
        kind=declaration.kind,
        is_array=declaration.is_array,
        nullable=declaration.nullable,
        tag=declaration.tag,
        default=declaration.default,
        nested=None if declaration.struct is None else plan_of(declaration.struct, version),
    )


def _zero(kind: str, is_array: bool) -> object:
    if is_array:
        return ()
    return FIXED[kind].zero if kind in FIXED else _EMPTY.get(kind)
