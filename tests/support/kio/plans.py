"""Plans of kio's request, response, header and data classes, from the metadata that their fields carry.

kio has one class per message and version. Its uuids are None when all bytes are zero, its nullable timestamps
are None when they are -1, and tagged fields without a declared default have the zero of their type.
"""

from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from kquorum.wire.codegen.kinds import FIXED, error_code_of
from kquorum.wire.codegen.plan import FieldPlan, StructPlan

_KIND_OF_NULLABLE = {"datetime_i64": "datetime_or_none"}


def plan_of(cls: Any) -> StructPlan:
    """The plan of a kio entity class."""
    return StructPlan(
        cls=cls,
        version=int(cls.__version__),
        flexible=cls.__flexible__,
        fields=tuple(_field_plan(cls, field) for field in fields(cls)),
    )


def _field_plan(cls: type, field: Field[Any]) -> FieldPlan:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    nested = plan_of(inner) if is_dataclass(inner) else None
    kind = "struct" if nested else _kind(field.metadata["kafka_type"], nullable and not is_array)
    tag = field.metadata.get("tag")
    assert tag is None or not (nested and nullable), (
        f"{field.name}: a nullable tagged struct is not supported"
    )
    return FieldPlan(
        name=field.name,
        kind=kind,
        is_array=is_array,
        nullable=nullable and (is_array or kind not in FIXED),
        tag=None if tag is None else int(tag),
        default=None if tag is None else _default(field, kind, nested),
        nested=nested,
        # Kafka keeps the old coding of this one field, so that any broker can read any request's header.
        legacy=cls.__name__ == "RequestHeader" and field.name == "client_id",
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (inner,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    return inner, True


def _kind(kafka_type: str, nullable: bool) -> str:
    if kafka_type == "uuid":
        return "uuid_or_none"
    if kafka_type == "records":
        return "bytes"
    return _KIND_OF_NULLABLE.get(kafka_type, kafka_type) if nullable else kafka_type


def _default(field: Field[Any], kind: str, nested: StructPlan | None) -> object:
    if field.default is not MISSING:
        return field.default
    if nested is not None:
        return _zero_struct(nested)
    if kind == "error_code":
        return error_code_of(0)
    return FIXED[kind].zero if kind in FIXED else {"string": "", "bytes": b""}[kind]


def _zero_struct(plan: StructPlan) -> object:
    declared = {field.name: field for field in fields(plan.cls)}
    return plan.cls(
        **{field.name: _default(declared[field.name], field.kind, field.nested) for field in plan.fields}
    )
