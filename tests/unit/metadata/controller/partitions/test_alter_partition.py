"""Which of several complaints about an AlterPartition comes first, and who may be in an ISR at all."""

from typing import Any

import pytest

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from tests.support.controller_world import SESSION_MS, World, assigned


def ready() -> World:
    """Leader epoch 1, partition epoch 1."""
    world = World().lead().add_brokers(0, 1, 2)
    world.create(assigned("a", (1, 0, 2)))
    world.heartbeat(1, want_fence=True)
    return world


def alter(world: World, isr: tuple[int, ...], version: int = 3, **changes: Any) -> Any:
    state, brokers = world.partition("a"), world.controller.image.cluster.brokers
    sender = changes.pop("broker_id", 0)
    partition = {
        "partition_index": 0,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr": isr,
        "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": -1} for each in isr],
    } | changes
    answer = world.ask(
        ApiKey.ALTER_PARTITION,
        version,
        broker_id=sender,
        broker_epoch=brokers[sender].epoch,
        topics=[{"topic_id": world.controller.image.topics.by_name["a"].id, "partitions": [partition]}],
    )
    return answer.topics[0].partitions[0]


# Each complaint with all of those that come later.
COMPLAINTS: tuple[tuple[ErrorCode, dict[str, Any]], ...] = (
    (ErrorCode.not_controller, {"leader_epoch": 2}),
    (ErrorCode.not_controller, {"partition_epoch": 2}),
    (ErrorCode.fenced_leader_epoch, {"leader_epoch": 0}),
    (ErrorCode.invalid_request, {"broker_id": 2}),
    (ErrorCode.invalid_update_version, {"partition_epoch": 0}),
)


@pytest.mark.parametrize("first", range(len(COMPLAINTS)))
@pytest.mark.parametrize("version", [2, 3])
def test_the_first_complaint_counts(first: int, version: int) -> None:
    world = ready()
    assert (world.partition("a").leader, world.partition("a").leader_epoch) == (0, 1)
    changes: dict[str, Any] = {}
    for _, each in reversed(COMPLAINTS[first:]):
        changes |= each
    world_end = world.raft.log_end_offset
    assert alter(world, (1, 1), version, **changes).error_code is COMPLAINTS[first][0]
    assert world.raft.log_end_offset == world_end


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isr", [(0, 1), (0, 9), (0, 0), (2,), ()])
def test_isr_that_cannot_be(version: int, isr: tuple[int, ...]) -> None:
    """1 is fenced; 9 is no replica; without the leader there is none."""
    wanted = ErrorCode.ineligible_replica if isr == (0, 1) else ErrorCode.invalid_request
    assert alter(ready(), isr, version).error_code is wanted


def test_broker_that_shuts_down_cannot_join() -> None:
    world = ready()
    world.create(assigned("b", (2,)))
    alter(world, (0,))
    world.heartbeat(2, want_shut_down=True)
    assert world.controller.image.cluster.brokers[2].in_controlled_shutdown
    assert alter(world, (0, 2)).error_code is ErrorCode.ineligible_replica


def test_broker_whose_session_is_over_cannot_join_though_it_is_not_fenced_yet() -> None:
    world = ready()
    alter(world, (0,))
    world.advance(SESSION_MS - 1)
    world.heartbeat(0)
    assert alter(world, (0, 2)).error_code is ErrorCode.none
    alter(world, (0,))
    world.now_ms += 2  # the controller has not come to look at the time
    assert alter(world, (0, 2)).error_code is ErrorCode.ineligible_replica
    assert not world.controller.image.cluster.brokers[2].fenced


@pytest.mark.parametrize(("offset", "error"), [(0, ErrorCode.none), (1, ErrorCode.ineligible_replica)])
def test_epoch_of_a_member_must_be_the_registered_one(offset: int, error: ErrorCode) -> None:
    world = ready()
    brokers = world.controller.image.cluster.brokers
    members = [{"broker_id": each, "broker_epoch": brokers[each].epoch + offset} for each in (0, 2)]
    assert alter(world, (0, 2), new_isr_with_epochs=members).error_code is error


class TestRecovery:
    @staticmethod
    def recovering() -> World:
        world = ready()
        topic_id = world.controller.image.topics.by_name["a"].id
        change = PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=(0,), leader_recovery_state=1)
        world.follow(2, 5)
        world.raft.append(world.now_ms, [(None, encode_record(change, 0))])
        world.lead(6)
        world.commit()
        return world

    @pytest.mark.parametrize("version", [2, 3])
    def test_goes_on_alone(self, version: int) -> None:
        world = self.recovering()
        entry = alter(world, (0,), version, leader_recovery_state=1)
        assert (entry.error_code, entry.leader_recovery_state) == (ErrorCode.none, 1)
        together = alter(world, (0, 2), version, leader_recovery_state=1)
        assert together.error_code is ErrorCode.invalid_request

    def test_ends_when_the_leader_says_so_and_does_not_begin_again(self) -> None:
        world = self.recovering()
        entry = alter(world, (0, 2), leader_recovery_state=0)
        assert (entry.error_code, entry.leader_recovery_state) == (ErrorCode.none, 0)
        assert world.partition("a").leader_recovery_state == 0
        again = alter(world, (0,), leader_recovery_state=1)
        assert again.error_code is ErrorCode.invalid_request


def test_each_partition_is_answered_for_itself() -> None:
    world = ready()
    world.create(assigned("b", (0, 2), (0, 2)))
    topic = world.controller.image.topics.by_name["b"]
    partitions = [
        {
            "partition_index": index,
            "leader_epoch": 0,
            "partition_epoch": 0,
            "leader_recovery_state": 0,
            "new_isr_with_epochs": [{"broker_id": 0, "broker_epoch": -1}],
        }
        for index in (0, 7, 1)
    ]
    answer = world.ask(
        ApiKey.ALTER_PARTITION,
        3,
        broker_id=0,
        broker_epoch=world.controller.image.cluster.brokers[0].epoch,
        topics=[{"topic_id": topic.id, "partitions": partitions}],
    )
    codes = [entry.error_code for entry in answer.topics[0].partitions]
    assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition, ErrorCode.none]
    assert [world.partition("b", index).isr for index in (0, 1)] == [(0,), (0,)]


def test_a_partition_that_is_named_twice_is_changed_once() -> None:
    """The second change would put the leader that goes with the reassignment back into the ISR."""
    world = World().lead().add_brokers(0, 1, 2)
    world.create(assigned("a", (0,)))
    topics = [{"name": "a", "partitions": [{"partition_index": 0, "replicas": (1, 2)}]}]
    world.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, timeout=1000, topics=topics)
    topic, broker = world.controller.image.topics.by_name["a"], world.controller.image.cluster.brokers[0]
    state = world.partition("a")
    once, twice = (
        {
            "partition_index": 0,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "leader_recovery_state": 0,
            "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": -1} for each in isr],
        }
        for isr in ((0, 1, 2), (0, 1))
    )
    for topics in (
        [{"topic_id": topic.id, "partitions": [once, twice]}],
        [{"topic_id": topic.id, "partitions": [each]} for each in (once, twice)],
    ):
        world.send(ApiKey.ALTER_PARTITION, 3, broker_id=0, broker_epoch=broker.epoch, topics=topics)
        after = world.partition("a")
        assert (after.replicas, after.isr, after.leader) == ((1, 2), (1, 2), 1)
        world.follow(7, world.raft.leader_epoch + 1)
        world.raft.truncate_uncommitted()
        world.lead(world.raft.leader_epoch + 1)
