"""Writes the records of one partition of `__consumer_offsets` and answers when they are committed (rules G2.7 to
G2.25).

An answer waits for the high watermark, so none tells of what a new leader may not have. An operation without records
waits for the records written before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kquorum.broker.coordinators.answers import Done, KeyValue, answer_of
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import AppendOrigin, VerificationGuard
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import Partition
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import NO_EPOCH, NO_PRODUCER_ID, write_data_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_parsing import Record

Replay = Callable[[int, bytes, bytes | None, int | None], None]
_LEADER_DOES_NOT_WAIT: Final = 1


class TransactionOf(NamedTuple):
    """The transaction that offsets belong to. `guard`: see `broker.transactions.guarded_appends`."""

    producer: ProducerEpoch
    guard: VerificationGuard | None


@dataclass(slots=True)
class _Waiting:
    required_offset: int
    deadline_ms: int
    done: Done


class GroupLog:
    """`replay` gets each record of a write, with its offset and the producer id of its transaction, before the records
    are committed; `commit_to` the high watermark, before those are answered that waited for it."""

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
        transaction: TransactionOf | None = None,
    ) -> bool:
        """One batch, which belongs to `transaction` if there is one. `done` is called once: now if the log refuses the
        batch, in which case nothing changed. Returns whether the log took it."""
        if not records:
            self.after_writes(now_ms, done, timeout_ms=timeout_ms)
            return True
        batch = write_data_batch(
            [Record(at, now_ms, key, value) for at, (key, value) in enumerate(records)],
            codec=CompressionCodec(codec),
            producer_id=NO_PRODUCER_ID if transaction is None else transaction.producer.producer_id,
            producer_epoch=NO_EPOCH if transaction is None else transaction.producer.epoch,
            transactional=transaction is not None,
        )
        try:
            appended = self._partition.append(
                now_ms,
                batch,
                required_acks=_LEADER_DOES_NOT_WAIT,
                origin=AppendOrigin.COORDINATOR,
                guard=None if transaction is None else transaction.guard,
            )
        except LogError as error:
            done(answer_of(type(error).error_code))
            return False
        self._last_written = appended.required_offset
        if is_replayed:
            producer_id = None if transaction is None else transaction.producer.producer_id
            for offset, (key, value) in enumerate(records, appended.batches.first_offset):
                self._replay(offset, key, value, producer_id)
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
