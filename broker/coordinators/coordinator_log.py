"""Writes the records of one partition that a coordinator leads, and answers when they are committed (rules G2.7 to
G2.25, T1.4 to T1.6).

An answer waits for the high watermark, so none tells of what a new leader may not have. An operation without records
waits for the records written before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kquorum.broker.coordinators.answers import Done, KeyValue, answer_of
from kquorum.broker.coordinators.timers import Timers
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import AppendOrigin, VerificationGuard
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import Partition
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import NO_EPOCH, NO_PRODUCER_ID, write_data_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_parsing import Record


class TransactionOf(NamedTuple):
    """The transaction that records belong to. `guard`: see `broker.transactions.guarded_appends`."""

    producer: ProducerEpoch
    guard: VerificationGuard | None


def _nothing_to_do(_at: int) -> None:
    """In the place of what a write does not need to hear."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """`done` is None once the answer is out."""

    required_offset: int
    committed: Callable[[int], None]
    done: Done | None


class CoordinatorLog:
    """`required_acks` are those of the appends: with acks=all the log refuses records while too few replicas are in
    sync. `on_high_watermark` gets the high watermark before what waits for it is answered. The deadlines of the
    answers are among `timers`."""

    def __init__(
        self,
        partition: Partition,
        timers: Timers,
        *,
        required_acks: int,
        on_high_watermark: Callable[[int], None] = _nothing_to_do,
    ) -> None:
        self._partition = partition
        self._timers = timers
        self._required_acks = required_acks
        self._on_high_watermark = on_high_watermark
        self._waiting: deque[_Waiting] = deque()
        self._last_written = 0

    def __len__(self) -> int:
        """How many answers and writes wait for the high watermark."""
        return len(self._waiting)

    def write(
        self,
        now_ms: int,
        records: Sequence[KeyValue],
        done: Done,
        *,
        timeout_ms: int,
        appended: Callable[[int], None] = _nothing_to_do,
        committed: Callable[[int], None] = _nothing_to_do,
        codec: int = 0,
        transaction: TransactionOf | None = None,
    ) -> ErrorCode:
        """One batch, which belongs to `transaction` if there is one. `appended` gets the first offset when the log has
        the batch, `committed` the time when the high watermark passed it.

        Anything but NONE: the log refused the batch, nothing changed, and `done` is not called. Else `done` is called
        once: after `committed`, after `timeout_ms`, or when the coordinator gives the partition up. A write that takes
        longer than `timeout_ms` stays in the log, and counts when it is committed (rule G2.11).
        """
        if not records:
            self.after_writes(now_ms, done, timeout_ms=timeout_ms)
            return ErrorCode.none
        batch = write_data_batch(
            [Record(at, now_ms, key, value) for at, (key, value) in enumerate(records)],
            codec=CompressionCodec(codec),
            producer_id=NO_PRODUCER_ID if transaction is None else transaction.producer.producer_id,
            producer_epoch=NO_EPOCH if transaction is None else transaction.producer.epoch,
            transactional=transaction is not None,
        )
        try:
            found = self._partition.append(
                now_ms,
                batch,
                required_acks=self._required_acks,
                origin=AppendOrigin.COORDINATOR,
                guard=None if transaction is None else transaction.guard,
            )
        except LogError as error:
            return answer_of(type(error).error_code)
        self._last_written = found.required_offset
        appended(found.batches.first_offset)
        self._wait(now_ms + timeout_ms, committed, done)
        self.advance(now_ms)
        return ErrorCode.none

    def after_writes(self, now_ms: int, done: Done, *, timeout_ms: int) -> None:
        """When all that is written is committed; now if it is."""
        if self._partition.log.high_watermark >= self._last_written:
            done(ErrorCode.none)
        else:
            self._wait(now_ms + timeout_ms, _nothing_to_do, done)

    def _wait(self, deadline_ms: int, committed: Callable[[int], None], done: Done) -> None:
        waiting = _Waiting(self._last_written, committed, done)
        self._waiting.append(waiting)

        def expire(_now_ms: int) -> None:
            late, waiting.done = waiting.done, None
            if late is not None:
                late(answer_of(ErrorCode.request_timed_out))

        self._timers.set(waiting, deadline_ms, expire)

    def start_at(self, log_end_offset: int) -> None:
        """What the former leader wrote may not be committed yet."""
        self._last_written = log_end_offset

    def advance(self, now_ms: int) -> None:
        """The high watermark may have moved."""
        waiting, high_watermark = self._waiting, self._partition.log.high_watermark
        self._on_high_watermark(high_watermark)
        while waiting and waiting[0].required_offset <= high_watermark:
            first = waiting.popleft()
            self._timers.cancel(first)
            first.committed(now_ms)
            if first.done is not None:
                first.done(ErrorCode.none)

    def fail_all(self, error: ErrorCode) -> None:
        """The records may be in the next coordinator's log: it decides what they are worth."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._timers.cancel(each)
            if each.done is not None:
                each.done(error)
