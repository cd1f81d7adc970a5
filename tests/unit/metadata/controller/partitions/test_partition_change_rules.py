"""The cases that Kafka's PartitionChangeBuilderTest has, at a level of each version of the record.

Versions: 0 without directories, 1 with them, 2 with eligible leader replicas (KIP-966), which are on there.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import pytest

from kquorum.metadata.controller.partitions.partition_change import Election, PartitionChange
from kquorum.metadata.image.directories import LOST, UNASSIGNED
from kquorum.metadata.image.metadata_version import record_version
from kquorum.metadata.image.partition_state import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionState,
    partition_after_change,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord

TOPIC_ID = UUID(int=5)
LEVELS: Final = {0: 15, 1: 17, 2: 23}
VERSIONS = pytest.mark.parametrize("version", LEVELS)
NO_RECORD: Final = None


def directory(replica: int) -> UUID:
    return UUID(int=5000 + replica)


def state(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int, **others: Any) -> PartitionState:
    values = {"leader_epoch": 100, "partition_epoch": 200, "directories": tuple(map(directory, replicas))}
    return PartitionState(replicas=replicas, isr=isr, leader=leader, **{**values, **others})


def build(
    partition: PartitionState,
    *,
    version: int = 2,
    level: int | None = None,
    up: Callable[[int], bool] = lambda _replica: True,
    minimum: int = 2,
    **targets: Any,
) -> PartitionChangeRecord | None:
    metadata_version = LEVELS[version] if level is None else level
    record = PartitionChange(
        topic_id=TOPIC_ID,
        partition_id=0,
        partition=partition,
        metadata_version=metadata_version,
        is_acceptable=up,
        default_directory=lambda _replica: UNASSIGNED,
        min_in_sync_replicas=minimum if version == 2 and level is None else None,
        **targets,
    ).record()
    if record is not None and level is None:
        assert record_version(record, metadata_version) == version
    return record


def expected(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, **fields)


def directories(version: int, *ids: UUID) -> dict[str, Any]:
    return {"directories": ids} if version >= 1 else {}


FOO = state((2, 1, 3), (2, 1, 3), 1)
BAR = state((1, 2, 3, 4), (1, 2, 3), 1, removing_replicas=(1,), adding_replicas=(4,))
BAZ = state((2, 1, 3), (1, 3), 3)
OFFLINE = state((2, 1, 3), (3,), NO_LEADER)
OFFLINE_WITH_ELR = state((2, 1, 3), (), NO_LEADER, elr=(3,), last_known_elr=(2,))


def not_3(replica: int) -> bool:
    return replica != 3


def only_1(replica: int) -> bool:
    return replica == 1


@VERSIONS
@pytest.mark.parametrize(
    ("partition", "up", "targets", "leader", "recovery"),
    [
        (FOO, not_3, {"election": Election.PREFERRED}, 2, RECOVERED),
        (FOO, not_3, {}, 1, RECOVERED),
        (FOO, not_3, {"election": Election.UNCLEAN}, 1, RECOVERED),
        (FOO, not_3, {"target_isr": (1, 3)}, 1, RECOVERED),
        (FOO, not_3, {"election": Election.UNCLEAN, "target_isr": (1, 3)}, 1, RECOVERED),
        (FOO, not_3, {"target_isr": (3,)}, NO_LEADER, RECOVERED),
        (FOO, not_3, {"election": Election.UNCLEAN, "target_isr": (3,)}, 2, RECOVERING),
        (
            FOO,
            not_3,
            {"election": Election.UNCLEAN, "target_isr": (4,), "target_replicas": (2, 1, 3, 4)},
            4,
            RECOVERED,
        ),
        (BAZ, bool, {"election": Election.PREFERRED}, 3, RECOVERED),
        (BAZ, bool, {}, 3, RECOVERED),
        (BAZ, bool, {"election": Election.UNCLEAN}, 3, RECOVERED),
    ],
)
def test_election(
    version: int,
    partition: PartitionState,
    up: Callable[[int], bool],
    targets: dict[str, Any],
    leader: int,
    recovery: int,
) -> None:
    record = build(partition, version=version, up=up, **targets)
    after = partition if record is None else partition_after_change(partition, record)
    assert (after.leader, after.leader_recovery_state) == (leader, recovery)


class TestLeaderEpoch:
    """A record that names a leader bumps its epoch."""

    @VERSIONS
    def test_nothing_changed(self, version: int) -> None:
        assert build(FOO, version=version, up=not_3) is NO_RECORD

    @pytest.mark.parametrize(
        ("level", "leader"), [(8, 1), (11, 1), (12, NO_LEADER_CHANGE), (17, -2), (22, -2), (30, -2)]
    )
    def test_shrink(self, level: int, leader: int) -> None:
        assert build(FOO, level=level, up=not_3, target_isr=(2, 1)) == expected(isr=(2, 1), leader=leader)

    @pytest.mark.parametrize("level", [8, 11, 12, 17, 22])
    def test_expansion(self, level: int) -> None:
        partition = state((2, 1, 3, 4), (2, 1, 3), 1)
        assert build(partition, level=level, target_isr=(2, 1, 3, 4)) == expected(isr=(2, 1, 3, 4))

    @pytest.mark.parametrize("level", [8, 11, 12, 17, 22])
    def test_disjoint_replicas(self, level: int) -> None:
        record = build(FOO, level=level, up=not_3, target_replicas=(2, 1, 4))
        assert record is not None
        assert record.leader == 1

    @pytest.mark.parametrize("level", [8, 11, 12, 17])
    def test_isr_that_cannot_become_empty(self, level: int) -> None:
        """KAFKA-16624: nothing shrank, so nothing is bumped."""
        assert build(state((2,), (2,), 2), level=level, up=bool) is NO_RECORD
        gone = build(state((2,), (2,), NO_LEADER), level=level, up=lambda _replica: False, target_isr=())
        assert gone is NO_RECORD


@VERSIONS
def test_no_change(version: int) -> None:
    assert build(FOO, version=version, up=not_3) is NO_RECORD
    assert build(FOO, version=version, up=not_3, election=Election.UNCLEAN) is NO_RECORD
    assert build(BAR, version=version, up=not_3) is NO_RECORD
    assert build(BAR, version=version, up=not_3, election=Election.UNCLEAN) is NO_RECORD
    assert build(BAZ, version=version, election=Election.PREFERRED) is NO_RECORD


@VERSIONS
def test_isr_change(version: int) -> None:
    assert build(FOO, version=version, up=not_3, target_isr=(2, 1)) == expected(isr=(2, 1))
    assert build(FOO, version=version, up=not_3, target_isr=(2, 3)) == expected(isr=(2, 3), leader=2)


class TestReassignment:
    @VERSIONS
    def test_rearranges_replicas(self, version: int) -> None:
        wanted = directories(version, directory(3), directory(2), directory(1))
        record = build(FOO, version=version, up=not_3, target_replicas=(3, 2, 1))
        assert record == expected(replicas=(3, 2, 1), **wanted)

    @VERSIONS
    def test_isr_enlargement_completes_it(self, version: int) -> None:
        wanted = directories(version, directory(2), directory(3), directory(4))
        record = build(BAR, version=version, up=not_3, target_isr=(1, 2, 3, 4))
        changes: dict[str, Any] = {"replicas": (2, 3, 4), "isr": (2, 3, 4), "leader": 2}
        assert record == expected(**changes, removing_replicas=(), adding_replicas=(), **wanted)

    @VERSIONS
    def test_revert(self, version: int) -> None:
        targets: dict[str, Any] = {"target_replicas": (1, 2, 3), "target_isr": (1, 2, 3)}
        record = build(BAR, version=version, up=not_3, **targets, target_removing=(), target_adding=())
        wanted = directories(version, directory(1), directory(2), directory(3))
        assert record == expected(
            replicas=(1, 2, 3), leader=1, removing_replicas=(), adding_replicas=(), **wanted
        )

    @VERSIONS
    def test_removing_a_replica(self, version: int) -> None:
        record = build(FOO, version=version, up=not_3, target_replicas=(1, 2, 3), target_removing=(3,))
        wanted = directories(version, directory(1), directory(2))
        assert record == expected(replicas=(1, 2), isr=(2, 1), leader=1, **wanted)

    @VERSIONS
    def test_adding_a_replica(self, version: int) -> None:
        record = build(FOO, version=version, up=not_3, target_replicas=(1, 2, 3, 4), target_adding=(4,))
        wanted = directories(version, directory(1), directory(2), directory(3), UNASSIGNED)
        assert record == expected(replicas=(1, 2, 3, 4), adding_replicas=(4,), **wanted)

    def test_stopped_leader_is_demoted_without_another_possible_leader(self) -> None:
        partition = state((2, 3, 0, 1), (0, 1), 0, removing_replicas=(0, 1), adding_replicas=(2, 3))
        record = build(partition, level=2, up=lambda _replica: False, target_isr=(0, 1, 2, 3))
        changes: dict[str, Any] = {"replicas": (2, 3), "isr": (2, 3), "leader": NO_LEADER}
        assert record == expected(**changes, removing_replicas=(), adding_replicas=())


class TestRecovery:
    @VERSIONS
    def test_unclean_election(self, version: int) -> None:
        record = build(FOO, version=version, up=not_3, election=Election.UNCLEAN, target_isr=(3,))
        assert record == expected(isr=(2,), leader=2, leader_recovery_state=RECOVERING)
        offline = OFFLINE_WITH_ELR if version == 2 else OFFLINE
        lists: dict[str, Any] = {"eligible_leader_replicas": (), "last_known_elr": ()} if version == 2 else {}
        wanted = expected(isr=(1,), leader=1, leader_recovery_state=RECOVERING, **lists)
        assert build(offline, version=version, up=only_1, election=Election.UNCLEAN) == wanted
        again = build(offline, version=version, up=only_1, election=Election.UNCLEAN, target_isr=(2,))
        assert again == wanted

    @pytest.mark.parametrize("level", [2, 3])
    def test_a_change_of_leader_does_not_end_it(self, level: int) -> None:
        partition = state((1, 2, 3), (1,), 1, leader_recovery_state=RECOVERING)
        gone = build(partition, level=level, up=lambda _replica: False, target_isr=())
        assert gone == expected(leader=NO_LEADER)
        back = build(partition_after_change(partition, gone), level=level)
        assert back == expected(leader=1, leader_recovery_state=NO_RECOVERY_CHANGE)

    @pytest.mark.parametrize(("level", "change"), [(2, NO_RECOVERY_CHANGE), (3, RECOVERING)])
    def test_unclean_election_begins_it(self, level: int, change: int) -> None:
        partition = state((1, 2, 3), (2, 3), NO_LEADER)
        record = build(partition, level=level, up=only_1, election=Election.UNCLEAN)
        assert record == expected(isr=(1,), leader=1, leader_recovery_state=change)


class TestDirectories:
    def test_are_kept_after_reassignment(self) -> None:
        record = build(FOO, version=1, target_replicas=(3, 1, 5, 4), target_directories={5: directory(55)})
        wanted = (directory(3), directory(1), directory(55), UNASSIGNED)
        assert record == expected(leader=1, replicas=(3, 1, 5, 4), directories=wanted)

    def test_are_changed(self) -> None:
        partition = state((2, 1, 3), (2, 1, 3), 2)
        record = build(partition, target_directories={3: directory(33), 1: LOST})
        assert record == expected(directories=(directory(2), LOST, directory(33)))
        assert build(partition, target_directories={3: directory(3)}) is NO_RECORD


class TestEligibleLeaderReplicas:
    """Where the feature is off, whatever lists there are end with the next change; minimum is 3."""

    @VERSIONS
    def test_shrink_below_the_minimum(self, version: int) -> None:
        partition = state((1, 2, 3, 4), (1, 2, 3, 4), 1)
        targets: dict[str, Any] = {"target_isr": (1, 2), "election": Election.PREFERRED}
        record = build(partition, version=version, up=not_3, minimum=3, **targets)
        elr = {"eligible_leader_replicas": (3, 4)} if version == 2 else {}
        assert record == expected(isr=(1, 2), **elr)

    @VERSIONS
    def test_expansion_to_the_minimum(self, version: int) -> None:
        partition = state((1, 2, 3, 4), (1, 2), 1, elr=(3,), last_known_elr=(4,))
        record = build(partition, version=version, up=not_3, minimum=3, target_isr=(1, 2, 3))
        last = {"last_known_elr": ()} if version == 2 else {}
        assert record == expected(isr=(1, 2, 3), eligible_leader_replicas=(), **last)

    @VERSIONS
    def test_member_that_was_not_eligible_comes(self, version: int) -> None:
        partition = state((1, 2, 3, 4), (1,), 1, elr=(3,))
        record = build(partition, version=version, up=not_3, minimum=3, target_isr=(1, 4))
        elr = {} if version == 2 else {"eligible_leader_replicas": ()}
        assert record == expected(isr=(1, 4), **elr)

    @VERSIONS
    def test_replica_that_crashed_is_none(self, version: int) -> None:
        partition = state((1, 2, 3, 4), (1,), 1, elr=(2, 3))
        record = build(partition, version=version, up=not_3, minimum=3, unclean_shutdown_replicas=(3,))
        assert record == expected(eligible_leader_replicas=(2,) if version == 2 else ())

    def test_one_is_elected(self) -> None:
        partition = state((1, 2, 3, 4), (1,), 1, elr=(3,))
        targets: dict[str, Any] = {"target_isr": (), "election": Election.PREFERRED}
        record = build(partition, up=lambda replica: replica != 1, minimum=3, **targets)
        assert record == expected(isr=(3,), leader=3, eligible_leader_replicas=(1,))

    def test_isr_can_become_empty(self) -> None:
        partition = state((1, 2, 3, 4), (1, 2, 3, 4), 1)
        record = build(partition, up=lambda _replica: False, minimum=3, target_isr=())
        assert record == expected(
            isr=(), leader=NO_LEADER, eligible_leader_replicas=(1, 2, 3, 4), last_known_elr=(1,)
        )
        empty = partition_after_change(partition, record)
        crashed = build(empty, up=lambda _replica: False, minimum=3, unclean_shutdown_replicas=(2,))
        assert crashed == expected(eligible_leader_replicas=(1, 3, 4))

    def test_last_known_leader_is_elected(self) -> None:
        partition = state((1, 2, 3, 4), (), NO_LEADER, last_known_elr=(1,))
        record = build(partition, minimum=3, election=Election.PREFERRED, target_isr=())
        assert record == expected(isr=(1,), leader=1, leader_recovery_state=RECOVERING, last_known_elr=())

    def test_last_known_leader_is_not_elected_while_one_is_eligible(self) -> None:
        partition = state((1, 2, 3, 4), (), NO_LEADER, elr=(3,), last_known_elr=(1,))
        assert build(partition, up=not_3, minimum=3, target_isr=()) is NO_RECORD

    @pytest.mark.parametrize(("isr", "elr"), [((1,), ()), ((1, 2), ()), ((1, 2, 3), ())])
    def test_minimum_is_at_most_the_number_of_replicas(
        self, isr: tuple[int, ...], elr: tuple[int, ...]
    ) -> None:
        partition = state(isr, isr, 1, elr=())
        record = build(partition, minimum=5, target_isr=isr)
        assert (record is NO_RECORD, elr) == (True, ())
        shrunk = build(partition, minimum=5, target_isr=isr[:1])
        assert (shrunk.eligible_leader_replicas if shrunk else None) == (isr[1:] or None)

    def test_who_is_no_replica_any_more_is_none(self) -> None:
        """It may come back as a replica without data."""
        partition = state((1, 2, 3), (1,), 1, elr=(2, 3))
        record = build(partition, minimum=3, target_replicas=(1, 2))
        assert record is not None
        assert partition_after_change(partition, record).elr == (2,)

    def test_last_member_without_a_leader_is_remembered(self) -> None:
        """From before the feature was on; then its broker crashed."""
        partition = state((1, 2), (1,), NO_LEADER)
        crashed = build(partition, up=lambda _replica: False, target_isr=(), unclean_shutdown_replicas=(1,))
        assert crashed == expected(isr=(), last_known_elr=(1,))
        back = build(partition_after_change(partition, crashed), up=only_1)
        assert back == expected(isr=(1,), leader=1, leader_recovery_state=RECOVERING, last_known_elr=())
