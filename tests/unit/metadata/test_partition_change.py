"""The rules of one partition's change: who is elected, which epochs move, when a reassignment is complete."""

from typing import Any
from uuid import UUID

import pytest

from metadata.controller.partition_change import Election, PartitionChange
from metadata.image.partition_state import (
    NO_LEADER,
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


def test_eligible_leader_replicas_of_another_controller_are_cleared() -> None:
    partition = after(state((0, 1), (0,), 0, elr=(1,)), {0, 1}, target_isr=(0, 1))
    assert partition.elr == ()
