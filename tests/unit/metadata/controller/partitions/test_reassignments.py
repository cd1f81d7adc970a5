"""AlterPartitionReassignments: how a reassignment starts, goes on and ends."""

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import SESSION_MS, World, assigned, topic
from tests.support.metadata.reassigning import (
    Target,
    move,
    ready,
    reassign,
    report_isr,
    running,
)


class TestStart:
    @pytest.mark.parametrize("version", [0, 1])
    def test_adds_new_ones_and_marks_old_ones(self, version: int) -> None:
        world = ready()
        world.create(assigned("a", (3, 2, 1)))
        assert reassign(world, {("a", 0): (0, 2, 1)}, version)["a", 0].error_code is ErrorCode.none
        state = world.partition("a")
        assert state.replicas == (0, 2, 1, 3)
        assert (state.adding_replicas, state.removing_replicas) == ((0,), (3,))
        assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((3, 2, 1), 3, 0, 1)
        assert [each.int for each in state.directories] == [10_000, 10_002, 10_001, 10_003]

    def test_order_alone_is_done_at_once_and_moves_no_leader(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2, 3)))
        move(world, 3, 2, 1)
        state = world.partition("a")
        assert (state.replicas, state.leader, state.leader_epoch) == ((3, 2, 1), 1, 0)
        assert not running(world)

    def test_removal_alone_is_done_at_once_and_bumps_the_leader_epoch(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2, 3)))
        move(world, 1, 2)
        state = world.partition("a")
        assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((1, 2), (1, 2), 1, 1)
        move(world, 2)
        state = world.partition("a")
        assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((2,), (2,), 2, 2)

    def test_what_is_as_wanted_writes_nothing(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2)))
        end = world.raft.log_end_offset
        move(world, 1, 2)
        assert world.raft.log_end_offset == end

    def test_fenced_target_is_allowed(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2)))
        world.heartbeat(5, want_fence=True)
        move(world, 1, 5)
        assert running(world)["a", 0].adding_replicas == (5,)

    @pytest.mark.parametrize(
        ("place", "target", "error"),
        [
            (("b", 0), (1,), ErrorCode.unknown_topic_or_partition),
            (("a", 2), (1,), ErrorCode.unknown_topic_or_partition),
            (("a", 0), (), ErrorCode.invalid_replica_assignment),
            (("a", 0), (1, 1), ErrorCode.invalid_replica_assignment),
            (("a", 0), (1, 99), ErrorCode.invalid_replica_assignment),
            (("a", 0), None, ErrorCode.no_reassignment_in_progress),
        ],
    )
    def test_refusals_leave_the_others_alone(
        self, place: tuple[str, int], target: Target, error: ErrorCode
    ) -> None:
        world = ready()
        world.create(assigned("a", (1, 2), (1, 2)))
        answers = reassign(world, {place: target, ("a", 1): (3, 4)})
        assert answers[place].error_code is error
        assert answers[place].error_message
        assert answers["a", 1].error_code is ErrorCode.none
        assert world.partition("a", 0).replicas == (1, 2)
        assert world.partition("a", 1).replicas == (3, 4, 1, 2)

    def test_all_partitions_stand_in_one_batch(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2), (1, 2)), assigned("b", (1, 2)))
        batches = len(world.raft.batches)
        reassign(world, {("a", 0): (3, 4), ("a", 1): (4, 5), ("b", 0): (2, 1)})
        assert len(world.raft.batches) == batches + 1

    def test_partition_named_twice(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2)))
        twice = [{"partition_index": 0, "replicas": (3,)}, {"partition_index": 0, "replicas": (4,)}]
        answer = world.ask(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            0,
            timeout=1,
            topics=[{"name": "a", "partitions": twice}],
        )
        first, second = answer.responses[0].partitions
        assert first.error_code is ErrorCode.none
        assert second.error_code is ErrorCode.invalid_request
        assert world.partition("a").adding_replicas == (3,)

    def test_too_many_for_one_batch(self) -> None:
        world = World(ControllerConfig(max_records_per_batch=5)).lead().add_brokers(0, 1, 2)
        for name in "abc":
            world.create(topic(name, num_partitions=2))
        targets: dict[tuple[str, int], Target] = {
            (name, each): (0, 1, 2) for name in "abc" for each in (0, 1)
        }
        topics = [
            {
                "name": name,
                "partitions": [{"partition_index": each, "replicas": (0, 1, 2)} for each in (0, 1)],
            }
            for name in "abc"
        ]
        answer = world.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, timeout=1, topics=topics)
        assert answer.error_code is ErrorCode.policy_violation
        codes = [each.error_code for entry in answer.responses for each in entry.partitions]
        assert codes == [ErrorCode.policy_violation] * len(targets)
        assert not running(world)


class TestReplicationFactor:
    def test_change_may_be_forbidden(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2)))
        for target in ((1, 2, 3), (1,)):
            entry = reassign(world, {("a", 0): target}, allow_replication_factor_change=False)["a", 0]
            assert entry.error_code is ErrorCode.invalid_replication_factor
        answer = reassign(world, {("a", 0): (3, 4)}, allow_replication_factor_change=False)
        assert answer["a", 0].error_code is ErrorCode.none

    def test_that_of_the_target_counts_while_one_runs(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2)))
        move(world, 3, 4)
        wrong = reassign(world, {("a", 0): (3, 4, 1, 2)}, allow_replication_factor_change=False)["a", 0]
        assert wrong.error_code is ErrorCode.invalid_replication_factor
        right = reassign(world, {("a", 0): (3, 5)}, allow_replication_factor_change=False)["a", 0]
        assert right.error_code is ErrorCode.none

    def test_version_0_changes_it(self) -> None:
        world = ready()
        world.create(assigned("a", (1, 2)))
        assert reassign(world, {("a", 0): (1,)}, version=0)["a", 0].error_code is ErrorCode.none
        assert world.partition("a").replicas == (1,)


class TestCompletion:
    def test_all_new_ones_in_sync_complete_it(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        report_isr(world, 0, 1, 2)
        assert running(world)["a", 0].replicas == (2, 3, 0, 1)
        entry = report_isr(world, 0, 1, 2, 3)
        assert entry.error_code is ErrorCode.new_leader_elected
        state = world.partition("a")
        assert (state.replicas, state.isr, state.leader) == ((2, 3), (2, 3), 2)
        assert (state.adding_replicas, state.removing_replicas) == ((), ())
        assert not running(world)

    def test_leader_that_stays_keeps_on_with_a_new_epoch(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 0, 2)
        entry = report_isr(world, 0, 2)
        assert (entry.error_code, entry.leader_epoch) == (ErrorCode.none, 1)
        assert (world.partition("a").replicas, world.partition("a").leader) == ((0, 2), 0)

    def test_old_replica_that_dies_does_not_hold_it_up(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        world.heartbeat(1, want_fence=True)
        assert world.partition("a").isr == (0,)
        report_isr(world, 0, 2, 3)
        assert world.partition("a").replicas == (2, 3)

    def test_leader_that_dies_hands_over_to_an_added_one_that_is_in_sync(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        report_isr(world, 0, 2)
        world.advance(SESSION_MS - 1)
        for broker_id in (1, 2, 3, 4, 5):
            world.heartbeat(broker_id)
        world.advance(2)
        world.commit()
        state = world.partition("a")
        assert (state.isr, state.leader) == ((2,), 2)
        assert state.removing_replicas == (0, 1)
        report_isr(world, 2, 3)
        assert world.partition("a").replicas == (2, 3)

    def test_added_one_that_dies_holds_it_up_until_it_is_back(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        report_isr(world, 0, 1, 2)
        world.heartbeat(2, want_fence=True)
        assert world.partition("a").isr == (0, 1)
        report_isr(world, 0, 1, 3)
        assert ("a", 0) in running(world)
        world.heartbeat(2)
        report_isr(world, 0, 1, 3, 2)
        assert not running(world)

    def test_everybody_dies(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        for broker_id in range(4):
            world.heartbeat(broker_id, want_fence=True)
        assert world.partition("a").leader == NO_LEADER
        last = world.partition("a").isr
        for broker_id in range(4):
            world.heartbeat(broker_id)
        assert world.partition("a").leader in last
        assert ("a", 0) in running(world)


class TestRestart:
    def test_new_target_drops_what_was_being_added(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        report_isr(world, 0, 1, 2)
        move(world, 4, 5)
        entry = running(world)["a", 0]
        assert entry.replicas == (4, 5, 0, 1, 2, 3)
        assert (entry.adding_replicas, entry.removing_replicas) == ((4, 5), (0, 1, 2, 3))
        assert report_isr(world, 0, 1, 2, 4, 5).error_code is ErrorCode.new_leader_elected
        assert (world.partition("a").replicas, world.partition("a").leader) == ((4, 5), 4)

    def test_back_to_the_old_replicas_is_done_at_once(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        report_isr(world, 0, 1, 2)
        move(world, 0, 1)
        state = world.partition("a")
        assert (state.replicas, state.isr, state.adding_replicas) == ((0, 1), (0, 1), ())

    def test_target_may_be_everybody_there_is(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        move(world, 2, 3, 0, 1)
        entry = running(world)["a", 0]
        assert (entry.adding_replicas, entry.removing_replicas) == ((2, 3), ())
        report_isr(world, 0, 1, 2, 3)
        assert (world.partition("a").replicas, world.partition("a").leader) == ((2, 3, 0, 1), 0)


def test_reason_is_in_the_log() -> None:
    world = ready()
    world.create(assigned("a", (0, 1)))
    start = world.raft.log_end_offset
    move(world, 2, 3)
    note, change = world.raft.records(start)
    assert "reassign partitions: a:0 to [2, 3]" in str(note)
    assert isinstance(change, PartitionChangeRecord)
