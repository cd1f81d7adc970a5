"""Writes the records of one partition of `__transaction_state`, each a batch of its own, with acks=all (rules T1.4 to
T1.6).

What is written counts once it is committed: `committed` is called then, and the answer goes out. A client may be told
before that it took too long; the record stays in the log, and counts when it is committed all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kquorum.broker.coordinators.answers import Done, KeyValue, answer_of
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.replica.partition import ACKS_ALL, Partition
from kquorum.wire.data_batch import write_data_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_parsing import Record


@dataclass(slots=True)
class _Waiting:
    required_offset: int
    deadline_ms: int
    committed: Callable[[int], None]
    done: Done | None


class TransactionLog:
    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._waiting: deque[_Waiting] = deque()
        # Not above that of any write that waits: most end before it.
        self._earliest_ms: int | None = None

    def __len__(self) -> int:
        """How many writes are not committed."""
        return len(self._waiting)

    def write(
        self,
        now_ms: int,
        records: Sequence[KeyValue],
        *,
        committed: Callable[[int], None],
        done: Done,
        timeout_ms: int,
    ) -> ErrorCode:
        """Anything but NONE: the records are not in the log, nothing changed, and `done` is not called.

        Else `done` is called once: at the commit, after `timeout_ms`, or when the coordinator gives up the partition.
        `committed` is called with the time of the commit.
        """
        batch = write_data_batch([Record(at, now_ms, key, value) for at, (key, value) in enumerate(records)])
        try:
            appended = self._partition.append(
                now_ms, batch, required_acks=ACKS_ALL, origin=AppendOrigin.COORDINATOR
            )
        except LogError as error:
            return answer_of(type(error).error_code)
        deadline_ms = now_ms + timeout_ms
        self._waiting.append(_Waiting(appended.required_offset, deadline_ms, committed, done))
        if self._earliest_ms is None or deadline_ms < self._earliest_ms:
            self._earliest_ms = deadline_ms
        return ErrorCode.none

    def advance(self, now_ms: int) -> None:
        """The high watermark may have moved."""
        waiting, high_watermark = self._waiting, self._partition.log.high_watermark
        while waiting and waiting[0].required_offset <= high_watermark:
            first = waiting.popleft()
            first.committed(now_ms)
            if first.done is not None:
                first.done(ErrorCode.none)

    def expire(self, now_ms: int) -> None:
        if self._earliest_ms is None or self._earliest_ms > now_ms:
            return
        late = [each for each in self._waiting if each.done is not None and each.deadline_ms <= now_ms]
        for each in late:
            done, each.done = each.done, None
            if done is not None:
                done(answer_of(ErrorCode.request_timed_out))
        self._earliest_ms = min(
            (each.deadline_ms for each in self._waiting if each.done is not None), default=None
        )

    def next_deadline_ms(self) -> int | None:
        """Too early is harmless."""
        return self._earliest_ms if self._waiting else None

    def fail_all(self, error: ErrorCode) -> None:
        """The records may be in the next coordinator's log: it decides what they are worth."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            if each.done is not None:
                each.done(error)
