"""A partition as leader and as follower, by the behaviours of Kafka's brokers."""

from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from kquorum.broker.log.errors import (
    FencedLeaderEpoch,
    LogError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from kquorum.broker.log.partition_log import Isolation
from kquorum.broker.replica.isr import IsrAnswer, IsrChange, IsrMember, RefusedChange
from kquorum.broker.replica.partition import (
    Outbox,
    Partition,
    PartitionRead,
    PartitionSettings,
    TopicPartition,
    Wake,
    error_code_of,
)
from kquorum.metadata.image.directories import LOST, MIGRATING
from kquorum.metadata.image.partition_state import RECOVERING, PartitionState
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_batch import write_batch
from tests.support.batches import rewrite_offsets
from tests.support.memory_partition_log import MemoryPartitionLog

ME, A, B = 1, 2, 3
NOW_MS = 1_000_000
LAG_MS = 30_000
ORDERS = TopicPartition("orders", 0)


@dataclass
class Cluster:
    """Broker epochs are 10 times the id unless said otherwise."""

    inactive: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)
    failed_directories: set[UUID] = field(default_factory=set)
    epochs: dict[int, int] = field(default_factory=dict)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id not in self.dead

    def may_join_isr(self, broker_id: int, directory_id: UUID) -> bool:
        is_lost = directory_id == LOST or directory_id in self.failed_directories
        return broker_id not in self.inactive and broker_id not in self.dead and not is_lost

    def broker_epoch(self, broker_id: int) -> int | None:
        return self.epochs.get(broker_id, 10 * broker_id)


class Stage:
    """A partition of three replicas with its log, its cluster and its outbox."""

    def __init__(self, min_isr: int = 1) -> None:
        self.log = MemoryPartitionLog()
        self.cluster = Cluster()
        self.outbox = Outbox()
        self.partition = Partition(
            broker_id=ME,
            topic_id=UUID(int=1 << 80),
            topic="orders",
            partition=0,
            log=self.log,
            cluster=self.cluster,
            outbox=self.outbox,
            settings=PartitionSettings(min_isr, LAG_MS),
        )
        self.now_ms = NOW_MS

    def lead(self, state: PartitionState | None = None, **changes: object) -> bool:
        return self.partition.become_leader(self.now_ms, state or registration(**changes))

    def append(self, records: int = 1, acks: int = 1) -> int:
        """Returns the offset that an acks=all producer waits for."""
        batch = produced(records)
        return self.partition.append(self.now_ms, batch, required_acks=acks).required_offset

    def fetch(self, replica: int, offset: int, **arguments: int) -> PartitionRead:
        arguments.setdefault("broker_epoch", 10 * replica)
        arguments.setdefault("log_start_offset", 0)
        return self.partition.read_as_follower(
            self.now_ms, replica, offset, max_bytes=1 << 20, at_least_one_batch=True, counts=True, **arguments
        )

    def change(self) -> IsrChange:
        """The one that was asked for since the last look."""
        (change,) = self.outbox.take_isr_changes()
        return change

    def accept(self, change: IsrChange, partition_epoch: int) -> bool:
        answer = IsrAnswer(self.partition.leader_epoch, partition_epoch, change.isr)
        return self.partition.isr_change_made(self.now_ms, change, answer)

    @property
    def isr(self) -> set[int]:
        return set(self.partition.isr_state.committed)

    @property
    def maximal(self) -> set[int]:
        return set(self.partition.isr_state.maximal)


def registration(**changes: object) -> PartitionState:
    """Led by this broker in epoch 5, all three in sync."""
    state = PartitionState(
        replicas=(ME, A, B),
        directories=(MIGRATING,) * 3,
        isr=(ME, A, B),
        leader=ME,
        leader_epoch=5,
        partition_epoch=8,
    )
    return replace(state, **changes)  # type: ignore[arg-type]


def produced(records: int = 1) -> bytes:
    return write_batch(
        base_offset=0, leader_epoch=-1, timestamp_ms=NOW_MS, records=[(b"key", b"value")] * records
    )


def replicated(base_offset: int, epoch: int, records: int = 1) -> bytes:
    return rewrite_offsets(produced(records), base_offset, epoch)


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.lead()
    made.outbox.take_woken()
    return made


# Becoming leader


def test_a_new_leader_knows_where_its_epoch_begins_before_it_appends() -> None:
    stage = Stage()
    stage.log.append_as_follower(replicated(0, 4, 3), leader_epoch=4, now_ms=NOW_MS)
    assert stage.lead()
    assert (stage.partition.epoch_start_offset, stage.log.end_of_epoch(5).end_offset) == (3, 3)
    assert stage.log.end_of_epoch(4).end_offset == 3


def test_a_leader_of_old_metadata_leaves_the_epochs_of_its_log_alone() -> None:
    """A broker that restarts learns of its former leadership before it learns of its successors."""
    stage = Stage()
    stage.log.append_as_follower(replicated(0, 5, 2) + replicated(2, 6, 2), leader_epoch=6, now_ms=NOW_MS)
    stage.lead()
    assert (stage.log.latest_epoch, stage.log.end_of_epoch(5).end_offset) == (6, 2)


def test_an_older_partition_epoch_is_ignored(stage: Stage) -> None:
    assert not stage.lead(partition_epoch=7, isr=(ME,))
    assert not stage.partition.become_follower(registration(partition_epoch=7, leader=A))
    assert (stage.isr, stage.partition.partition_epoch, stage.partition.is_leader) == ({ME, A, B}, 8, True)


def test_followers_keep_their_progress_where_the_leader_epoch_stays(stage: Stage) -> None:
    stage.append(3)
    stage.fetch(A, 3)
    start = stage.partition.epoch_start_offset
    stage.append(2)
    stage.lead(partition_epoch=9, replicas=(ME, A, B, 4), directories=(MIGRATING,) * 4)
    assert stage.partition.followers[A].log_end_offset == 3
    assert stage.partition.followers[4].log_end_offset == -1
    assert stage.partition.epoch_start_offset == start


def test_followers_of_a_new_leader_are_unknown(stage: Stage) -> None:
    stage.fetch(A, 0)
    stage.partition.become_follower(registration(leader=A, leader_epoch=6, partition_epoch=9))
    assert stage.partition.followers == {}
    stage.lead(leader_epoch=7, partition_epoch=10, isr=(ME, A))
    a, b = stage.partition.followers[A], stage.partition.followers[B]
    assert (a.log_end_offset, a.broker_epoch, a.fetched_ms, a.caught_up_ms) == (-1, -1, 0, NOW_MS)
    assert (b.log_end_offset, b.caught_up_ms) == (-1, 0)


def test_a_leader_that_is_elected_again_keeps_what_it_knows_of_its_followers(stage: Stage) -> None:
    stage.append(4)
    stage.fetch(A, 4)
    stage.fetch(B, 2, last_fetched_epoch=5)
    stage.now_ms += 100
    stage.lead(leader_epoch=6, partition_epoch=9, isr=(ME, A))
    a, b = stage.partition.followers[A], stage.partition.followers[B]
    assert (a.log_end_offset, a.leader_end_offset, a.fetched_ms, a.caught_up_ms) == (
        4,
        4,
        NOW_MS + 100,
        NOW_MS + 100,
    )
    assert (b.log_end_offset, b.leader_end_offset, b.fetched_ms, b.caught_up_ms) == (2, 4, 0, 0)


def test_a_replica_that_left_the_assignment_is_forgotten(stage: Stage) -> None:
    stage.lead(partition_epoch=9, replicas=(ME, A), directories=(MIGRATING,) * 2, isr=(ME, A))
    assert set(stage.partition.followers) == {A}


def test_an_unclean_leader_leads_and_says_that_it_has_recovered() -> None:
    stage = Stage()
    stage.lead(isr=(ME,), leader_recovery_state=RECOVERING)
    assert stage.append(2) == 2
    assert stage.log.high_watermark == 2


def test_a_new_leader_keeps_its_high_watermark_until_its_followers_have_fetched() -> None:
    stage = Stage()
    stage.log.append_as_follower(replicated(0, 4, 5), leader_epoch=4, now_ms=NOW_MS)
    stage.log.update_high_watermark(2)
    stage.lead()
    assert stage.log.high_watermark == 2
    stage.fetch(A, 5, last_fetched_epoch=4)
    assert stage.log.high_watermark == 2
    stage.fetch(B, 5, last_fetched_epoch=4)
    assert stage.log.high_watermark == 5


def test_a_leader_without_followers_commits_all_it_has() -> None:
    stage = Stage()
    stage.log.append_as_follower(replicated(0, 4, 5), leader_epoch=4, now_ms=NOW_MS)
    stage.lead(replicas=(ME,), directories=(MIGRATING,), isr=(ME,))
    assert stage.log.high_watermark == 5
    assert Wake.HIGH_WATERMARK in stage.outbox.take_woken()[ORDERS]


# Becoming follower


def test_only_a_new_leader_epoch_starts_another_fetch() -> None:
    stage = Stage()
    follow = registration(leader=A)
    assert stage.partition.become_follower(follow)
    assert not stage.partition.become_follower(replace(follow, partition_epoch=9))
    assert stage.partition.become_follower(replace(follow, partition_epoch=10, leader_epoch=6))
    assert stage.partition.become_follower(replace(follow, partition_epoch=14, leader_epoch=9))


def test_a_follower_knows_no_isr_and_cuts_nothing(stage: Stage) -> None:
    stage.append(3)
    stage.partition.become_follower(registration(leader=A, leader_epoch=6, partition_epoch=9))
    assert (stage.isr, stage.partition.followers, stage.log.log_end_offset) == (set(), {}, 3)


def test_those_who_wait_hear_that_leadership_is_lost(stage: Stage) -> None:
    required = stage.append(1, acks=-1)
    stage.outbox.take_woken()
    stage.partition.become_follower(registration(leader=A, leader_epoch=6, partition_epoch=9))
    assert Wake.ROLE in stage.outbox.take_woken()[ORDERS]
    assert stage.partition.acknowledgement(required) is ErrorCode.not_leader_or_follower


# Produce


def test_a_follower_takes_no_records_of_producers() -> None:
    stage = Stage()
    with pytest.raises(NotLeaderOrFollower):
        stage.append()
    assert stage.log.log_end_offset == 0


def test_acks_all_waits_for_all_in_sync_replicas(stage: Stage) -> None:
    required = stage.append(2, acks=-1)
    assert stage.partition.acknowledgement(required) is None
    stage.fetch(A, 2)
    assert stage.partition.acknowledgement(required) is None
    stage.fetch(B, 2)
    assert stage.partition.acknowledgement(required) is ErrorCode.none


def test_acks_all_is_refused_below_min_isr_and_writes_nothing() -> None:
    stage = Stage(min_isr=2)
    stage.lead(isr=(ME,))
    with pytest.raises(NotEnoughReplicas) as refused:
        stage.append(acks=-1)
    assert error_code_of(refused.value) is ErrorCode.not_enough_replicas
    assert stage.log.log_end_offset == 0
    assert stage.append(acks=1) == 1


def test_min_isr_is_at_most_the_number_of_replicas() -> None:
    stage = Stage(min_isr=5)
    stage.lead(replicas=(ME, A), directories=(MIGRATING,) * 2, isr=(ME, A))
    assert stage.partition.effective_min_isr == 2
    assert stage.append(acks=-1) == 1


def test_the_gate_of_produce_is_the_committed_isr() -> None:
    """A follower that is about to join does not help; one that is about to leave does not hurt yet."""
    stage = Stage(min_isr=2)
    stage.lead(isr=(ME,))
    stage.fetch(A, 0)
    assert stage.maximal == {ME, A}
    with pytest.raises(NotEnoughReplicas):
        stage.append(acks=-1)
    leaving = Stage(min_isr=2)
    leaving.lead(isr=(ME, A))
    leaving.append()
    leaving.now_ms += LAG_MS + 1
    leaving.partition.maybe_shrink_isr(leaving.now_ms)
    assert leaving.change().isr == {ME}
    assert leaving.append(acks=-1) == 2


def test_an_isr_that_shrank_after_the_watermark_passed_is_told() -> None:
    stage = Stage(min_isr=2)
    stage.lead(isr=(ME, A))
    required = stage.append(acks=-1)
    stage.fetch(A, 1)
    stage.lead(partition_epoch=9, isr=(ME,))
    assert stage.partition.acknowledgement(required) is ErrorCode.not_enough_replicas_after_append


def test_an_append_wakes_readers_and_not_inside_itself(stage: Stage) -> None:
    stage.append()
    assert stage.outbox.take_woken() == {ORDERS: Wake.LOG_END}
    assert stage.outbox.take_woken() == {}


# Readers


@pytest.mark.parametrize(
    ("epoch", "error"), [(4, FencedLeaderEpoch), (6, UnknownLeaderEpoch), (5, None), (-1, None)]
)
def test_a_reader_with_another_leader_epoch(stage: Stage, epoch: int, error: type[LogError] | None) -> None:
    def read() -> None:
        stage.partition.read(0, max_bytes=100, isolation=Isolation.HIGH_WATERMARK, current_leader_epoch=epoch)

    if error is None:
        read()
    else:
        with pytest.raises(error):
            read()


def test_the_epoch_is_judged_before_the_leadership() -> None:
    stage = Stage()
    stage.partition.become_follower(registration(leader=A))
    with pytest.raises(FencedLeaderEpoch):
        stage.fetch(B, 0, current_leader_epoch=4)
    with pytest.raises(UnknownLeaderEpoch):
        stage.fetch(B, 0, current_leader_epoch=6)
    with pytest.raises(NotLeaderOrFollower):
        stage.fetch(B, 0, current_leader_epoch=5)


def test_a_consumer_may_read_a_follower_up_to_its_own_high_watermark() -> None:
    stage = Stage()
    stage.partition.become_follower(registration(leader=A))
    stage.partition.append_as_follower(NOW_MS, replicated(0, 5, 2) + replicated(2, 5, 2), 5)
    stage.partition.follow_watermarks(2, 0)
    with pytest.raises(NotLeaderOrFollower):
        stage.partition.read(0, max_bytes=1000, isolation=Isolation.HIGH_WATERMARK)
    found = stage.partition.read(0, max_bytes=1000, isolation=Isolation.HIGH_WATERMARK, leader_only=False)
    assert found.records is not None
    assert (len(found.records.pieces), found.high_watermark) == (1, 2)


def test_followers_read_above_the_high_watermark_and_consumers_do_not(stage: Stage) -> None:
    stage.append(2)
    found = stage.fetch(A, 0)
    assert found.records is not None
    assert found.records.size_bytes > 0
    read = stage.partition.read(0, max_bytes=1000, isolation=Isolation.HIGH_WATERMARK)
    assert read.records is not None
    assert read.records.size_bytes == 0


@pytest.mark.parametrize(
    ("start", "last_epoch", "offset", "found"),
    [
        (0, 2, 5, (0, 2)),
        (0, 0, 4, (0, 2)),
        (0, 6, 6, (4, 13)),
        (0, 5, 9, (4, 13)),
        (0, 10, 18, (10, 17)),
        (0, 0, 2, None),
        (0, 7, 14, None),
        (0, 9, 17, None),
        (0, 10, 17, None),
        (0, 11, 5, "out of range"),
        (5, 2, 8, (2, 5)),
        (5, 0, 5, None),
        (5, 3, 5, None),
        (5, 0, 0, "out of range"),
        (10, 5, 6, "out of range"),
        (10, 3, 6, "out of range"),
    ],
)
def test_the_last_fetched_epoch_shows_where_logs_diverge(
    start: int, last_epoch: int, offset: int, found: tuple[int, int] | str | None
) -> None:
    stage = Stage()
    log = stage.log
    shape = [(0, 0, 2), (2, 3, 6), (8, 4, 5), (13, 7, 1), (14, 9, 3)]
    for base_offset, epoch, records in shape:
        for each in range(base_offset, base_offset + records):
            log.append_as_follower(replicated(each, epoch), leader_epoch=9, now_ms=NOW_MS)
    log.update_high_watermark(17)
    log.advance_log_start_offset(start)
    stage.lead(leader_epoch=10)
    if found == "out of range":
        with pytest.raises(OffsetOutOfRange):
            stage.fetch(A, offset, last_fetched_epoch=last_epoch)
        return
    answer = stage.fetch(A, offset, last_fetched_epoch=last_epoch)
    diverging = answer.diverging
    assert (None if diverging is None else (diverging.leader_epoch, diverging.end_offset)) == found
    assert (answer.records is None) == (found is not None)


def test_a_fetch_that_diverges_or_is_fenced_does_not_count(stage: Stage) -> None:
    stage.append(5)
    stage.fetch(A, 2)
    stage.fetch(A, 5, last_fetched_epoch=3)
    with pytest.raises(FencedLeaderEpoch):
        stage.fetch(A, 5, current_leader_epoch=4)
    with pytest.raises(OffsetOutOfRange):
        stage.fetch(A, 6)
    assert stage.partition.followers[A].log_end_offset == 2


def test_a_fetch_that_was_parked_counted_when_it_came(stage: Stage) -> None:
    stage.append(3)
    stage.partition.read_as_follower(NOW_MS, A, 3, max_bytes=100, broker_epoch=20, counts=False)
    assert stage.partition.followers[A].log_end_offset == -1


def test_a_fetch_of_a_broker_that_is_no_replica(stage: Stage) -> None:
    with pytest.raises(UnknownLeaderEpoch):
        stage.fetch(9, 0, current_leader_epoch=5)
    with pytest.raises(NotLeaderOrFollower):
        stage.fetch(9, 0)
    stage.lead(partition_epoch=9, replicas=(ME, A, B, 9), directories=(MIGRATING,) * 4)
    stage.fetch(9, 0, current_leader_epoch=5)


def test_an_answer_has_the_watermark_from_before_the_fetch(stage: Stage) -> None:
    stage.append(2)
    stage.fetch(A, 2)
    assert stage.fetch(B, 2).high_watermark == 0
    assert stage.fetch(B, 2).high_watermark == 2


def test_a_new_leader_says_no_latest_offset_before_its_epoch_is_committed() -> None:
    stage = Stage()
    stage.log.append_as_follower(replicated(0, 4, 5), leader_epoch=4, now_ms=NOW_MS)
    stage.log.update_high_watermark(2)
    stage.lead(isr=(ME, A))
    assert stage.partition.latest_offset(Isolation.HIGH_WATERMARK) is None
    assert stage.partition.latest_offset(Isolation.LOG_END) == 5
    stage.fetch(A, 5, last_fetched_epoch=4)
    assert stage.partition.latest_offset(Isolation.HIGH_WATERMARK) == 5
    assert stage.partition.latest_offset(Isolation.COMMITTED) == 5


# The high watermark


def test_the_high_watermark_is_the_least_end_of_the_in_sync_replicas(stage: Stage) -> None:
    stage.append(2)
    stage.append(2)
    stage.fetch(A, 4)
    stage.fetch(B, 2)
    assert stage.log.high_watermark == 2
    assert Wake.HIGH_WATERMARK in stage.outbox.take_woken()[ORDERS]


def test_the_high_watermark_stands_still_below_min_isr() -> None:
    stage = Stage(min_isr=2)
    stage.lead(isr=(ME,))
    stage.append(3, acks=1)
    assert stage.log.high_watermark == 0
    stage.fetch(A, 3)
    assert stage.log.high_watermark == 0
    stage.accept(stage.change(), 9)
    assert stage.log.high_watermark == 3


def test_the_high_watermark_waits_for_a_caught_up_replica_that_may_join() -> None:
    stage = Stage()
    stage.lead(isr=(ME,))
    stage.append(10)
    stage.fetch(A, 10)
    change = stage.change()
    stage.partition.isr_change_refused(change, ErrorCode.operation_not_attempted)
    stage.append(10)
    assert stage.log.high_watermark == 10


@pytest.mark.parametrize("state", ["fenced or shutting down", "restarted"])
def test_the_high_watermark_does_not_wait_for_a_replica_that_may_not_join(state: str) -> None:
    stage = Stage()
    stage.lead(isr=(ME,))
    stage.append(10)
    if state == "restarted":
        stage.fetch(A, 10, broker_epoch=20)
        stage.change()
        stage.cluster.epochs[A] = 21
        stage.lead(partition_epoch=9, isr=(ME,))
    else:
        stage.cluster.inactive.add(A)
        stage.fetch(A, 10)
    stage.append(10)
    assert stage.log.high_watermark == 20


@pytest.mark.parametrize("why", ["its directory failed", "its directory is LOST: its disk is full"])
def test_acknowledgements_do_not_wait_for_a_replica_that_left_with_its_disk(why: str) -> None:
    """It was caught up a moment ago, and its broker lives: producers waited for replica.lag.time.max.ms."""
    stage = Stage()
    directory = UUID(int=700)
    stage.lead(isr=(ME, A, B), directories=(MIGRATING, directory, MIGRATING))
    stage.append(10)
    stage.fetch(A, 10)
    stage.fetch(B, 10)
    stage.append(10)
    stage.fetch(B, 20)
    assert stage.log.high_watermark == 10
    if why == "its directory failed":
        # The controller's records may come in two images.
        stage.lead(partition_epoch=9, isr=(ME, B), directories=(MIGRATING, directory, MIGRATING))
        stage.cluster.failed_directories.add(directory)
        stage.partition.brokers_changed(stage.now_ms)
    else:
        stage.lead(partition_epoch=9, isr=(ME, B), directories=(MIGRATING, LOST, MIGRATING))
    assert stage.log.high_watermark == 20


def test_a_replica_on_a_full_disk_does_not_join_before_it_has_space() -> None:
    stage = Stage()
    stage.lead(isr=(ME,), directories=(MIGRATING, LOST, MIGRATING))
    stage.append(10)
    stage.fetch(A, 10)
    assert stage.outbox.take_isr_changes() == []
    stage.lead(isr=(ME,), partition_epoch=9)
    stage.fetch(A, 10)
    assert stage.change().isr == {ME, A}


def test_the_high_watermark_does_not_fall_when_a_lagging_replica_joins(stage: Stage) -> None:
    stage.append(4)
    stage.fetch(A, 4)
    stage.fetch(B, 4)
    stage.lead(partition_epoch=9, replicas=(ME, A, B, 4), directories=(MIGRATING,) * 4)
    stage.fetch(4, 1)
    assert stage.log.high_watermark == 4


def test_a_replica_that_is_leaving_holds_the_watermark_until_the_controller_agrees(stage: Stage) -> None:
    stage.append(4)
    stage.now_ms += LAG_MS + 1
    stage.fetch(A, 4)
    stage.partition.maybe_shrink_isr(stage.now_ms)
    change = stage.change()
    assert change.isr == {ME, A}
    assert (stage.isr, stage.maximal) == ({ME, A, B}, {ME, A, B})
    assert stage.log.high_watermark == 0
    stage.accept(change, 9)
    assert (stage.isr, stage.log.high_watermark) == ({ME, A}, 4)


def test_a_replica_that_is_joining_counts_before_the_controller_agrees() -> None:
    stage = Stage()
    stage.lead(isr=(ME, A))
    stage.append(2)
    stage.fetch(A, 2)
    stage.fetch(B, 2)
    assert stage.change().isr == {ME, A, B}
    assert (stage.isr, stage.maximal) == ({ME, A}, {ME, A, B})
    stage.append(2)
    stage.fetch(A, 4)
    assert stage.log.high_watermark == 2
    stage.now_ms += 10 * LAG_MS
    stage.append(2)
    stage.fetch(A, 6)
    assert stage.log.high_watermark == 2


# Caught up


def test_a_follower_is_caught_up_by_what_was_there_at_its_fetch_before(stage: Stage) -> None:
    stage.append(3)
    stage.append(3)
    stage.now_ms = NOW_MS + 10
    stage.fetch(A, 3)
    assert stage.partition.followers[A].caught_up_ms == NOW_MS
    stage.now_ms = NOW_MS + 20
    stage.append(3)
    stage.fetch(A, 6)
    assert stage.partition.followers[A].caught_up_ms == NOW_MS + 10
    stage.now_ms = NOW_MS + 30
    stage.fetch(A, 9)
    assert stage.partition.followers[A].caught_up_ms == NOW_MS + 30


def test_a_follower_at_the_end_of_the_log_is_never_shrunk(stage: Stage) -> None:
    stage.append(3)
    for replica in (A, B):
        stage.fetch(replica, 3)
    stage.partition.maybe_shrink_isr(NOW_MS + 100 * LAG_MS)
    assert stage.outbox.take_isr_changes() == []


def test_a_slow_follower_within_the_lag_time_stays(stage: Stage) -> None:
    stage.append(3)
    stage.fetch(A, 1)
    stage.partition.maybe_shrink_isr(NOW_MS + LAG_MS)
    assert stage.outbox.take_isr_changes() == []
    stage.partition.maybe_shrink_isr(NOW_MS + LAG_MS + 1)
    assert stage.change().isr == {ME}


def test_a_member_that_is_no_replica_any_more_leaves(stage: Stage) -> None:
    stage.lead(partition_epoch=9, isr=(ME, A, 7))
    stage.fetch(A, 0)
    stage.partition.maybe_shrink_isr(NOW_MS)
    assert stage.change().isr == {ME, A}


# Expansion


def outside_isr() -> Stage:
    stage = Stage()
    stage.log.append_as_follower(replicated(0, 4, 4) + replicated(4, 4, 2), leader_epoch=4, now_ms=NOW_MS)
    stage.log.update_high_watermark(4)
    stage.lead(isr=(ME, A))
    return stage


def test_a_follower_joins_only_when_it_has_reached_this_leaders_epoch() -> None:
    stage = outside_isr()
    stage.fetch(B, 4, last_fetched_epoch=4)
    assert stage.outbox.take_isr_changes() == []
    stage.fetch(B, 6, last_fetched_epoch=4)
    change = stage.change()
    assert change.members == (IsrMember(ME, 10), IsrMember(A, -1), IsrMember(B, 30))
    assert (change.leader_epoch, change.partition_epoch) == (5, 8)


def test_a_follower_joins_only_when_it_has_all_that_is_committed() -> None:
    stage = outside_isr()
    stage.append(4)
    stage.fetch(A, 10, last_fetched_epoch=5)
    assert stage.log.high_watermark == 10
    stage.fetch(B, 6, last_fetched_epoch=4)
    assert stage.outbox.take_isr_changes() == []


def test_one_change_is_under_way_at_a_time() -> None:
    stage = Stage()
    stage.lead(isr=(ME,))
    stage.fetch(A, 0)
    stage.fetch(B, 0)
    assert stage.change().isr == {ME, A}
    stage.partition.maybe_shrink_isr(NOW_MS + 10 * LAG_MS)
    assert stage.outbox.take_isr_changes() == []


def test_a_fenced_or_leaving_follower_does_not_join_until_it_is_back() -> None:
    stage = Stage()
    stage.lead(isr=(ME,))
    stage.cluster.inactive.add(A)
    stage.fetch(A, 0)
    assert stage.outbox.take_isr_changes() == []
    stage.cluster.inactive.clear()
    stage.fetch(A, 0)
    assert stage.change().isr == {ME, A}


@pytest.mark.parametrize(("epoch", "joins"), [(20, True), (-1, True), (21, False)])
def test_the_process_that_fetches_must_be_the_registered_one_to_join(epoch: int, joins: bool) -> None:
    """A newer epoch is read and counted (the leader's metadata may lag), but may not join yet."""
    stage = Stage()
    stage.lead(isr=(ME,))
    stage.fetch(A, 0, broker_epoch=epoch)
    assert bool(stage.outbox.take_isr_changes()) is joins
    assert stage.partition.followers[A].broker_epoch == epoch


def test_a_fetch_from_before_a_restart_is_fenced(stage: Stage) -> None:
    stage.append(3)
    stage.fetch(A, 1)
    stage.cluster.epochs[A] = 40
    with pytest.raises(NotLeaderOrFollower):
        stage.fetch(A, 3, broker_epoch=20)
    assert stage.partition.followers[A].log_end_offset == 1


# Answers of the controller


def pending_expansion() -> tuple[Stage, IsrChange]:
    stage = Stage()
    stage.lead(isr=(ME, A))
    stage.fetch(B, 0)
    return stage, stage.change()


@pytest.mark.parametrize("error", [ErrorCode.operation_not_attempted, ErrorCode.ineligible_replica])
def test_a_refused_change_is_rolled_back_and_tried_again_at_a_later_fetch(error: ErrorCode) -> None:
    stage, change = pending_expansion()
    assert stage.partition.isr_change_refused(change, error) is RefusedChange.ROLL_BACK
    assert stage.maximal == {ME, A}
    stage.fetch(B, 0)
    assert stage.change().isr == {ME, A, B}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
    ],
)
def test_a_leader_with_old_metadata_keeps_its_change_pending_and_waits(error: ErrorCode) -> None:
    stage, change = pending_expansion()
    assert stage.partition.isr_change_refused(change, error) is RefusedChange.WAIT
    assert stage.maximal == {ME, A, B}
    stage.fetch(B, 0)
    stage.partition.maybe_shrink_isr(NOW_MS + 10 * LAG_MS)
    assert stage.outbox.take_isr_changes() == []
    assert stage.partition.failed_isr_changes == 1


def test_any_other_error_sends_the_same_change_again() -> None:
    stage, change = pending_expansion()
    answer = stage.partition.isr_change_refused(change, ErrorCode.unknown_server_error)
    assert answer is RefusedChange.SEND_AGAIN
    assert stage.change() is change


def test_an_answer_of_an_older_partition_or_another_leader_epoch_is_ignored() -> None:
    for answer in (IsrAnswer(5, 7, frozenset({ME, A, B})), IsrAnswer(6, 9, frozenset({ME, A, B}))):
        stage, change = pending_expansion()
        assert not stage.partition.isr_change_made(NOW_MS, change, answer)
        assert stage.isr == {ME, A}
        assert stage.partition.isr_state.is_in_flight


def test_an_answer_of_the_same_partition_epoch_is_taken() -> None:
    """The image was faster with another change of nothing."""
    stage, change = pending_expansion()
    assert stage.accept(change, 8)
    assert stage.isr == {ME, A, B}


def test_a_newer_registration_settles_what_is_pending_and_the_late_answer_is_ignored() -> None:
    stage, change = pending_expansion()
    stage.lead(partition_epoch=9, isr=(ME,))
    assert (stage.isr, stage.partition.isr_state.is_in_flight) == ({ME}, False)
    assert not stage.accept(change, 9)
    assert stage.partition.isr_change_refused(change, ErrorCode.ineligible_replica) is None
    assert stage.isr == {ME}


def test_the_registration_that_is_known_leaves_a_pending_change_alone() -> None:
    """The image of an ISR that the controller's answer told of already: what was asked for since may be made."""
    stage, _ = pending_expansion()
    stage.lead(isr=(ME, A))
    assert stage.maximal == {ME, A, B}


# The follower's log


def test_a_follower_takes_the_watermark_of_its_leader_as_far_as_its_log_reaches() -> None:
    stage = Stage()
    stage.partition.become_follower(registration(leader=A))
    stage.partition.append_as_follower(NOW_MS, replicated(0, 5, 3), 5)
    stage.partition.follow_watermarks(9, 0)
    assert stage.log.high_watermark == 3
    assert stage.outbox.take_woken()[ORDERS] & Wake.HIGH_WATERMARK
    stage.partition.follow_watermarks(9, 2)
    assert stage.log.log_start_offset == 2


def test_an_empty_follower_begins_with_the_batch_that_its_leaders_log_begins_in() -> None:
    stage = Stage()
    stage.partition.become_follower(registration(leader=A))
    stage.log.truncate_fully_and_start_at(5)
    stage.partition.append_as_follower(NOW_MS, replicated(3, 4, 4), 5)
    stage.partition.follow_watermarks(7, 5)
    assert (stage.log.log_start_offset, stage.log.log_end_offset) == (5, 7)
    assert len(stage.log.batches) == 1


def test_a_follower_with_records_takes_no_batch_below_its_end() -> None:
    stage = Stage()
    stage.partition.become_follower(registration(leader=A))
    stage.log.truncate_fully_and_start_at(5)
    stage.partition.append_as_follower(NOW_MS, replicated(5, 4, 4), 5)
    with pytest.raises(LogError):
        stage.partition.append_as_follower(NOW_MS, replicated(3, 4, 4), 5)


# DeleteRecords


def test_the_low_watermark_is_the_least_log_start_of_the_living(stage: Stage) -> None:
    stage.append(5)
    for replica in (A, B):
        stage.fetch(replica, 5)
    assert stage.partition.delete_records(-1) == 5
    assert (stage.log.log_start_offset, stage.partition.low_watermark) == (5, 0)
    stage.fetch(A, 5, log_start_offset=5)
    assert stage.partition.low_watermark == 0
    stage.cluster.dead.add(B)
    assert stage.partition.low_watermark == 5
    assert Wake.LOG_START in stage.outbox.take_woken()[ORDERS]


@pytest.mark.parametrize("offset", [-2, 3])
def test_records_are_deleted_up_to_the_high_watermark_at_most(stage: Stage, offset: int) -> None:
    stage.append(5)
    stage.fetch(A, 2)
    stage.fetch(B, 2)
    with pytest.raises(OffsetOutOfRange):
        stage.partition.delete_records(offset)
    assert stage.log.log_start_offset == 0


def test_a_lower_min_insync_replicas_lets_the_high_watermark_move_that_stood_below_it() -> None:
    """An operator's way out when replicas are lost: else the next append or change of the ISR would move it."""
    stage = Stage(min_isr=2)
    stage.lead(isr=(ME,))
    stage.append(3)
    stage.outbox.take_woken()
    assert stage.log.high_watermark == 0
    stage.partition.change_min_insync_replicas(stage.now_ms, 1)
    assert stage.log.high_watermark == 3
    assert stage.outbox.take_woken() == {ORDERS: Wake.HIGH_WATERMARK}
