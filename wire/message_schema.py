"""Declares Kafka's messages: one class per struct for all versions of its message.

    @message(api_key=60, versions=(0, 2), flexible_since=0)
    class DescribeClusterRequest(Request):
        include_cluster_authorized_operations: bool = kafka("bool", default=False)
        endpoint_type: int = kafka("int8", default=1, since=1)

The classes are in `wire.messages`, generated; `wire.message_codec` reads and writes them. Fields are declared in wire
order. They have the defaults of Kafka's schemas, so a message is made from the fields that matter; "no id" is the zero
UUID, and record batches are empty bytes. Messages are mutable, because a frozen dataclass takes three times as long to
make. Arrays are tuples, so that defaults can be shared. Do not change a message that other code may hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Generic, TypeVar, cast, dataclass_transform

from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.errors import UnsupportedVersion

__all__ = (
    "ByVersion",
    "Data",
    "Message",
    "Records",
    "Request",
    "Response",
    "Struct",
    "kafka",
    "message",
    "plan_of",
    "response_type_of",
    "struct",
)

# A decoded field of record batches is a view of the buffer that the message was read from, so it is not copied; it
# keeps that buffer in memory.
Records = bytes | memoryview

_METADATA_KEY: Final = "kafka"


class Struct:
    """What is inside of a message; it follows the version of the message that holds it."""

    __slots__ = ()

    def __init__(self, **values: object) -> None:
        """Of the first instance of a class only, which makes the class its own: most of the some thousand classes are
        never instantiated in a process, and to make their functions at import would take a sixth of a node's start."""
        cls = type(self)
        # The class itself has one by then if two threads make the first instance.
        if "__init__" not in vars(cls):
            cls.__init__ = _init_of(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _names_of(type(self)))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({', '.join(shown)})"


class Message(Struct):
    """A whole message. `versions` are the lowest and the highest known, `flexible_since` is the first version with
    compact lengths and tagged fields (KIP-482), None if no version has them."""

    __slots__ = ()
    versions: ClassVar[tuple[int, int]]
    flexible_since: ClassVar[int | None]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.flexible_since is not None and version >= cls.flexible_since


class Response(Message):
    """Fields that the version lacks are left out without an error: a handler answers with the fields of the newest
    version."""

    __slots__ = ()
    api_key: ClassVar[int]


R = TypeVar("R", bound=Response)
R_co = TypeVar("R_co", bound=Response, covariant=True)


class Request(Message, Generic[R_co]):
    """A request that is answered with `R_co`.

    To encode one raises UnsupportedVersion if a field is set that the version lacks, unless Kafka's schema marks the
    field as ignorable: what the peer does not read would change the meaning."""

    __slots__ = ()
    api_key: ClassVar[int]
    response_type: ClassVar[type[Response]]


class Data(Message):
    """A message that stands inside of another one, or in a record, behind its version as an int16."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Declaration:
    kind: str
    struct: type[Struct] | None
    is_array: bool
    since: int | None
    until: int | None
    nullable_since: int | None
    tag: int | None
    default: object
    is_ignorable: bool

    def is_in(self, version: int) -> bool:
        return (self.since is None or self.since <= version) and (self.until is None or version <= self.until)

    def is_nullable(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since


def kafka(
    kind: str | type[Struct] | list[type[Struct]],
    *,
    default: Any,
    since: int | None = None,
    until: int | None = None,
    nullable: bool = False,
    nullable_since: int | None = None,
    tag: int | None = None,
    is_ignorable: bool = False,
    is_secret: bool = False,
) -> Any:
    """Declare a field.

    `kind` is a name of Kafka's schemas ("int32", "[]uuid", "string"), a struct class, or a list of one struct class for
    an array of it. `since` and `until` are the first and the last version with the field; None is the message's own.
    `nullable_since` is the first version in which it may be null. An ignorable field of a request is left out where the
    version lacks it. A secret field stays out of the repr, which stands in errors and logs.
    """
    nested = kind[0] if isinstance(kind, list) else None if isinstance(kind, str) else kind
    declaration = _Declaration(
        kind=kind.removeprefix("[]") if isinstance(kind, str) else "struct",
        struct=nested,
        is_array=isinstance(kind, list) or (isinstance(kind, str) and kind.startswith("[]")),
        since=since,
        until=until,
        nullable_since=0 if nullable else nullable_since,
        tag=tag,
        default=default,
        is_ignorable=is_ignorable,
    )
    return field(default=default, metadata={_METADATA_KEY: declaration}, repr=not is_secret)


S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)


def _made(cls: type[S]) -> type[S]:
    # A dataclass without a docstring gets its signature as one, which takes longer than all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    return dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False)(cls)


def _init_of(cls: type[Struct]) -> Callable[..., None]:
    """What `dataclass` would make."""
    names = _names_of(cls)
    arguments = "".join(f", {name}=_{name}" for name in names)
    lines = [f"def __init__(self{', *' if names else ''}{arguments}):"]
    lines += [f"  self.{name} = {name}" for name in names] or ["  pass"]
    defaults = {f"_{item.name}": item.default for item in fields(cls)}  # type: ignore[arg-type]
    exec("\n".join(lines), defaults)  # noqa: S102 - of the names of declared fields
    return cast(Callable[..., None], defaults["__init__"])


def _names_of(cls: type[Struct]) -> tuple[str, ...]:
    return tuple(item.name for item in fields(cls))  # type: ignore[arg-type]


@dataclass_transform(kw_only_default=True, field_specifiers=(kafka,))
def struct(cls: type[S]) -> type[S]:
    """Make a dataclass of a struct."""
    return _made(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(kafka,))
def frozen_struct(cls: type[S]) -> type[S]:
    """Make a dataclass of a struct that is the default of a field: all messages share that default."""
    return dataclass(slots=True, kw_only=True, frozen=True)(cls)


@dataclass_transform(kw_only_default=True, field_specifiers=(kafka,))
def message(
    *,
    versions: tuple[int, int],
    flexible_since: int | None,
    api_key: int | None = None,
    response: type[Response] | None = None,
) -> Callable[[type[M]], type[M]]:
    """Make a dataclass of a message; all but Data have an API key, and a request has a response."""

    def make(cls: type[M]) -> type[M]:
        made = _made(cls)
        made.versions = versions
        made.flexible_since = flexible_since
        if api_key is not None:
            made.api_key = api_key  # type: ignore[attr-defined]
        if response is not None:
            made.response_type = response  # type: ignore[attr-defined]
        return made

    return make


@dataclass(frozen=True, slots=True)
class ByVersion(Generic[R]):
    """A request that has other fields in other versions: `make` makes it for the version that both sides know."""

    type: type[Request[R]]
    make: Callable[[int], Request[R]]

    @property
    def api_key(self) -> int:
        return self.type.api_key


def response_type_of(cls: type[Request[R]]) -> type[R]:
    """The class of the answers to requests of `cls`."""
    return cast(type[R], cls.response_type)


def plan_of(cls: type[Message], version: int) -> StructPlan:
    """The fields of a message as they are at `version`. Raises UnsupportedVersion."""
    lowest, highest = cls.versions
    if not lowest <= version <= highest:
        raise UnsupportedVersion(
            f"version {version} of {cls.__name__} is not known; versions {lowest} to {highest} are"
        )
    return _struct_plan(cls, version, cls.is_flexible(version), issubclass(cls, Request))


def _struct_plan(cls: type[Struct], version: int, is_flexible: bool, is_request: bool) -> StructPlan:
    declared: dict[str, _Declaration] = {
        item.name: item.metadata[_METADATA_KEY]
        for item in fields(cls)  # type: ignore[arg-type]
    }
    absent = {name: it for name, it in declared.items() if not it.is_in(version)}
    return StructPlan(
        cls=cls,
        version=version,
        flexible=is_flexible,
        fields=tuple(
            FieldPlan(
                name=name,
                kind=it.kind,
                is_array=it.is_array,
                nullable=it.is_nullable(version),
                tag=it.tag,
                default=it.default,
                nested=None
                if it.struct is None
                else _struct_plan(it.struct, version, is_flexible, is_request),
            )
            for name, it in declared.items()
            if it.is_in(version)
        ),
        absent=tuple((name, it.default) for name, it in absent.items()),
        refused=frozenset(name for name, it in absent.items() if is_request and not it.is_ignorable),
    )
