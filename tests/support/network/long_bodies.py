"""Requests with one array as long as wanted, each element another one, and everything else as small as can be.

An attacker chooses the array; every array of every API is tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kquorum.wire.codegen.kinds import FIXED
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.kio.classes import request_class
from tests.support.kio.frames import encode_request
from tests.support.kio.plans import plan_of

_INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint16": 16, "uint32": 32}


@dataclass(frozen=True)
class LongArray:
    """An array of one API's request, at the end of `path`; those on the way have one element each."""

    api_key: ApiKey
    version: int
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.api_key.name} v{self.version} {'.'.join(self.path)}"

    def request(self, count: int, correlation_id: int = 1) -> bytes:
        body = _struct(plan_of(request_class(self.api_key, self.version)), self.path, count, 0)
        return encode_request(self.api_key, self.version, correlation_id, "attacker", body)


def long_request(api_key: ApiKey, path: tuple[str, ...], count: int) -> bytes:
    """In the newest version."""
    return LongArray(api_key, supported_versions(api_key)[1], path).request(count)


def long_arrays(api_key: ApiKey, version: int) -> Iterator[LongArray]:
    for path in _paths(plan_of(request_class(api_key, version))):
        yield LongArray(api_key, version, path)


def _paths(plan: StructPlan) -> Iterator[tuple[str, ...]]:
    for field in plan.fields:
        if field.is_array:
            yield (field.name,)
        if field.nested is not None:
            for path in _paths(field.nested):
                yield (field.name, *path)


def _struct(plan: StructPlan, path: tuple[str, ...], count: int, number: int) -> Any:
    values = {field.name: _field(field, path, count, number) for field in plan.fields}
    return plan.cls(**values)


def _field(field: FieldPlan, path: tuple[str, ...], count: int, number: int) -> Any:
    rest = path[1:] if path and path[0] == field.name else None
    if field.is_array:
        if rest is None:
            return ()
        size = 1 if rest else count
        return tuple(_element(field, rest, count, each) for each in range(size))
    if field.nested is not None:
        return _struct(field.nested, rest or (), count, number)
    return _value(field, number)


def _element(field: FieldPlan, rest: tuple[str, ...], count: int, number: int) -> Any:
    if field.nested is not None:
        return _struct(field.nested, rest, count, number)
    return _value(field, number)


def _value(field: FieldPlan, number: int) -> Any:
    if field.kind == "string":
        return f"n{number}"
    if field.kind in ("uuid", "uuid_or_none"):
        return None if field.kind == "uuid_or_none" else UUID(int=number + 1)
    if field.name == "acks":
        return 1  # with 0 a Produce has no answer
    if field.kind in _INTEGERS:
        return number % (1 << _INTEGERS[field.kind])
    if field.kind == "error_code":
        return ErrorCode.none
    return b"" if field.kind == "bytes" else FIXED[field.kind].zero
