"""The rules of one partition's change: who is elected, which epochs move, when a reassignment is complete."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller.partitions.partition_change import Election, PartitionChange
from kquorum.metadata.image.partition_state import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    PartitionState,
    partition_after_change,
)

TOPIC_ID = UUID(int=77)
DIRECTORIES = {replica: UUID(int=1000 + replica) for replica in range(6)}


def state(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int, **others: Any) -> PartitionState:
    directories = tuple(DIRECTORIES[replica] for replica in replicas)
    return PartitionState(replicas=replicas, directories=directories, isr=isr, leader=leader, **others)


def change(partition: PartitionState, up: set[int], *, level: int = 25, **targets: Any) -> PartitionChange:
    return PartitionChange(
        topic_id=TOPIC_ID,
        partition_id=0,
        partition=partition,
        metadata_version=level,
        is_acceptable=lambda replica: replica in up,
        default_directory=DIRECTORIES.__getitem__,
        **targets,
    )


def after(partition: PartitionState, up: set[int], **targets: Any) -> PartitionState:
    record = change(partition, up, **targets).record()
    assert record is not None
    return partition_after_change(partition, record)


@pytest.mark.parametrize(
    ("leader", "isr", "up", "election", "expected"),
    [
        (0, (0, 1, 2), {0, 1, 2}, Election.ONLINE, 0),
        (1, (0, 1, 2), {0, 1, 2}, Election.ONLINE, 1),
        (1, (0, 1, 2), {0, 1, 2}, Election.PREFERRED, 0),
        (1, (1, 2), {0, 1, 2}, Election.PREFERRED, 1),
        (1, (0, 1, 2), {0, 2}, Election.ONLINE, 0),
        (0, (0, 2), {1, 2}, Election.ONLINE, 2),
        (0, (0,), {1, 2}, Election.ONLINE, NO_LEADER),
        (0, (0,), {1, 2}, Election.UNCLEAN, 1),
        (0, (0, 2), {1, 2}, Election.UNCLEAN, 2),
        (NO_LEADER, (0,), {0}, Election.ONLINE, 0),
        (0, (0,), set(), Election.UNCLEAN, NO_LEADER),
        (1, (1,), {0, 2}, Election.PREFERRED, NO_LEADER),
    ],
)
def test_election(leader: int, isr: tuple[int, ...], up: set[int], election: Election, expected: int) -> None:
    partition = state((0, 1, 2), isr, leader)
    record = change(partition, up, election=election).record()
    led = partition if record is None else partition_after_change(partition, record)
    assert led.leader == expected


def test_nothing_to_change_makes_no_record() -> None:
    assert change(state((0, 1), (0, 1), 0), {0, 1}, target_isr=(0, 1)).record() is None


def test_every_change_of_leader_bumps_both_epochs() -> None:
    partition = after(state((0, 1), (0, 1), 0, leader_epoch=4, partition_epoch=9), {1}, target_isr=(1,))
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 5, 10)


@pytest.mark.parametrize(("level", "bump"), [(11, 1), (12, 0), (25, 0)])
def test_shrink_bumps_the_leader_epoch_below_3_6(level: int, bump: int) -> None:
    partition = after(state((0, 1), (0, 1), 0), {0, 1}, level=level, target_isr=(0,))
    assert (partition.leader_epoch, partition.partition_epoch) == (bump, 1)


@pytest.mark.parametrize("level", [11, 25])
def test_expansion_never_bumps_the_leader_epoch(level: int) -> None:
    partition = after(state((0, 1), (0,), 0), {0, 1}, level=level, target_isr=(0, 1))
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)


def test_last_member_of_the_isr_stays_in_it() -> None:
    partition = after(state((0, 1), (0,), 0), {1}, target_isr=())
    assert (partition.leader, partition.isr) == (NO_LEADER, (0,))


@pytest.mark.parametrize(("level", "recovery"), [(2, 0), (3, RECOVERING)])
def test_unclean_leader_is_alone_and_recovering(level: int, recovery: int) -> None:
    partition = after(state((0, 1), (0,), 0), {1}, level=level, election=Election.UNCLEAN, target_isr=())
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), recovery)


def test_recovery_ends_when_the_leader_says_so() -> None:
    recovering = state((0, 1), (0,), 0, leader_recovery_state=RECOVERING)
    assert after(recovering, {0, 1}, target_recovery_state=0).leader_recovery_state == 0


def test_reassignment_waits_for_all_that_are_to_stay() -> None:
    partition = state((3, 4, 0, 1), (0, 1, 3), 0, removing_replicas=(0, 1), adding_replicas=(3, 4))
    assert change(partition, {0, 1, 3, 4}).record() is None
    done = after(partition, {0, 1, 3, 4}, target_isr=(0, 1, 3, 4))
    assert (done.replicas, done.isr, done.leader) == ((3, 4), (3, 4), 3)
    assert (done.removing_replicas, done.adding_replicas) == ((), ())
    assert done.directories == (DIRECTORIES[3], DIRECTORIES[4])
    assert done.leader_epoch == 1


def test_dropping_a_replica_bumps_the_epoch_of_the_leader_that_stays() -> None:
    partition = after(state((0, 1, 2), (0, 1), 0), {0, 1}, target_replicas=(0, 1))
    assert (partition.leader, partition.leader_epoch) == (0, 1)


def test_new_replicas_get_directories_where_the_level_has_them() -> None:
    partition = state((0, 1), (0, 1), 0)
    targets: dict[str, Any] = {"target_replicas": (0, 1, 2), "target_adding": (2,)}
    record = change(partition, {0, 1, 2}, **targets).record()
    assert record is not None
    assert record.directories == (DIRECTORIES[0], DIRECTORIES[1], DIRECTORIES[2])
    record = change(partition, {0, 1, 2}, level=14, **targets).record()
    assert record is not None
    assert record.directories is None


def leaderless(
    replicas: tuple[int, ...] = (0, 1, 2), isr: tuple[int, ...] = (), **others: Any
) -> PartitionState:
    """As a controller of Kafka's with eligible leader replicas leaves it."""
    return state(replicas, isr, NO_LEADER, **others)


class TestEligibleLeaderReplicas:
    @pytest.mark.parametrize("election", Election)
    def test_one_of_them_leads_an_empty_isr_alone_and_cleanly(self, election: Election) -> None:
        partition = after(leaderless(elr=(2, 1)), {1, 2}, election=election, min_in_sync_replicas=2)
        assert (partition.leader, partition.isr, partition.elr) == (1, (1,), (2,))
        assert (partition.leader_recovery_state, partition.leader_epoch) == (RECOVERED, 1)

    def test_preferred_one_comes_first(self) -> None:
        partition = leaderless(elr=(2, 1, 0))
        led = after(partition, {0, 1, 2}, election=Election.PREFERRED, min_in_sync_replicas=3)
        assert (led.leader, led.elr) == (0, (1, 2))

    def test_none_leads_while_the_isr_has_a_member(self) -> None:
        assert change(leaderless(isr=(0,), elr=(1,)), {1}, min_in_sync_replicas=2).record() is None

    def test_one_takes_over_from_the_last_member_of_the_isr(self) -> None:
        partition = after(state((0, 1), (0,), 0, elr=(1,)), {1}, target_isr=(), min_in_sync_replicas=2)
        assert (partition.leader, partition.isr, partition.elr) == (1, (1,), (0,))

    def test_one_which_is_no_replica_any_more_does_not_lead(self) -> None:
        partition = after(leaderless(replicas=(0, 1), elr=(2,)), {2}, min_in_sync_replicas=2)
        assert (partition.leader, partition.elr) == (NO_LEADER, ())

    def test_they_are_kept_while_none_can_be_elected(self) -> None:
        waiting = leaderless(elr=(1,), last_known_elr=(0,))
        assert change(waiting, {0, 2}, min_in_sync_replicas=2).record() is None

    @pytest.mark.parametrize(("elr", "expected"), [((), (0,)), ((1,), (0, 1))])
    def test_last_of_the_isr_becomes_one_when_it_goes(
        self, elr: tuple[int, ...], expected: tuple[int, ...]
    ) -> None:
        partition = state((0, 1), (0,), 0, elr=elr)
        left = after(partition, set(), target_isr=(), min_in_sync_replicas=2)
        assert (left.leader, left.isr, left.elr) == (NO_LEADER, (), expected)

    @pytest.mark.parametrize(("minimum", "expected"), [(1, ()), (2, (1,)), (3, (1,))])
    def test_a_replica_that_leaves_a_too_small_isr_is_eligible(
        self, minimum: int, expected: tuple[int, ...]
    ) -> None:
        left = after(state((0, 1), (0, 1), 0), {0}, target_isr=(0,), min_in_sync_replicas=minimum)
        assert (left.isr, left.elr) == ((0,), expected)

    @pytest.mark.parametrize(
        ("replicas", "isr", "expected"),
        [((0, 1, 2), (0,), (1, 2)), ((0, 1, 2), (0, 1), ()), ((0, 1, 2), (0, 1, 2), ()), ((0,), (0,), ())],
    )
    def test_they_end_with_enough_in_sync(
        self, replicas: tuple[int, ...], isr: tuple[int, ...], expected: tuple[int, ...]
    ) -> None:
        partition = state(replicas, (0,), 0, elr=(1, 2))
        record = change(partition, {0, 1, 2}, target_isr=isr, min_in_sync_replicas=2).record()
        assert (partition if record is None else partition_after_change(partition, record)).elr == expected

    def test_who_is_in_sync_again_is_none_of_them(self) -> None:
        partition = state((0, 1, 2), (0,), 0, elr=(1, 2))
        joined = after(partition, {0, 1, 2}, target_isr=(0, 1), min_in_sync_replicas=3)
        assert (joined.isr, joined.elr) == ((0, 1), (2,))

    def test_an_unclean_election_ends_them(self) -> None:
        partition = leaderless(elr=(1,), last_known_elr=(0,))
        led = after(partition, {2}, election=Election.UNCLEAN, min_in_sync_replicas=2)
        assert (led.leader, led.isr, led.leader_recovery_state) == (2, (2,), RECOVERING)
        assert (led.elr, led.last_known_elr) == ((), ())


class TestLastKnownLeader:
    @pytest.mark.parametrize("election", Election)
    def test_it_leads_without_an_eligible_replica(self, election: Election) -> None:
        partition = after(
            leaderless(last_known_elr=(1,)), {0, 1, 2}, election=election, min_in_sync_replicas=2
        )
        assert (partition.leader, partition.isr, partition.last_known_elr) == (1, (1,), ())
        assert partition.leader_recovery_state == RECOVERING

    @pytest.mark.parametrize(
        ("lists", "up"),
        [
            ({"last_known_elr": (1,)}, {0, 2}),
            ({"last_known_elr": (0, 1)}, {0, 1, 2}),
            ({"last_known_elr": (1,), "elr": (2,)}, {0, 1}),
            ({"last_known_elr": (1,), "isr": (2,)}, {0, 1}),
            ({"last_known_elr": (5,)}, {5}),
            ({"last_known_elr": (-1,)}, {0, 1}),
        ],
    )
    def test_there_is_no_leader(self, lists: dict[str, Any], up: set[int]) -> None:
        assert change(leaderless(**lists), up, min_in_sync_replicas=2).record() is None

    def test_it_is_remembered_when_the_isr_gets_empty(self) -> None:
        partition = state((0, 1), (0,), 0, last_known_elr=(1,))
        left = after(partition, {1}, target_isr=(), min_in_sync_replicas=2)
        assert (left.leader, left.elr, left.last_known_elr) == (NO_LEADER, (0,), (0,))

    def test_only_leaders_are_remembered(self) -> None:
        left = after(leaderless(isr=(0,), last_known_elr=(1,)), {1}, target_isr=(), min_in_sync_replicas=2)
        assert (left.isr, left.elr, left.last_known_elr) == ((), (0,), (1,))

    def test_any_other_leads_only_where_an_unclean_election_is_allowed(self) -> None:
        partition = leaderless(last_known_elr=(1,))
        led = after(partition, {2}, election=Election.UNCLEAN, min_in_sync_replicas=2)
        assert (led.leader, led.last_known_elr) == (2, ())

    def test_it_is_forgotten_where_there_is_a_leader(self) -> None:
        partition = after(state((0, 1), (0, 1), 0, last_known_elr=(1,)), {0, 1}, min_in_sync_replicas=1)
        assert (partition.leader, partition.last_known_elr, partition.leader_epoch) == (0, (), 0)


class TestListsThatNobodyKeepsAnyMore:
    """Without the feature, from a controller that had it."""

    def test_they_are_cleared_when_the_partition_changes(self) -> None:
        partition = state((0, 1), (0,), 0, elr=(1,), last_known_elr=(1,))
        changed = after(partition, {0, 1}, target_isr=(0, 1))
        assert (changed.elr, changed.last_known_elr) == ((), (1,))

    def test_none_takes_over_from_the_last_member_of_the_isr(self) -> None:
        partition = after(state((0, 1), (0,), 0, elr=(1,)), {1}, target_isr=())
        assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (0,), ())

    def test_an_isr_that_is_empty_already_is_led_from_them(self) -> None:
        assert change(leaderless(elr=(1, 2)), {0}).record() is None
        partition = after(leaderless(elr=(1, 2)), {0, 2})
        assert (partition.leader, partition.isr, partition.elr) == (2, (2,), ())

    def test_last_known_leader_is_not_elected(self) -> None:
        assert change(leaderless(last_known_elr=(1,)), {0, 1}).record() is None
