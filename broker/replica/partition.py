"""One partition that this broker has a replica of: leader or follower, in-sync replicas and high watermark.

Sans-IO: time is an argument, the log is the port `PartitionLog`. What others have to do after a call (wake requests
that wait for the partition, ask the controller for another ISR) is noted in an `Outbox`, which the caller empties when
it has finished: so no request completes inside an append (KAFKA-7697).

docs/data-replication.md tells the rules. They are Kafka's, by KIP-101, KIP-279, KIP-320, KIP-497, KIP-595, KIP-841,
KIP-903 and KIP-966.
"""

from __future__ import annotations

import enum
import logging
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from kquorum.broker.log.errors import (
    FencedLeaderEpoch,
    LogError,
    NoSpaceLeft,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from kquorum.broker.log.partition_log import (
    AppendedBatches,
    AppendOrigin,
    EpochEnd,
    Isolation,
    LogSlice,
    PartitionLog,
    VerificationGuard,
)
from kquorum.broker.replica.isr import (
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    FollowerProgress,
    IsrAnswer,
    IsrChange,
    IsrMember,
    IsrState,
    RefusedChange,
)
from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERING, PartitionState
from kquorum.wire.messages.error_codes import ErrorCode

log = logging.getLogger("broker.replica")

NO_EPOCH: Final = -1
ACKS_ALL: Final = -1
DEFAULT_LAG_TIME_MAX_MS: Final = 30_000

_BASE_OFFSET: Final = struct.Struct(">q")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_POSITION: Final = 23
_BATCH_HEADER_SIZE: Final = 61

_ROLLED_BACK: Final = frozenset({ErrorCode.operation_not_attempted, ErrorCode.ineligible_replica})
_METADATA_ARE_OLD: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
    }
)


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class ClusterView(Protocol):
    """What a leader asks of the newest metadata about other brokers."""

    def is_alive(self, broker_id: int) -> bool:
        """Registered and unfenced."""
        ...

    def may_join_isr(self, broker_id: int, directory_id: UUID) -> bool:
        """Registered, unfenced and not in controlled shutdown (KIP-841), and the directory of the replica has not
        failed and is not LOST."""
        ...

    def broker_epoch(self, broker_id: int) -> int | None: ...


class Wake(enum.Flag):
    """Why requests that wait for a partition have to be looked at again."""

    LOG_END = enum.auto()
    """The log grew (on a leader: followers that wait may read on)."""
    HIGH_WATERMARK = enum.auto()
    LOG_START = enum.auto()
    """The low watermark may have moved (DeleteRecords)."""
    ROLE = enum.auto()
    """The broker leads no longer, follows another epoch, or lost the partition."""


@dataclass(slots=True)
class Outbox:
    """What is to be done after a call, over all partitions of a broker."""

    woken: dict[TopicPartition, Wake] = field(default_factory=dict)
    isr_changes: list[IsrChange] = field(default_factory=list)
    without_space: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions whose log refused records, as its disk is full."""

    def wake(self, topic_partition: TopicPartition, why: Wake) -> None:
        self.woken[topic_partition] = self.woken.get(topic_partition, why) | why

    def take_woken(self) -> Mapping[TopicPartition, Wake]:
        woken, self.woken = self.woken, {}
        return woken

    def take_isr_changes(self) -> list[IsrChange]:
        changes, self.isr_changes = self.isr_changes, []
        return changes

    def take_without_space(self) -> Collection[TopicPartition]:
        found, self.without_space = self.without_space, {}
        return found


@dataclass(slots=True)
class PartitionSettings:
    """`min_insync_replicas` is the topic's config; the lag time is the broker's."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = DEFAULT_LAG_TIME_MAX_MS


@dataclass(slots=True)
class LeaderAppend:
    """An append by a producer. With acks=all it is acknowledged when the high watermark is at `required_offset`."""

    batches: AppendedBatches
    required_offset: int


@dataclass(slots=True)
class PartitionRead:
    """What a Fetch of one partition found: records, or where the reader's log departs from the leader's."""

    records: LogSlice | None
    diverging: EpochEnd | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    log_end_offset: int


class Partition:
    """Invariants: the high watermark of a leader is at most the log end of each member of the maximal ISR; a follower
    knows no ISR; `followers` has every assigned replica but this one while this broker leads."""

    def __init__(
        self,
        *,
        broker_id: int,
        topic_id: UUID,
        topic: str,
        partition: int,
        log: PartitionLog,
        cluster: ClusterView,
        outbox: Outbox,
        settings: PartitionSettings | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.topic_id = topic_id
        self.topic_partition = TopicPartition(topic, partition)
        self.log = log
        self.future: PartitionLog | None = None
        """Its copy in another log directory, which takes its place; cut where the log is cut."""
        self.settings = settings or PartitionSettings()
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.epoch_start_offset: int | None = None
        """The end of the log when this broker began to lead; None for a follower."""
        self.replicas: tuple[int, ...] = ()
        self._directories: dict[int, UUID] = {}
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.isr_state = IsrState(frozenset())
        self.followers: dict[int, FollowerProgress] = {}
        self.failed_isr_changes = 0
        self._cluster = cluster
        self._outbox = outbox

    # Values

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.broker_id

    @property
    def effective_min_isr(self) -> int:
        """A topic may ask for more replicas than it has."""
        return min(self.settings.min_insync_replicas, max(1, len(self.replicas)))

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr_state.committed) < self.effective_min_isr

    @property
    def is_under_replicated(self) -> bool:
        return self.is_leader and len(self.isr_state.committed) < len(self.replicas)

    @property
    def is_adding_local_replica(self) -> bool:
        """A reassignment moves the partition here."""
        return self.broker_id in self.adding_replicas

    @property
    def low_watermark(self) -> int:
        """The smallest log start among this replica and the followers whose brokers live (DeleteRecords)."""
        starts = [
            progress.log_start_offset
            for broker_id, progress in self.followers.items()
            if self._cluster.is_alive(broker_id)
        ]
        return min([self.log.log_start_offset, *starts])

    # Registrations

    def become_leader(self, now_ms: int, registration: PartitionState) -> bool:
        """Take over a registration that names this broker as leader; whether it did not lead before.

        An older partition epoch than the known one is ignored. The same partition epoch again leaves a pending change
        of the ISR alone: what is known and what is under way did not change.
        """
        if registration.partition_epoch < self.partition_epoch:
            return False
        was_led_here = self.is_leader
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        if is_new_epoch or registration.partition_epoch > self.partition_epoch:
            self.isr_state = IsrState(frozenset(registration.isr))
        self._assign(registration)
        self._follow_assigned()
        if is_new_epoch:
            self._begin_epoch(now_ms, registration, was_led_here)
        self.leader_id = self.broker_id
        self.leader_epoch = registration.leader_epoch
        self.partition_epoch = registration.partition_epoch
        if is_new_epoch:
            self._outbox.wake(self.topic_partition, Wake.ROLE)
        self._maybe_advance_high_watermark(now_ms)
        return not was_led_here

    def _begin_epoch(self, now_ms: int, registration: PartitionState, was_led_here: bool) -> None:
        if registration.leader_recovery_state == RECOVERING:
            log.warning(
                "%s-%d: this broker was elected leader of epoch %d out of the in-sync replicas; records may be lost",
                *self.topic_partition,
                registration.leader_epoch,
            )
        epoch_start_offset = self.log.log_end_offset
        latest_epoch = self.log.latest_epoch
        if latest_epoch is None or latest_epoch < registration.leader_epoch:
            # After a restart the metadata may still name an epoch that this broker led before.
            self.log.assign_epoch_start(registration.leader_epoch)
        self.epoch_start_offset = epoch_start_offset
        for broker_id, progress in self.followers.items():
            progress.begin_epoch(
                now_ms,
                epoch_start_offset=epoch_start_offset,
                was_led_here=was_led_here,
                in_isr=broker_id in self.isr_state.committed,
            )

    def become_follower(self, registration: PartitionState) -> bool:
        """Take over a registration that names another leader, or none; whether the leader epoch is new.

        Only a new leader epoch starts another fetch. The log is not cut here: the leader's answers say where the logs
        diverge.
        """
        if registration.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        self._assign(registration)
        self.isr_state = IsrState(frozenset())
        self.followers.clear()
        self.epoch_start_offset = None
        self.leader_id = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.partition_epoch = registration.partition_epoch
        if is_new_epoch:
            self._outbox.wake(self.topic_partition, Wake.ROLE)
        return is_new_epoch

    def change_min_insync_replicas(self, now_ms: int, number: int) -> None:
        """Where it went down, the high watermark may move that stood still below it."""
        if number != self.settings.min_insync_replicas:
            self.settings.min_insync_replicas = number
            self._maybe_advance_high_watermark(now_ms)

    def stop(self) -> None:
        """The broker no longer has this partition: each request that waits for it gets an answer."""
        self.leader_id = NO_LEADER
        self.isr_state = IsrState(frozenset())
        self.followers.clear()
        self.epoch_start_offset = None
        self._outbox.wake(self.topic_partition, Wake.ROLE)

    def _assign(self, registration: PartitionState) -> None:
        self.replicas = registration.replicas
        self._directories = dict(zip(registration.replicas, registration.directories, strict=False))
        self.adding_replicas = registration.adding_replicas
        self.removing_replicas = registration.removing_replicas

    def _follow_assigned(self) -> None:
        """Progress of replicas that stay survives; that of replicas that left the assignment goes."""
        known = self.followers
        self.followers = {
            replica: known.get(replica) or FollowerProgress()
            for replica in self.replicas
            if replica != self.broker_id
        }

    # Producers

    def append(
        self,
        now_ms: int,
        records: bytes | memoryview,
        *,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> LeaderAppend:
        """Append as leader; `guard` is what `start_verification` gave, `transaction_version` that of the transaction
        that a marker ends.

        Raises NotLeaderOrFollower, NotEnoughReplicas (nothing is written), and what the log raises."""
        self._check_leads()
        if required_acks == ACKS_ALL and len(self.isr_state.committed) < self.effective_min_isr:
            raise NotEnoughReplicas(
                f"{self._name} has {len(self.isr_state.committed)} in-sync replicas; "
                f"min.insync.replicas asks for {self.effective_min_isr}"
            )
        try:
            batches = self.log.append_as_leader(
                records,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                origin=origin,
                guard=guard,
                transaction_version=transaction_version,
            )
        except NoSpaceLeft:
            self._outbox.without_space[self.topic_partition] = None
            raise
        if not batches.duplicate:
            self._outbox.wake(self.topic_partition, Wake.LOG_END)
            self._maybe_advance_high_watermark(now_ms)
        return LeaderAppend(batches, batches.last_offset + 1)

    def start_verification(
        self, now_ms: int, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """See `PartitionLog.start_verification`. Raises NotLeaderOrFollower too."""
        self._check_leads()
        return self.log.start_verification(
            producer_id,
            sequence=sequence,
            epoch=epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def acknowledgement(self, required_offset: int) -> ErrorCode | None:
        """What an acks=all producer may be answered whose records end at `required_offset`; None: it has to wait.

        The high watermark stands still below min.insync.replicas, so NOT_ENOUGH_REPLICAS_AFTER_APPEND comes only where
        the ISR shrank when the watermark had passed already.
        """
        if not self.is_leader:
            return ErrorCode.not_leader_or_follower
        if self.log.high_watermark < required_offset:
            return None
        if len(self.isr_state.maximal) < self.effective_min_isr:
            return ErrorCode.not_enough_replicas_after_append
        return ErrorCode.none

    def delete_records(self, offset: int) -> int:
        """Advance the log start to `offset` (-1: the high watermark); returns the offset that the low watermark has to
        reach. Raises OffsetOutOfRange, NotLeaderOrFollower."""
        self._check_leads()
        target = self.log.high_watermark if offset == UNKNOWN_OFFSET else offset
        if target < 0 or target > self.log.high_watermark:
            raise OffsetOutOfRange(
                f"{self._name}: offset {offset} is not between 0 and the high watermark {self.log.high_watermark}"
            )
        if self.log.advance_log_start_offset(target):
            self._outbox.wake(self.topic_partition, Wake.LOG_START)
        return target

    # Readers

    def check_leader_epoch(self, asked: int) -> None:
        """A request names the leader epoch that its sender knows, or -1 (KIP-320)."""
        if asked == NO_EPOCH or asked == self.leader_epoch:
            return
        if asked < self.leader_epoch:
            raise FencedLeaderEpoch(f"{self._name} has leader epoch {self.leader_epoch}, not {asked}")
        raise UnknownLeaderEpoch(f"{self._name} has leader epoch {self.leader_epoch} here, not yet {asked}")

    def check_readable(self, current_leader_epoch: int, *, leader_only: bool) -> None:
        """The epoch comes first, on leaders and followers alike."""
        self.check_leader_epoch(current_leader_epoch)
        if leader_only:
            self._check_leads()

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        isolation: Isolation,
        at_least_one_batch: bool = False,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        leader_only: bool = True,
    ) -> PartitionRead:
        """Read for a consumer. Raises FencedLeaderEpoch, UnknownLeaderEpoch, NotLeaderOrFollower, OffsetOutOfRange."""
        self.check_readable(current_leader_epoch, leader_only=leader_only)
        return self._read(offset, max_bytes, isolation, at_least_one_batch, last_fetched_epoch)

    def read_as_follower(
        self,
        now_ms: int,
        replica_id: int,
        offset: int,
        *,
        max_bytes: int,
        at_least_one_batch: bool = False,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        log_start_offset: int = UNKNOWN_OFFSET,
        broker_epoch: int = UNKNOWN_BROKER_EPOCH,
        counts: bool = True,
    ) -> PartitionRead:
        """Read for another replica, and take its fetch offset as its log's end.

        Only a fetch that can be read and does not diverge counts. A fetch that was parked counted when it came: pass
        `counts=False` when it is read again. The answer has the watermarks from before the fetch was counted.
        """
        self.check_readable(current_leader_epoch, leader_only=True)
        if replica_id not in self.followers:
            message = f"{self._name}: broker {replica_id} is no replica of it as far as this leader knows"
            raise (
                NotLeaderOrFollower(message)
                if current_leader_epoch == NO_EPOCH
                else UnknownLeaderEpoch(message)
            )
        found = self._read(offset, max_bytes, Isolation.LOG_END, at_least_one_batch, last_fetched_epoch)
        if counts and found.diverging is None:
            self.follower_fetched(
                now_ms,
                replica_id,
                offset,
                log_start_offset=log_start_offset,
                broker_epoch=broker_epoch,
            )
        return found

    def _read(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation,
        at_least_one_batch: bool,
        last_fetched_epoch: int,
    ) -> PartitionRead:
        # The watermarks are taken before the records: a consumer may not be given a watermark that its records lack.
        high_watermark, stable = self.log.high_watermark, self.log.last_stable_offset
        start, end = self.log.log_start_offset, self.log.log_end_offset
        diverging = None if last_fetched_epoch == NO_EPOCH else self._divergence(offset, last_fetched_epoch)
        records = None
        if diverging is None:
            records = self.log.read(
                offset, max_bytes=max_bytes, isolation=isolation, at_least_one_batch=at_least_one_batch
            )
        return PartitionRead(records, diverging, high_watermark, stable, start, end)

    def _divergence(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """Where the log of a reader departs that has records of `last_fetched_epoch` up to `offset` (KIP-595)."""
        end = self.log.end_of_epoch(last_fetched_epoch)
        if end.end_offset == UNKNOWN_OFFSET or end.leader_epoch == NO_EPOCH:
            raise OffsetOutOfRange(
                f"{self._name}: this log knows nothing of leader epoch {last_fetched_epoch}"
            )
        if offset < self.log.log_start_offset:
            raise OffsetOutOfRange(f"{self._name} begins at {self.log.log_start_offset}, above {offset}")
        if end.leader_epoch < last_fetched_epoch or end.end_offset < offset:
            return end
        return None

    def latest_offset(
        self,
        isolation: Isolation,
        *,
        current_leader_epoch: int = NO_EPOCH,
        leader_only: bool = True,
    ) -> int | None:
        """ListOffsets -1; None is OFFSET_NOT_AVAILABLE: a new leader whose high watermark is still below the start of
        its epoch has nothing to say to a client, so that no answer goes back after an election (KIP-207)."""
        self.check_readable(current_leader_epoch, leader_only=leader_only)
        if isolation is Isolation.LOG_END:
            return self.log.log_end_offset
        if self.is_below_epoch_start:
            return None
        committed = isolation is Isolation.COMMITTED
        return self.log.last_stable_offset if committed else self.log.high_watermark

    @property
    def is_below_epoch_start(self) -> bool:
        return self.epoch_start_offset is not None and self.log.high_watermark < self.epoch_start_offset

    def end_of_epoch(
        self, leader_epoch: int, *, current_leader_epoch: int = NO_EPOCH, leader_only: bool = True
    ) -> EpochEnd:
        """OffsetForLeaderEpoch."""
        self.check_readable(current_leader_epoch, leader_only=leader_only)
        return self.log.end_of_epoch(leader_epoch)

    # Followers, as their leader sees them

    def follower_fetched(
        self,
        now_ms: int,
        replica_id: int,
        offset: int,
        *,
        log_start_offset: int = UNKNOWN_OFFSET,
        broker_epoch: int = UNKNOWN_BROKER_EPOCH,
    ) -> None:
        """Count a fetch. Raises NotLeaderOrFollower for a broker that has restarted since (KIP-903); a newer epoch
        than the metadata's is taken, for the leader's metadata may lag."""
        progress = self.followers[replica_id]
        registered = self._cluster.broker_epoch(replica_id)
        if broker_epoch != UNKNOWN_BROKER_EPOCH and registered is not None and broker_epoch < registered:
            raise NotLeaderOrFollower(
                f"{self._name}: broker {replica_id} fetched with epoch {broker_epoch}, "
                f"but registered again as {registered}"
            )
        former_end, former_low = progress.log_end_offset, progress.log_start_offset
        progress.fetched(
            now_ms,
            offset=offset,
            log_start_offset=log_start_offset,
            leader_end_offset=self.log.log_end_offset,
            broker_epoch=broker_epoch,
        )
        if log_start_offset != former_low:
            self._outbox.wake(self.topic_partition, Wake.LOG_START)
        self._maybe_expand_isr(replica_id, progress)
        if offset != former_end:
            self._maybe_advance_high_watermark(now_ms)

    def _maybe_expand_isr(self, replica_id: int, progress: FollowerProgress) -> None:
        """A follower joins when it has all that is committed, and has reached this leader's epoch: with a high
        watermark from before the election a diverged tail might still look long enough."""
        if self.isr_state.is_in_flight or replica_id in self.isr_state.committed:
            return
        if self.epoch_start_offset is None or not self._is_eligible(replica_id, progress):
            return
        if progress.log_end_offset >= max(self.log.high_watermark, self.epoch_start_offset):
            self._propose(self.isr_state.committed | {replica_id})

    def maybe_shrink_isr(self, now_ms: int) -> None:
        """Every half of replica.lag.time.max.ms: members that lag leave, all in one change."""
        if not self.is_leader or self.isr_state.is_in_flight:
            return
        lagging = self.lagging_members(now_ms)
        if lagging:
            log.info("%s: replicas %s lag and leave the ISR", self._name, sorted(lagging))
            self._propose(self.isr_state.committed - lagging)

    def lagging_members(self, now_ms: int) -> frozenset[int]:
        """A follower at the end of the leader's log never lags, however long ago it fetched."""
        end = self.log.log_end_offset
        lag_time_max_ms = self.settings.replica_lag_time_max_ms
        return frozenset(
            member
            for member in self.isr_state.committed
            if member != self.broker_id
            and not (
                member in self.followers and self.followers[member].is_caught_up(now_ms, end, lag_time_max_ms)
            )
        )

    def _is_eligible(self, replica_id: int, progress: FollowerProgress) -> bool:
        """Neither fenced nor shutting down (KIP-841), on a disk that works and has space, and the process that fetches
        is the registered one (KIP-903)."""
        directory_id = self._directories.get(replica_id, MIGRATING)
        if not self._cluster.may_join_isr(replica_id, directory_id):
            return False
        return progress.broker_epoch in (UNKNOWN_BROKER_EPOCH, self._cluster.broker_epoch(replica_id))

    def _maybe_advance_high_watermark(self, now_ms: int) -> bool:
        """To the least log end among the replicas that count: the maximal ISR, and those caught up that are about to
        join, so that the watermark does not run ahead of them. It stands still below min.insync.replicas (KIP-966)."""
        if not self.is_leader or self.is_under_min_isr:
            return False
        end = self.log.log_end_offset
        reached = end
        maximal = self.isr_state.maximal
        lag_time_max_ms = self.settings.replica_lag_time_max_ms
        for replica_id, progress in self.followers.items():
            if progress.log_end_offset >= reached:
                continue
            if replica_id in maximal or (
                progress.is_caught_up(now_ms, end, lag_time_max_ms)
                and self._is_eligible(replica_id, progress)
            ):
                reached = progress.log_end_offset
        if reached <= self.log.high_watermark:
            return False
        self.log.update_high_watermark(reached)
        self._outbox.wake(self.topic_partition, Wake.HIGH_WATERMARK)
        return True

    def brokers_changed(self, now_ms: int) -> None:
        """A broker that is fenced, or whose disk failed, is not waited for any longer."""
        if self.is_leader and self.log.high_watermark < self.log.log_end_offset:
            self._maybe_advance_high_watermark(now_ms)

    # The ISR and the controller

    def _propose(self, isr: frozenset[int]) -> None:
        change = IsrChange(
            topic_id=self.topic_id,
            topic=self.topic_partition.topic,
            partition=self.topic_partition.partition,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            members=tuple(IsrMember(member, self._epoch_of_member(member)) for member in sorted(isr)),
        )
        self.isr_state = IsrState(self.isr_state.committed, change)
        self._outbox.isr_changes.append(change)

    def _epoch_of_member(self, member: int) -> int:
        """That of the follower's last fetch, so that the controller notices a restart in between."""
        if member == self.broker_id:
            own = self._cluster.broker_epoch(member)
            return UNKNOWN_BROKER_EPOCH if own is None else own
        progress = self.followers.get(member)
        return UNKNOWN_BROKER_EPOCH if progress is None else progress.broker_epoch

    def isr_change_made(self, now_ms: int, change: IsrChange, answer: IsrAnswer) -> bool:
        """The controller accepted a change; False where newer metadata have overtaken the answer."""
        if self.isr_state.pending is not change:
            return False
        if answer.leader_epoch != self.leader_epoch or answer.partition_epoch < self.partition_epoch:
            self.failed_isr_changes += 1
            return False
        self.isr_state = IsrState(answer.isr)
        self.partition_epoch = answer.partition_epoch
        self._maybe_advance_high_watermark(now_ms)
        return True

    def isr_change_refused(self, change: IsrChange, error: ErrorCode) -> RefusedChange | None:
        """Act on an error code for a change; None where newer metadata have overtaken the answer.

        A leader that may have been replaced keeps the change pending: so the larger ISR goes on counting, and it
        cannot commit records by itself.
        """
        if self.isr_state.pending is not change:
            return None
        if error in _ROLLED_BACK:
            self.failed_isr_changes += 1
            self.isr_state = IsrState(self.isr_state.committed)
            return RefusedChange.ROLL_BACK
        if error in _METADATA_ARE_OLD:
            self.failed_isr_changes += 1
            return RefusedChange.WAIT
        self._outbox.isr_changes.append(change)
        return RefusedChange.SEND_AGAIN

    # What a follower does with its leader's answers

    def append_as_follower(
        self, now_ms: int, records: bytes | memoryview, leader_epoch: int
    ) -> AppendedBatches:
        """`leader_epoch` is that of the Fetch.

        Where the leader's log begins inside a batch (DeleteRecords) and this log is empty, it starts again with that
        batch; its start then follows from the leader.
        """
        start = self.log.log_start_offset
        if start == self.log.log_end_offset and len(records) >= _BATCH_HEADER_SIZE:
            (base_offset,) = _BASE_OFFSET.unpack_from(records)
            (last_delta,) = _LAST_OFFSET_DELTA.unpack_from(records, _LAST_OFFSET_DELTA_POSITION)
            if base_offset < start <= base_offset + last_delta:
                self.log.truncate_fully_and_start_at(base_offset)
        try:
            appended = self.log.append_as_follower(records, leader_epoch=leader_epoch, now_ms=now_ms)
        except NoSpaceLeft:
            self._outbox.without_space[self.topic_partition] = None
            raise
        if appended.first_offset >= 0:
            self._outbox.wake(self.topic_partition, Wake.LOG_END)
        return appended

    def follow_watermarks(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark, as far as this log reaches, and its log start.

        The watermark may go down where a new leader's is behind; the new leader raises it again.
        """
        bounded = max(self.log.log_start_offset, min(high_watermark, self.log.log_end_offset))
        if bounded != self.log.high_watermark:
            self.log.update_high_watermark(bounded)
            self._outbox.wake(self.topic_partition, Wake.HIGH_WATERMARK)
        if log_start_offset > self.log.log_start_offset and self.log.advance_log_start_offset(
            log_start_offset
        ):
            self._outbox.wake(self.topic_partition, Wake.LOG_START)

    def truncate_to(self, offset: int) -> None:
        if self.log.truncate_to(offset):
            self._outbox.wake(self.topic_partition, Wake.HIGH_WATERMARK)
        self._cut_future(offset)

    def _cut_future(self, offset: int) -> None:
        """A copy whose disk fails is given up; the log is as it should be."""
        future = self.future
        if future is None or future.log_end_offset <= offset:
            return
        try:
            future.truncate_to(offset)
        except LogError as error:
            log.error("%s: its copy in another directory cannot be cut: %s", self._name, error)
            self.future = None

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)
        self._cut_future(0)
        self._outbox.wake(self.topic_partition, Wake.HIGH_WATERMARK)

    # Parts

    @property
    def _name(self) -> str:
        return f"{self.topic_partition.topic}-{self.topic_partition.partition}"

    def _check_leads(self) -> None:
        if not self.is_leader:
            raise NotLeaderOrFollower(f"this broker does not lead {self._name}")


def error_code_of(error: LogError) -> ErrorCode:
    """What a request for one partition is answered where that partition raised."""
    return type(error).error_code
