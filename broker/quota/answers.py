"""The throttle time in an answer, whether it is a message or encoded already: by a thread, or by the controller."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache
from typing import Final, TypeVar, cast

from kquorum.wire.message_schema import Response, plan_of
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import EncodedBody, NoAnswer

_FIELD: Final = "throttle_time_ms"
_TIME: Final = struct.Struct(">i")

A = TypeVar("A", bound=Response | EncodedBody | NoAnswer | None)


@cache
def _begins_with_time(api_key: int, version: int) -> bool:
    """Nearly all answers do that have one; those that do not (Produce) are made as messages."""
    fields = plan_of(message_types(api_key)[1], version).fields
    return bool(fields) and fields[0].name == _FIELD


def throttle_time_of(answer: Response | EncodedBody | NoAnswer | None, api_key: int, version: int) -> int:
    """0 where the answer says nothing of it."""
    if isinstance(answer, Response):
        return cast(int, getattr(answer, _FIELD, 0))
    if (
        isinstance(answer, EncodedBody)
        and len(answer.data) >= _TIME.size
        and _begins_with_time(api_key, version)
    ):
        return cast(int, _TIME.unpack_from(answer.data)[0])
    return 0


def with_throttle_time(answer: A, api_key: int, version: int, throttle_ms: int) -> A:
    """The answer with this time, or the longer one that it has already."""
    if throttle_ms <= throttle_time_of(answer, api_key, version):
        return answer
    if isinstance(answer, Response) and hasattr(answer, _FIELD):
        return cast(A, replace(answer, **{_FIELD: throttle_ms}))  # type: ignore[type-var]
    if isinstance(answer, EncodedBody) and _begins_with_time(api_key, version):
        return cast(A, EncodedBody(_TIME.pack(throttle_ms) + answer.data[_TIME.size :]))
    return answer
