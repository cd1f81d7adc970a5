"""DeleteRecords by Kafka's behaviours: the leader's log begins later at once, the answer waits for live followers."""

from typing import Any

import pytest

from kquorum.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from tests.support.broker.data_world import ORDERS, Asked, DataWorld
from tests.support.images import fencing


@pytest.fixture
def world() -> DataWorld:
    made = DataWorld()
    made.append("a")
    made.append("b")
    made.follower_fetches(2)
    made.append("c")
    return made


def delete(world: DataWorld, offset: int, *, index: int = 0, topic: str = ORDERS) -> Asked:
    asked = DeleteRecordsPartition(partition_index=index, offset=offset)
    topics = (DeleteRecordsTopic(name=topic, partitions=(asked,)),)
    return world.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1_000))


def told(asked: Asked) -> tuple[str, int]:
    only: Any = asked.answer.topics[0].partitions[0]
    return only.error_code.name, only.low_watermark


@pytest.mark.parametrize(("offset", "reached"), [(1, 1), (2, 2), (-1, 2)])
def test_the_answer_waits_until_the_followers_logs_begin_there(
    world: DataWorld, offset: int, reached: int
) -> None:
    asked = delete(world, offset)
    world.settle()
    assert world.partition().log.log_start_offset == reached
    assert asked.is_waiting
    world.follower_fetches(2, log_start_offset=reached)
    assert told(asked) == ("none", reached)


@pytest.mark.parametrize("offset", [3, 99, -2])
def test_only_committed_records_are_deleted(world: DataWorld, offset: int) -> None:
    assert told(delete(world, offset)) == ("offset_out_of_range", -1)
    assert world.partition().log.log_start_offset == 0


def test_a_follower_whose_broker_is_gone_holds_nothing_up(world: DataWorld) -> None:
    world.change(fencing(2, fenced=True))
    assert told(delete(world, 1)) == ("none", 1)


def test_at_the_deadline_the_start_stays_where_it_was_put(world: DataWorld) -> None:
    asked = delete(world, 1)
    world.pass_time(1_000)
    assert told(asked)[0] == "request_timed_out"
    assert world.partition().log.log_start_offset == 1


@pytest.mark.parametrize(
    ("index", "topic", "expected"),
    [
        (2, ORDERS, "not_leader_or_follower"),
        (9, ORDERS, "unknown_topic_or_partition"),
        (0, "__consumer_offsets", "invalid_topic_exception"),
    ],
)
def test_an_error_concerns_its_partition(world: DataWorld, index: int, topic: str, expected: str) -> None:
    assert told(delete(world, 0, index=index, topic=topic)) == (expected, -1)


def test_a_compacted_topic_keeps_its_records(world: DataWorld) -> None:
    compact = ConfigRecord(resource_type=2, resource_name=ORDERS, name="cleanup.policy", value="compact")
    world.change(compact)
    assert told(delete(world, 1))[0] == "policy_violation"


@pytest.mark.parametrize(("epoch", "expected"), [(3, (3, 3)), (9, (-1, -1))])
def test_the_end_of_an_epoch(world: DataWorld, epoch: int, expected: tuple[int, int]) -> None:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=ORDERS, partitions=(asked,)),))
    only = world.ask_now(request).topics[0].partitions[0]
    assert (only.error_code, only.leader_epoch, only.end_offset) == (ErrorCode.none, *expected)
