"""What a coordinator writes, and which error its clients hear when the log refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kquorum.wire.messages.error_codes import ErrorCode

KeyValue = tuple[bytes, bytes | None]
Done = Callable[[ErrorCode], None]

_MAPPED: Final = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
    ErrorCode.invalid_fetch_size: ErrorCode.unknown_server_error,
}


def answer_of(error: ErrorCode) -> ErrorCode:
    """The error for clients that an error of the log becomes (rules G2.20 to G2.25)."""
    return _MAPPED.get(error, error)
