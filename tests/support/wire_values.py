"""Values for any message the codec knows, made from its plan: by Hypothesis, or the least and the fullest one."""

import datetime as dt
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from kquorum.wire.codegen.kinds import FIXED
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.codegen.runtime import MOST_COPIED
from kquorum.wire.messages.error_codes import ErrorCode

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SAMPLE_UUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
UNKNOWN_TAGS = range(20, 40000)


def _integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


def _milliseconds(largest: int) -> st.SearchStrategy[dt.timedelta]:
    return st.integers(-largest, largest).map(lambda ms: dt.timedelta(milliseconds=ms))


# From 1970 until 2096: kio reads no timestamp below 0, and, as it computes in floats, some of the far future (such as
# 9999999999998 ms) a microsecond off.
_INSTANTS = st.integers(0, 4_000_000_000_000).map(lambda ms: EPOCH + dt.timedelta(milliseconds=ms))
_TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "int32": _integers(32),
    "int64": _integers(64),
    "uint8": _integers(8, signed=False),
    "uint16": _integers(16, signed=False),
    "uint32": _integers(32, signed=False),
    "uint64": _integers(64, signed=False),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "uuid_or_none": st.none() | st.uuids(),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": _milliseconds(2**31 - 1),
    "timedelta_i64": _milliseconds(10**12),
    "datetime_i64": _INSTANTS,
    "datetime_or_none": st.none() | _INSTANTS,
    "string": _TEXT,
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200).map(lambda data: data + bytes(MOST_COPIED * (len(data) % 2))),
}
_SAMPLES: dict[str, Any] = {
    "bool": True,
    "float64": -2.5,
    "uuid": SAMPLE_UUID,
    "uuid_or_none": SAMPLE_UUID,
    "error_code": ErrorCode.not_controller,
    "timedelta_i32": dt.timedelta(milliseconds=1234567),
    "timedelta_i64": dt.timedelta(days=40, milliseconds=7),
    "datetime_i64": EPOCH + dt.timedelta(milliseconds=1_700_000_000_123),
    "datetime_or_none": EPOCH + dt.timedelta(milliseconds=1_700_000_000_123),
    "string": "größer",
    "bytes": bytes(range(200)),
    "records": bytes(range(250)) * 12,
}


def entities(plan: StructPlan) -> st.SearchStrategy[Any]:
    """Any value of the plan's class that its version can carry."""
    arguments = {field.name: _field_values(field) for field in plan.fields}
    if plan.keeps_unknown_tags:
        arguments["unknown_tagged_fields"] = _unknown_tagged_fields()
    return st.builds(plan.cls, **arguments)


def _field_values(field: FieldPlan) -> st.SearchStrategy[Any]:
    values = entities(field.nested) if field.nested else STRATEGIES[field.kind]
    if field.is_array:
        values = st.lists(values, max_size=3).map(tuple)
    return st.none() | values if field.nullable else values


def _unknown_tagged_fields() -> st.SearchStrategy[tuple[tuple[int, bytes], ...]]:
    fields = st.dictionaries(st.sampled_from(UNKNOWN_TAGS), st.binary(max_size=150), max_size=2)
    return fields.map(lambda found: tuple(sorted(found.items())))


def least(plan: StructPlan) -> Any:
    """Zeros, empty texts and arrays, nulls where they are lawful."""
    return plan.cls(**{field.name: _least_value(field) for field in plan.fields})


def _least_value(field: FieldPlan) -> Any:
    if field.nullable:
        return None
    if field.is_array:
        return ()
    if field.nested:
        return least(field.nested)
    if field.kind == "error_code":
        return ErrorCode.none
    return (
        FIXED[field.kind].zero
        if field.kind in FIXED
        else {"string": "", "bytes": b"", "records": b""}[field.kind]
    )


def fullest(plan: StructPlan) -> Any:
    """Nothing null, nothing at its default, two elements in every array."""
    return plan.cls(**{field.name: _fullest_value(field) for field in plan.fields})


def _fullest_value(field: FieldPlan) -> Any:
    value = fullest(field.nested) if field.nested else _SAMPLES.get(field.kind, 101)
    return (value, value) if field.is_array else value
