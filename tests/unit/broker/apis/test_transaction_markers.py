"""WriteTxnMarkers and DescribeProducers by Kafka's behaviours."""

from typing import Any

import pytest

from kquorum.wire.data_batch import read_data_header, read_data_records
from kquorum.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kquorum.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kquorum.wire.transaction_markers import TransactionMarker, decode_transaction_marker
from tests.support.broker.data_world import NOW_MS, ORDERS, Asked, DataWorld
from tests.support.broker.disk_logs import data
from tests.support.images import fencing

PRODUCER = 4000


@pytest.fixture
def world() -> DataWorld:
    """orders-0 has an open transaction of the producer, in epoch 3."""
    made = DataWorld()
    made.append("a")
    batch = data("b", "c", producer_id=PRODUCER, producer_epoch=3, base_sequence=0, transactional=True)
    made.partition().append(made.now_ms, batch, required_acks=1)
    made.follower_fetches(3)
    return made


def mark(
    world: DataWorld, *indexes: int, epoch: int = 3, version: int = 1, topic: str = ORDERS, **fields: Any
) -> Asked:
    marker = WritableTxnMarker(
        producer_id=fields.pop("producer_id", PRODUCER),
        producer_epoch=epoch,
        transaction_result=fields.pop("commit", True),
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=indexes),),
        **{"coordinator_epoch": 7} | fields,
    )
    return world.ask(WriteTxnMarkersRequest(markers=(marker,)), version)


def told(asked: Asked) -> list[tuple[int, str]]:
    return [
        (each.partition_index, each.error_code.name)
        for marker in asked.answer.markers
        for topic in marker.topics
        for each in topic.partitions
    ]


def producers(world: DataWorld, *indexes: int, topic: str = ORDERS) -> list[Any]:
    request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=indexes),))
    [answer] = world.ask_now(request).topics
    assert answer.name == topic
    return list(answer.partitions)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_a_control_batch_that_ends_the_transaction(world: DataWorld, commit: bool) -> None:
    asked = mark(world, 0, commit=commit)
    world.settle()
    world.follower_fetches(4)
    assert told(asked) == [(0, "none")]
    last = world.logs.logs[world.partition().topic_partition].batches[-1].data
    header = read_data_header(last)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (PRODUCER, 3, -1)
    assert header.is_control
    assert header.is_transactional
    [record] = read_data_records(last, 0, header)
    assert decode_transaction_marker(record.key, record.value) == TransactionMarker(commit, 7)
    [described] = producers(world, 0)[0].active_producers
    assert described.current_txn_start_offset == -1
    assert described.coordinator_epoch == 7


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": -1}, "invalid_producer_id_mapping"),
        ({"producer_id": -(2**63), "epoch": -1}, "invalid_producer_id_mapping"),
        ({"epoch": -1}, "invalid_producer_epoch"),
        ({"epoch": -(2**15)}, "invalid_producer_epoch"),
    ],
)
def test_a_marker_without_a_producer_is_refused(world: DataWorld, fields: dict[str, int], error: str) -> None:
    batches = len(world.logs.logs[world.partition().topic_partition].batches)
    assert told(mark(world, 0, 1, **fields)) == [(0, error), (1, error)]
    assert len(world.logs.logs[world.partition().topic_partition].batches) == batches


@pytest.mark.parametrize("coordinator_epoch", [-(2**31), -1, 0, 2**31 - 1])
def test_any_coordinator_epoch_is_answered(world: DataWorld, coordinator_epoch: int) -> None:
    asked = mark(world, 0, coordinator_epoch=coordinator_epoch)
    world.settle()
    world.follower_fetches(world.logs.logs[world.partition().topic_partition].log_end_offset)
    assert len(told(asked)) == 1


def test_the_answer_waits_for_the_in_sync_replicas_and_has_all_partitions(world: DataWorld) -> None:
    asked = mark(world, 0, 1, 2, 3, 9)
    world.settle()
    assert asked.is_waiting
    world.follower_fetches(4)
    assert asked.is_waiting
    world.follower_fetches(1, index=1)
    # Broker 2 leads orders-2, orders-3 has no replica here, and there is no orders-9.
    assert told(asked) == [
        (0, "none"),
        (1, "none"),
        (2, "not_leader_or_follower"),
        (3, "unknown_topic_or_partition"),
        (9, "unknown_topic_or_partition"),
    ]


def test_two_markers_for_one_partition_are_both_answered(world: DataWorld) -> None:
    topics = (WritableTxnMarkerTopic(name=ORDERS, partition_indexes=(0,)),)
    markers = tuple(
        WritableTxnMarker(producer_id=each, producer_epoch=3, topics=topics) for each in (PRODUCER, 4001)
    )
    asked = world.ask(WriteTxnMarkersRequest(markers=markers), 1)
    world.settle()
    world.follower_fetches(4)
    assert asked.is_waiting
    world.follower_fetches(5)
    assert told(asked) == [(0, "none"), (0, "none")]


def test_no_markers_are_answered_at_once(world: DataWorld) -> None:
    assert world.ask(WriteTxnMarkersRequest(markers=())).answer.markers == ()


def test_a_wait_ends_after_the_request_timeout_and_the_marker_stays(world: DataWorld) -> None:
    asked = mark(world, 0)
    world.pass_time(29_999)
    assert asked.is_waiting
    world.pass_time(1)
    assert told(asked) == [(0, "request_timed_out")]
    assert world.partition().log.log_end_offset == 4


def test_a_leader_that_lost_its_leadership_says_so(world: DataWorld) -> None:
    asked = mark(world, 0)
    world.settle()
    world.partition().stop()
    world.settle()
    assert told(asked) == [(0, "not_leader_or_follower")]


def test_below_min_isr_no_marker_is_written() -> None:
    world = DataWorld(min_insync_replicas=3)
    world.change(fencing(2, fenced=True))
    world.partition().settings.min_insync_replicas = 2
    world.partition().isr_state = type(world.partition().isr_state)(frozenset({1}))
    assert told(mark(world, 0)) == [(0, "not_enough_replicas")]
    assert world.partition().log.log_end_offset == 0


@pytest.mark.parametrize(
    ("epoch", "transaction_version", "expected"),
    [
        (2, 1, "invalid_producer_epoch"),
        (3, 1, "none"),
        (4, 1, "none"),
        # KIP-890: a marker raises the epoch, so one of the same epoch belongs to the transaction before.
        (3, 2, "invalid_producer_epoch"),
        (4, 2, "none"),
    ],
)
def test_the_epoch_of_a_marker(world: DataWorld, epoch: int, transaction_version: int, expected: str) -> None:
    asked = mark(world, 0, epoch=epoch, version=2, transaction_version=transaction_version)
    world.settle()
    world.follower_fetches(world.partition().log.log_end_offset)
    assert told(asked) == [(0, expected)]


def test_the_same_marker_again_is_taken_when_the_transaction_is_over(world: DataWorld) -> None:
    """KAFKA-19999: the coordinator sends a marker again whose answer was lost."""
    for end in (4, 5):
        asked = mark(world, 0, epoch=4, version=2, transaction_version=2)
        world.settle()
        world.follower_fetches(end)
        assert told(asked) == [(0, "none")]


def test_an_older_coordinator_is_fenced(world: DataWorld) -> None:
    mark(world, 0, coordinator_epoch=7)
    assert told(mark(world, 0, coordinator_epoch=6)) == [(0, "transaction_coordinator_fenced")]


# DescribeProducers


def test_the_producers_of_a_log_are_told(world: DataWorld) -> None:
    [told_of] = producers(world, 0)
    [described] = told_of.active_producers
    assert (described.producer_id, described.producer_epoch, described.last_sequence) == (PRODUCER, 3, 1)
    assert described.last_timestamp == NOW_MS + 1
    assert described.coordinator_epoch == -1
    assert described.current_txn_start_offset == 1


def test_any_replica_tells_its_producers_and_others_have_none(world: DataWorld) -> None:
    answers = producers(world, 1, 2, 3, 9)
    assert [each.error_code.name for each in answers] == [
        "none",
        "none",
        "not_leader_or_follower",
        "unknown_topic_or_partition",
    ]


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("payments", "unknown_topic_or_partition"), ("not a name", "invalid_topic_exception")],
)
def test_producers_of_topics_that_are_not(world: DataWorld, topic: str, expected: str) -> None:
    assert [each.error_code.name for each in producers(world, 0, topic=topic)] == [expected]
