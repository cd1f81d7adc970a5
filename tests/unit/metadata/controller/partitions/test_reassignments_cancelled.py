"""Reassignments that are cancelled, and ListPartitionReassignments."""

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.controller_world import World, assigned
from tests.support.metadata.reassigning import (
    cancel,
    move,
    ready,
    reassign,
    report_isr,
    running,
)


class TestCancel:
    def test_puts_back_what_was(self) -> None:
        world = ready()
        world.create(assigned("a", (4, 3, 2)))
        move(world, 1, 2, 3, 4, 0)
        assert running(world)["a", 0].adding_replicas == (0, 1)
        report_isr(world, 4, 1, 2, 0)
        assert cancel(world).error_code is ErrorCode.none
        state = world.partition("a")
        assert (state.replicas, state.isr, state.leader) == ((2, 3, 4), (4, 2), 4)
        assert state.leader_epoch == 1
        assert not running(world)
        assert cancel(world).error_code is ErrorCode.no_reassignment_in_progress

    def test_old_ones_out_of_sync_forbid_it(self) -> None:
        world = self.with_only_a_new_one_in_sync()
        entry = cancel(world)
        assert entry.error_code is ErrorCode.invalid_replica_assignment
        assert "unclean leader election" in entry.error_message
        assert ("a", 0) in running(world)

    def test_unless_the_topic_may_lose_data(self) -> None:
        configs = [{"name": "unclean.leader.election.enable", "value": "true"}]
        world = self.with_only_a_new_one_in_sync(configs)
        world.heartbeat(0)
        assert cancel(world).error_code is ErrorCode.none
        state = world.partition("a")
        assert (state.replicas, state.leader, state.isr) == ((0, 1), 0, (0,))

    @staticmethod
    def with_only_a_new_one_in_sync(configs: list[Values] | None = None) -> World:
        world = ready()
        world.create(assigned("a", (0, 1)) | {"configs": configs or ()})
        move(world, 2, 3)
        report_isr(world, 0, 1, 2)
        for broker_id in (0, 1):
            world.heartbeat(broker_id, want_fence=True)
        assert world.partition("a").isr == (2,)
        return world


class TestList:
    def test_only_what_was_asked_for_and_moves(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1), (0, 1)), assigned("b", (0, 1)), {"name": "c"})
        reassign(world, {("a", 1): (2, 3), ("b", 0): (4, 5)})
        assert set(running(world)) == {("a", 1), ("b", 0)}
        assert set(running(world, [{"name": "a", "partition_indexes": (0, 1, 7)}])) == {("a", 1)}
        assert not running(world, [{"name": "c", "partition_indexes": (0,)}])
        assert not running(world, [{"name": "unknown", "partition_indexes": (0,)}])
        assert not running(world, [])

    def test_shows_only_what_is_committed(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        target = {"partition_index": 0, "replicas": (2, 3)}
        topics = [{"name": "a", "partitions": [target]}]
        pending = world.send(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, timeout=1, topics=topics)
        listed = world.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout=1, topics=None)
        assert not pending
        assert listed[0].topics == ()
        world.commit()
        assert pending
        assert ("a", 0) in running(world)

    def test_standby_answers(self) -> None:
        world = ready()
        world.create(assigned("a", (0, 1)))
        move(world, 2, 3)
        world.follow(leader_id=3001, epoch=2)
        assert ("a", 0) in running(world)
