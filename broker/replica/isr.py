"""Who is in sync, as the leader of a partition sees it: the progress of each follower, and the ISR with its pending
change (KIP-497, KIP-903)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from uuid import UUID

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1


class FetchClock:
    """When a follower sent its last Fetch, for all partitions of its session that the Fetch did not concern."""

    __slots__ = ("last_ms",)

    def __init__(self, now_ms: int) -> None:
        self.last_ms = now_ms


class FollowerProgress:
    """What the leader knows of one follower from its fetches in this leader epoch.

    `caught_up_ms` is the last time at which the follower had all that the leader had; 0 keeps a follower outside the
    ISR from counting as caught up before it has fetched.
    """

    __slots__ = (
        "_clock",
        "broker_epoch",
        "caught_up_ms",
        "fetched_ms",
        "leader_end_offset",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self) -> None:
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.leader_end_offset = UNKNOWN_OFFSET
        """The end of the leader's log when the follower fetched last."""
        self.fetched_ms = 0
        self.caught_up_ms = 0
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self._clock: FetchClock | None = None

    def rest(self, clock: FetchClock) -> None:
        """The follower has all there is. Its fetches go on by the clock, and are not counted one by one until something
        happens to the partition."""
        self._clock = clock

    def end_rest(self) -> None:
        """Something happened: the fetches count one by one from the next on. Up to the last it had all there was."""
        if self._clock is not None:
            self.caught_up_ms = max(self.caught_up_ms, self._clock.last_ms)
            self.fetched_ms = max(self.fetched_ms, self._clock.last_ms)
            self._clock = None

    def begin_epoch(self, now_ms: int, *, epoch_start_offset: int, was_led_here: bool, in_isr: bool) -> None:
        """A new leader epoch begins. A re-elected leader keeps what it knows of its followers' logs."""
        self._clock = None
        self.caught_up_ms = now_ms if in_isr else 0
        if was_led_here:
            self.leader_end_offset = epoch_start_offset
            self.fetched_ms = now_ms if in_isr else 0
            return
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.leader_end_offset = UNKNOWN_OFFSET
        self.fetched_ms = 0
        self.broker_epoch = UNKNOWN_BROKER_EPOCH

    def fetched(
        self,
        now_ms: int,
        *,
        offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
    ) -> None:
        """Note a fetch that was read and did not diverge.

        A follower that has at each fetch what the leader had at the fetch before stays caught up, although the leader
        runs on. Times never go back.
        """
        self.end_rest()
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_offset = max(leader_end_offset, self.leader_end_offset)
        self.fetched_ms = max(now_ms, self.fetched_ms)
        self.broker_epoch = broker_epoch

    def is_caught_up(self, now_ms: int, leader_end_offset: int, lag_time_max_ms: int) -> bool:
        if self.log_end_offset == leader_end_offset:
            return True
        caught_up_ms = (
            self.caught_up_ms if self._clock is None else max(self.caught_up_ms, self._clock.last_ms)
        )
        return now_ms - caught_up_ms <= lag_time_max_ms


@dataclass(frozen=True, slots=True)
class IsrMember:
    """A member of a proposed ISR; -1 stands for a broker epoch that the leader does not know."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class IsrChange:
    """What a leader asks of the controller (AlterPartition): the ISR as it should be.

    A leader that came to lead by an unclean election has recovered at once, and each change says so.
    """

    topic_id: UUID
    topic: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    members: tuple[IsrMember, ...]

    @property
    def isr(self) -> frozenset[int]:
        return frozenset(member.broker_id for member in self.members)


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """What the controller made of a change that it accepted."""

    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class IsrState:
    """The ISR that the controller committed, and the change under way.

    The leader acknowledges by the larger of the sets and admits by the committed one: the controller may have made the
    change already, and may elect any member.
    """

    committed: frozenset[int]
    pending: IsrChange | None = None

    @property
    def maximal(self) -> frozenset[int]:
        """Every replica that may be in the ISR of the controller."""
        return self.committed if self.pending is None else self.committed | self.pending.isr

    @property
    def is_in_flight(self) -> bool:
        return self.pending is not None


class RefusedChange(enum.Enum):
    """What a leader does about an error in the answer to its change."""

    ROLL_BACK = "roll back"
    """The controller did not make the change: the last committed ISR holds."""
    WAIT = "wait for metadata"
    """The leader's metadata are old, and the change may have been made: it stays pending until newer metadata come."""
    SEND_AGAIN = "send again"
