"""Writes the records of one partition of `__consumer_offsets` and answers when they are committed (rules G2.7 to
G2.25).

An answer waits for the high watermark, so none tells of what a new leader may not have. An operation without records
waits for the records written before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.replica.partition import Partition
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import write_data_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_parsing import Record

KeyValue = tuple[bytes, bytes | None]
Done = Callable[[ErrorCode], None]
Replay = Callable[[int, bytes, bytes | None], None]
_LEADER_DOES_NOT_WAIT: Final = 1

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
    """The error for members that an error of the log becomes (rules G2.20 to G2.25)."""
    return _MAPPED.get(error, error)


@dataclass(slots=True)
class _Waiting:
    required_offset: int
    deadline_ms: int
    done: Done


class GroupLog:
    """`replay` gets each record of a write, with its offset, before the records are committed; `commit_to` the high
    watermark, before those are answered that waited for it."""

    def __init__(self, partition: Partition, replay: Replay, commit_to: Callable[[int], None]) -> None:
        self._partition = partition
        self._replay = replay
        self._commit_to = commit_to
        self._waiting: deque[_Waiting] = deque()
        self._last_written = 0

    def write(
        self,
        now_ms: int,
        records: Sequence[KeyValue],
        done: Done,
        *,
        timeout_ms: int,
        codec: int = 0,
        is_replayed: bool = True,
    ) -> bool:
        """One batch. `done` is called once: now if the log refuses it, in which case nothing changed. Returns whether
        the log took it."""
        if not records:
            self.after_writes(now_ms, done, timeout_ms=timeout_ms)
            return True
        batch = write_data_batch(
            [Record(at, now_ms, key, value) for at, (key, value) in enumerate(records)],
            codec=CompressionCodec(codec),
        )
        try:
            appended = self._partition.append(
                now_ms, batch, required_acks=_LEADER_DOES_NOT_WAIT, origin=AppendOrigin.COORDINATOR
            )
        except LogError as error:
            done(answer_of(type(error).error_code))
            return False
        self._last_written = appended.required_offset
        if is_replayed:
            for offset, (key, value) in enumerate(records, appended.batches.first_offset):
                self._replay(offset, key, value)
        self._waiting.append(_Waiting(appended.required_offset, now_ms + timeout_ms, done))
        self.advance()
        return True

    def after_writes(self, now_ms: int, done: Done, *, timeout_ms: int) -> None:
        """When all that is written is committed; now if it is."""
        if self._partition.log.high_watermark >= self._last_written:
            done(ErrorCode.none)
            return
        self._waiting.append(_Waiting(self._last_written, now_ms + timeout_ms, done))

    def start_at(self, log_end_offset: int) -> None:
        """What the former leader wrote may not be committed yet."""
        self._last_written = log_end_offset

    def advance(self) -> None:
        high_watermark = self._partition.log.high_watermark
        self._commit_to(high_watermark)
        waiting = self._waiting
        while waiting and waiting[0].required_offset <= high_watermark:
            waiting.popleft().done(ErrorCode.none)

    def expire(self, now_ms: int) -> None:
        """The records stay in the log, whatever the answer (rule G2.11)."""
        waiting = self._waiting
        while waiting and waiting[0].deadline_ms <= now_ms:
            waiting.popleft().done(answer_of(ErrorCode.request_timed_out))

    def next_deadline_ms(self) -> int | None:
        return self._waiting[0].deadline_ms if self._waiting else None

    def fail_all(self, error: ErrorCode) -> None:
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.done(error)
