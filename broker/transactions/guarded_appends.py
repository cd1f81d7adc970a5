"""Before the first records of a transaction are appended to a partition, its coordinator has to say that the partition
is in the transaction (KIP-890, rules T3.8 to T3.14).

The partition hands out a guard first. A marker that is written while the coordinator is asked makes the guard void, so
that a late write cannot open a transaction which has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kquorum.broker.coordinators.timers import Timers
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import VerificationGuard
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import Partition, TopicPartition
from kquorum.broker.transactions.settings import TransactionSettings
from kquorum.broker.transactions.verification import Errors, Mode, Question
from kquorum.wire.messages.error_codes import ErrorCode

NO_SEQUENCE: Final = -1
# For how long the records of a producer wait for the marker of its last transaction before the coordinator is asked.
MARKER_WAIT_MS: Final = 1_000
Guards = Mapping[TopicPartition, VerificationGuard]
Checked = Callable[[Errors, Guards], None]
"""The partitions that may not be written, each with its error; and the guard for each of the others that needs one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where records are to go. `sequence` is that of the first, or NO_SEQUENCE."""

    partition: Partition
    sequence: int = NO_SEQUENCE


@dataclass(eq=False, slots=True, kw_only=True)
class _Check:
    transactional_id: str
    producer: ProducerEpoch
    places: Mapping[TopicPartition, Place]
    mode: Mode
    is_asked: bool
    retry_ms: int
    """For how long a coordinator is asked again."""
    marker_until_ms: int
    done: Checked
    retry_until_ms: int | None = None
    awaited: TopicPartition | None = None
    guards: dict[TopicPartition, VerificationGuard] = field(default_factory=dict)
    has_begun: bool = False
    is_over: bool = False


class Coordinators(Protocol):
    """`broker.transactions.coordinator.TransactionCoordinator`, which knows where each transaction is coordinated."""

    @property
    def settings(self) -> TransactionSettings: ...

    def ask(self, now_ms: int, question: Question) -> None: ...


class GuardedAppends:
    """The requests of one producer are checked one after the other: their records have to be appended in order."""

    def __init__(self, coordinator: Coordinators, now_ms: Callable[[], int]) -> None:
        self._coordinator = coordinator
        self._now_ms = now_ms
        self._queues: dict[int, deque[_Check]] = {}
        self._advancing: set[int] = set()
        self._timers = Timers()
        self._awaiting: dict[TopicPartition, dict[_Check, None]] = {}

    def __len__(self) -> int:
        """The requests that wait."""
        return sum(map(len, self._queues.values()))

    def check(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        places: Mapping[TopicPartition, Place],
        mode: Mode,
        *,
        is_asked: bool,
        retries: bool,
        done: Checked,
    ) -> None:
        """`done` is called once. Without `is_asked` the client's word is enough
        (`transaction.partition.verification.enable`). With `retries` a coordinator that is still ending the transaction
        before this one is asked again for a while."""
        wait_ms = self._coordinator.settings.add_retry_max_ms if retries and mode.adds else 0
        queue = self._queues.setdefault(producer.producer_id, deque())
        queue.append(
            _Check(
                transactional_id=transactional_id,
                producer=producer,
                places=places,
                mode=mode,
                is_asked=is_asked or mode.adds,
                retry_ms=wait_ms,
                marker_until_ms=self._now_ms() + (MARKER_WAIT_MS if wait_ms else 0),
                done=done,
            )
        )
        self._advance(producer.producer_id)

    def _advance(self, producer_id: int) -> None:
        """One check after the other, as long as none has to wait."""
        if producer_id in self._advancing:
            return
        self._advancing.add(producer_id)
        try:
            queue = self._queues.get(producer_id)
            while queue:
                first = queue[0]
                if not first.has_begun:
                    first.has_begun = True
                    self._ask(first)
                if not first.is_over:
                    return
                queue.popleft()
            self._queues.pop(producer_id, None)
        finally:
            self._advancing.discard(producer_id)

    def _ask(self, check: _Check) -> None:
        now_ms = self._now_ms()
        if now_ms < check.marker_until_ms and self._awaits_marker(check):
            return
        if check.retry_until_ms is None:
            check.retry_until_ms = now_ms + check.retry_ms
        retry_until_ms = check.retry_until_ms
        refused: dict[TopicPartition, ErrorCode] = {}
        check.guards.clear()
        for topic_partition, place in check.places.items():
            try:
                guard = place.partition.start_verification(
                    now_ms,
                    check.producer.producer_id,
                    sequence=place.sequence,
                    epoch=check.producer.epoch,
                    supports_epoch_bump=check.mode.adds,
                )
            except LogError as error:
                refused[topic_partition] = type(error).error_code
                continue
            if guard is not None:
                check.guards[topic_partition] = guard
        if not check.guards or not check.is_asked:
            self._finish(check, refused)
            return

        def answered(errors: Errors) -> None:
            then_ms = self._now_ms()
            if ErrorCode.concurrent_transactions in errors.values() and then_ms < retry_until_ms:
                # A coordinator of kquorum has waited meanwhile.
                due_ms = max(then_ms, now_ms + self._coordinator.settings.add_retry_ms)
                self._timers.set(check, due_ms, lambda _now_ms: self._ask(check))
            else:
                self._finish(check, refused | dict(errors))

        self._coordinator.ask(
            now_ms,
            Question(
                transactional_id=check.transactional_id,
                producer=check.producer,
                partitions=tuple(check.guards),
                mode=check.mode,
                done=answered,
            ),
        )

    def _awaits_marker(self, check: _Check) -> bool:
        """While the last transaction of the producer is open in the partition, its coordinator would only answer that
        it is ending. The marker wakes the check."""
        if not check.mode.adds or not check.is_asked:
            return False
        producer_id, epoch = check.producer
        for topic_partition, place in check.places.items():
            partition = place.partition
            if partition.is_leader and partition.log.awaits_marker(producer_id, epoch):
                check.awaited = topic_partition
                self._awaiting.setdefault(topic_partition, {})[check] = None
                self._timers.set(check, check.marker_until_ms, lambda _now_ms: self._stop_awaiting(check))
                return True
        return False

    def _stop_awaiting(self, check: _Check) -> None:
        assert check.awaited is not None
        waiting = self._awaiting.get(check.awaited, {})
        waiting.pop(check, None)
        if not waiting:
            self._awaiting.pop(check.awaited, None)
        self._timers.cancel(check)
        self._ask(check)

    def handle_woken(self, woken: Collection[TopicPartition]) -> None:
        """Replicas have records of these partitions, markers perhaps."""
        for topic_partition in self._awaiting.keys() & set(woken) if self._awaiting else ():
            for check in tuple(self._awaiting[topic_partition]):
                partition = check.places[topic_partition].partition
                if not partition.is_leader or not partition.log.awaits_marker(*check.producer):
                    self._stop_awaiting(check)

    def _finish(self, check: _Check, errors: Errors) -> None:
        if check.is_over:
            return
        check.is_over = True
        check.done(errors, check.guards)
        self._advance(check.producer.producer_id)

    def expire(self, now_ms: int) -> None:
        self._timers.fire(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._timers.next_deadline_ms()

    def close(self) -> None:
        """The broker stops: each request that waits gets an answer."""
        self._timers.clear()
        self._awaiting.clear()
        waiting = [each for queue in self._queues.values() for each in queue]
        for check in waiting:
            check.has_begun = True
        for check in waiting:
            self._finish(check, dict.fromkeys(check.places, ErrorCode.coordinator_not_available))
