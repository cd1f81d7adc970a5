"""Entities of any version from one plain mapping.

A handler answers once, with the fields of the newest version; `build` makes of that the class of the version
which the peer asked for. Names are Kafka's in snake case. Where kio keeps a duration or a point in time as an
object, the plain value is an int of milliseconds, under kio's name (`throttle_time`) or Kafka's
(`throttle_time_ms`).
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, overload
from uuid import UUID

from kquorum.wire import message_codec
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.kio.known_fields import is_field_of_another_version, kafka_name

Entity = TypeVar("Entity")
_Convert = Callable[[Any], object]

_ZERO_UUID = UUID(int=0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_DURATION = timedelta(0)


@overload
def build(cls: type[Entity], values: Mapping[str, object]) -> Entity: ...
@overload
def build(cls: type[Any], values: Mapping[str, object] | Response) -> Any: ...
def build(cls: type[Any], values: Mapping[str, object] | Response) -> Any:
    """An entity of `cls` from a superset of its fields: mappings for structs, any iterable for arrays.

    Fields that only other versions have are dropped. Int milliseconds become durations and points in time (-1
    is None where a point in time may lack), the zero UUID becomes None, ints become error codes; values which
    are of kio's types already pass. A missing `throttle_time` is 0. Raises TypeError for any other missing
    field which has no default, and for a name which no version of the struct knows: both are bugs of the
    caller.

    A handler that answers with a message of `wire.messages` needs none of this: its answer is encoded in the version of
    `cls`.
    """
    if isinstance(values, Response):
        return EncodedBody(message_codec.encode(values, cls.__version__))
    plan = _PLANS.get(cls) or _struct_plan(cls)
    arguments: dict[str, object] = {}
    for field in plan.fields:
        value = values.get(field.name, MISSING)
        if value is MISSING:
            value = values.get(field.kafka_name, field.absent)
            if value is MISSING:
                continue
        arguments[field.name] = value if field.convert is None else field.convert(value)
    # Names first: a misspelt one is also why a value is missing.
    if not values.keys() <= plan.names:
        _check_names(cls, values.keys() - plan.names)
    if not plan.required <= arguments.keys():
        _refuse_missing(cls, plan, arguments)
    return cls(**arguments)


@dataclass(frozen=True, slots=True)
class _FieldPlan:
    name: str
    kafka_name: str
    required: bool
    absent: object  # what a missing value stands for; MISSING leaves it to the class
    convert: _Convert | None


@dataclass(frozen=True, slots=True)
class _StructPlan:
    fields: tuple[_FieldPlan, ...]
    names: frozenset[str]
    required: frozenset[str]


def _refuse_missing(cls: type[object], plan: _StructPlan, arguments: Mapping[str, object]) -> NoReturn:
    missing = ", ".join(sorted(plan.required - arguments.keys()))
    raise TypeError(f"{cls.__name__} version {getattr(cls, '__version__', '?')} lacks a value for {missing}")


def _check_names(cls: type[object], names: set[str]) -> None:
    for name in sorted(names):
        if not is_field_of_another_version(cls.__module__, cls.__name__, name):
            raise TypeError(f"no version of {cls.__name__} has a field {name!r}")


_PLANS: dict[Any, _StructPlan] = {}


def _struct_plan(cls: Any) -> _StructPlan:
    assert is_dataclass(cls), f"{cls!r} is not an entity class"
    plans = tuple(_field_plan(field) for field in fields(cls))
    plan = _PLANS[cls] = _StructPlan(
        fields=plans,
        names=frozenset(name for plan in plans for name in (plan.name, plan.kafka_name)),
        required=frozenset(plan.name for plan in plans if plan.required),
    )
    return plan


def _field_plan(field: "Field[Any]") -> _FieldPlan:
    kafka_type = field.metadata.get("kafka_type", "")
    implicit = _NO_DURATION if field.name == "throttle_time" else MISSING
    return _FieldPlan(
        name=field.name,
        kafka_name=kafka_name(field.name, kafka_type),
        required=field.default is MISSING and implicit is MISSING,
        absent=implicit,
        convert=_converter(field.type, kafka_type),
    )


def _converter(annotation: object, kafka_type: str) -> _Convert | None:
    """None where the plain value is kio's value."""
    if get_origin(annotation) is UnionType:
        (inner,) = (part for part in get_args(annotation) if part is not NoneType)
        return _or_none(_converter(inner, kafka_type))
    if get_origin(annotation) is tuple:
        return _each(_converter(get_args(annotation)[0], kafka_type))
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _struct(annotation)
    if kafka_type == "error_code":
        return ErrorCode
    return _CONVERTERS.get(kafka_type)


def _or_none(convert: _Convert | None) -> _Convert | None:
    if convert is None or convert in (_to_datetime, _to_uuid):
        return convert
    return lambda value: None if value is None else convert(value)


def _each(convert: _Convert | None) -> _Convert:
    return tuple if convert is None else lambda values: tuple(map(convert, values))


def _struct(cls: type[object]) -> _Convert:
    return lambda value: value if isinstance(value, cls) else build(cls, value)


def _to_timedelta(value: int | timedelta) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(milliseconds=value)


def _to_datetime(value: int | datetime | None) -> datetime | None:
    """From epoch milliseconds by integer arithmetic: a float of seconds would move some of them by one."""
    if isinstance(value, int):
        return None if value < 0 else _EPOCH + timedelta(milliseconds=value)
    return value


def _to_uuid(value: UUID | None) -> UUID | None:
    return None if value == _ZERO_UUID else value


_CONVERTERS: Mapping[str, _Convert] = {
    "timedelta_i32": _to_timedelta,
    "timedelta_i64": _to_timedelta,
    "datetime_i64": _to_datetime,
    "uuid": _to_uuid,
}
