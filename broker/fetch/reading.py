"""Read several partitions for one Fetch: in their order, within the bounds of the request, errors by partition.

The first partition with records is given at least one whole batch, however large, so that its reader gets on; the
others share what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kquorum.broker.fetch.sessions import FetchedPartition
from kquorum.broker.fetch.waits import Wait
from kquorum.broker.log.errors import LogError, OffsetOutOfRange
from kquorum.broker.log.partition_log import AbortedTransaction, EpochEnd, Isolation
from kquorum.broker.replica.isr import FollowerProgress
from kquorum.broker.replica.partition import Partition, PartitionRead, TopicPartition, Wake
from kquorum.wire.messages.error_codes import ErrorCode

CONSUMER: Final = -1
UNKNOWN: Final = -1
# Partitions that a wait begins to watch in one step: a Fetch names thousands.
_IN_A_STEP: Final = 100
NO_RECORDS: Final = b""

Find = Callable[[FetchedPartition], Partition]
"""The partition, or a LogError."""


Nearest = Callable[[Partition, int], int | None]
"""The broker that is to be asked for this offset instead of this one, or None."""


class LeaderThrottle(Protocol):
    """How much this broker sends to replicas that are being built (KIP-73)."""

    def is_throttled(self, topic_partition: TopicPartition) -> bool: ...
    def is_exceeded(self, now_ms: int) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBounds:
    """Who reads, and how much. `replica_id` is CONSUMER, or below for consumers that debug."""

    replica_id: int = CONSUMER
    replica_epoch: int = UNKNOWN
    isolation: Isolation = Isolation.HIGH_WATERMARK
    min_bytes: int = 1
    max_bytes: int
    leader_only: bool = True
    throttle: LeaderThrottle | None = None
    nearest: Nearest | None = None
    """Where a broker chooses the replica that consumers read from; and followers hear of watermarks at once then."""

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def tells_watermarks(self) -> bool:
        """Consumers read from the followers: they hear of a high watermark at once, not with the next records
        (KAFKA-8443, KAFKA-9731)."""
        return self.nearest is not None and self.is_follower

    def holds_back(self, now_ms: int, partition: Partition) -> bool:
        """Whether the reader gets no records of the partition for now. A replica that is in sync is never held up: it
        would leave the ISR."""
        throttle = self.throttle
        return (
            throttle is not None
            and self.is_follower
            and self.replica_id not in partition.isr_state.committed
            and throttle.is_throttled(partition.topic_partition)
            and throttle.is_exceeded(now_ms)
        )


@dataclass(slots=True)
class FetchedData:
    """The answer for one partition. `records` are pieces of the log, in order."""

    asked: FetchedPartition
    error: ErrorCode = ErrorCode.none
    high_watermark: int = UNKNOWN
    last_stable_offset: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    records: Sequence[bytes | memoryview] = ()
    size_bytes: int = 0
    aborted: Sequence[AbortedTransaction] | None = None
    diverging: EpochEnd | None = None
    preferred_replica: int = UNKNOWN
    rests: bool = False
    """The reader has all there is: the partition need not be looked at before something happens to it."""
    progress: FollowerProgress | None = None
    """Of a follower for which it rests."""

    @property
    def has_to_be_told(self) -> bool:
        """Not worth to wait over."""
        return self.error is not ErrorCode.none or self.diverging is not None or self.preferred_replica >= 0


def reading(
    now_ms: Callable[[], int],
    asked: Sequence[FetchedPartition],
    bounds: FetchBounds,
    find: Find,
    answers: list[FetchedData],
    *,
    counts: bool,
) -> Iterator[None]:
    """Fills `answers`, a partition at each step. `counts`: a follower's fetch offsets are its progress. Those of a
    fetch that waited counted when it came."""
    left = bounds.max_bytes
    at_least_one = True
    for each in asked:
        found = _read(now_ms(), each, bounds, find, min(each.max_bytes, left), at_least_one, counts)
        if found.size_bytes:
            at_least_one = False
            left = max(0, left - found.size_bytes)
        answers.append(found)
        yield


def _read(
    now_ms: int,
    asked: FetchedPartition,
    bounds: FetchBounds,
    find: Find,
    max_bytes: int,
    at_least_one: bool,
    counts: bool,
) -> FetchedData:
    try:
        partition = find(asked)
        preferred = _preferred_replica(partition, asked, bounds)
        if preferred is not None:
            return preferred
        found = _read_partition(now_ms, partition, asked, bounds, max(max_bytes, 0), at_least_one, counts)
    except LogError as error:
        return FetchedData(asked, type(error).error_code)
    answer = FetchedData(
        asked,
        high_watermark=found.high_watermark,
        last_stable_offset=found.last_stable_offset,
        log_start_offset=found.log_start_offset,
        diverging=found.diverging,
    )
    if found.records is not None:
        answer.records = found.records.pieces
        answer.size_bytes = found.records.size_bytes
        if bounds.isolation is Isolation.COMMITTED:
            answer.aborted = found.records.aborted_transactions or ()
        if not answer.size_bytes and asked.offset >= bound_of(partition, bounds.isolation):
            _let_rest(answer, partition, bounds)
    return answer


def _let_rest(answer: FetchedData, partition: Partition, bounds: FetchBounds) -> None:
    """Each fetch of a follower out of the ISR counts: with one of them it may join. A consumer may be sent to another
    replica at any time."""
    if bounds.is_follower:
        answer.progress = partition.followers.get(bounds.replica_id)
        answer.rests = answer.progress is not None and bounds.replica_id in partition.isr_state.committed
    else:
        answer.rests = bounds.nearest is None


def _preferred_replica(
    partition: Partition, asked: FetchedPartition, bounds: FetchBounds
) -> FetchedData | None:
    """The answer that sends a consumer to another replica, without records. Raises LogError."""
    if bounds.nearest is None or bounds.is_follower or bounds.leader_only:
        return None
    broker_id = bounds.nearest(partition, asked.offset)
    if broker_id is None:
        return None
    partition.check_readable(asked.current_leader_epoch, leader_only=False)
    log = partition.log
    return FetchedData(
        asked,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        preferred_replica=broker_id,
    )


def _read_partition(
    now_ms: int,
    partition: Partition,
    asked: FetchedPartition,
    bounds: FetchBounds,
    max_bytes: int,
    at_least_one: bool,
    counts: bool,
) -> PartitionRead:
    if bounds.is_follower:
        if bounds.holds_back(now_ms, partition):
            max_bytes, at_least_one = 0, False
        return partition.read_as_follower(
            now_ms,
            bounds.replica_id,
            asked.offset,
            max_bytes=max_bytes,
            at_least_one_batch=at_least_one,
            current_leader_epoch=asked.current_leader_epoch,
            last_fetched_epoch=asked.last_fetched_epoch,
            log_start_offset=asked.log_start_offset,
            broker_epoch=bounds.replica_epoch,
            counts=counts,
        )
    return partition.read(
        asked.offset,
        max_bytes=max_bytes,
        isolation=bounds.isolation,
        at_least_one_batch=at_least_one,
        current_leader_epoch=asked.current_leader_epoch,
        last_fetched_epoch=asked.last_fetched_epoch,
        leader_only=bounds.leader_only,
    )


def bound_of(partition: Partition, isolation: Isolation) -> int:
    """Up to where a reader may read."""
    log = partition.log
    if isolation is Isolation.LOG_END:
        return log.log_end_offset
    return log.high_watermark if isolation is Isolation.HIGH_WATERMARK else log.last_stable_offset


@dataclass(slots=True)
class _Awaited:
    """`counted_to` is up to where the bytes of the partition are in `size_bytes`, which only grows: so that many small
    appends cost a reader that waits for many bytes one reading together, not one each."""

    asked: FetchedPartition
    counted_to: int
    size_bytes: int


def _key_of(asked: FetchedPartition) -> TopicPartition:
    return TopicPartition(asked.topic or "", asked.partition)


class FetchWait(Wait):
    """Until there are as many bytes as the reader wants, or one of its partitions has an error.

    `answer` reads again from the start: what there is then is answered, whatever was counted here. `has_enough`:
    records came while the first reading was under way; `has_failed`: an error did.
    """

    operation = "Fetch"

    def __init__(
        self,
        waiting: Sequence[FetchedData],
        bounds: FetchBounds,
        find: Find,
        deadline_ms: int,
        answer: Callable[[], None],
        end: Callable[[], None],
        *,
        in_session: bool = False,
    ) -> None:
        """`in_session`: it is the session that hears of events."""
        wakes_on = Wake.LOG_END if bounds.isolation is Isolation.LOG_END else Wake.HIGH_WATERMARK
        if bounds.tells_watermarks:
            wakes_on |= Wake.HIGH_WATERMARK
        partitions = [_key_of(each.asked) for each in waiting]
        super().__init__(() if in_session else partitions, wakes_on | Wake.ROLE, deadline_ms)
        self._waiting = waiting
        self._in_session = in_session
        self._awaited: dict[TopicPartition, _Awaited] = {}
        self._bounds = bounds
        self._find = find
        self._answer = answer
        self._end = end
        self._size_bytes = 0
        self.has_failed = False
        self.forget: Callable[[], None] = lambda: None

    @property
    def has_enough(self) -> bool:
        return self._size_bytes >= self._bounds.min_bytes

    def begin(self, now_ms: Callable[[], int], watch: Callable[[TopicPartition], None]) -> Iterator[None]:
        """A partition is counted and watched in one step, so that nothing happens to it between the two."""
        for number, each in enumerate(self._waiting):
            if number and number % _IN_A_STEP == 0:
                yield
            self.watch(each.asked)
            key = _key_of(each.asked)
            try:
                self._count(now_ms(), key)
            except LogError:
                # Of a partition that was read in an earlier turn.
                self.has_failed = True
                return
            if not self._in_session:
                watch(key)
        self._waiting = ()

    def watch(self, asked: FetchedPartition) -> None:
        """A partition of the session that something happened to, if it is not known yet."""
        key = _key_of(asked)
        if key not in self._awaited:
            self._awaited[key] = _Awaited(asked, asked.offset, 0)

    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:
        if self._bounds.tells_watermarks and any(why & Wake.HIGH_WATERMARK for why in woken.values()):
            self._finish()
            return True
        try:
            for topic_partition in woken:
                self._count(now_ms, topic_partition)
        except LogError:
            self._finish()
            return True
        if self._size_bytes < self._bounds.min_bytes:
            return False
        self._finish()
        return True

    def expire(self, now_ms: int) -> None:  # noqa: ARG002 - the port's
        self._finish()

    def give_up(self) -> None:
        self.forget()
        self._end()

    def _finish(self) -> None:
        self.forget()
        self._answer()

    def _count(self, now_ms: int, key: TopicPartition) -> None:
        """Raises LogError."""
        awaited = self._awaited[key]
        self._size_bytes -= awaited.size_bytes
        self._size_bytes += self._count_again(now_ms, awaited)

    def _count_again(self, now_ms: int, awaited: _Awaited) -> int:
        """The bytes that this partition would give, at most those that the reader wants of it; none while a throttle
        holds them back. Raises LogError."""
        asked, bounds = awaited.asked, self._bounds
        partition = self._find(asked)
        partition.check_readable(
            asked.current_leader_epoch, leader_only=bounds.is_follower or bounds.leader_only
        )
        if asked.offset > partition.log.log_end_offset:
            raise OffsetOutOfRange("the log was truncated while the reader waited")
        if bounds.holds_back(now_ms, partition):
            return awaited.size_bytes
        bound = bound_of(partition, bounds.isolation)
        left = min(asked.max_bytes, bounds.max_bytes) - awaited.size_bytes
        if bound <= awaited.counted_to or left <= 0:
            return awaited.size_bytes
        if bounds.min_bytes <= 1:
            awaited.size_bytes += 1
        else:
            found = partition.log.read(
                awaited.counted_to, max_bytes=left, isolation=bounds.isolation, at_least_one_batch=True
            )
            awaited.size_bytes += found.size_bytes
        awaited.counted_to = bound
        return awaited.size_bytes
