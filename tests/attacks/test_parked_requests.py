"""Requests that wait for an event, by the thousand: for records, for followers, for other members of a group."""

from typing import Any

import pytest

from kquorum.broker.fetch import waits
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kquorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.broker.data_world import ORDERS_ID, Asked, DataWorld
from tests.support.broker.disk_logs import data
from tests.support.broker.group_world import GroupWorld


def fetch(*indexes: int) -> FetchRequest:
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1_000) for index in indexes
    )
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1_000,
        session_epoch=-1,
        topics=(FetchTopic(topic_id=ORDERS_ID, partitions=partitions),),
    )


def produce() -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=data("a"))
    topic = TopicProduceData(topic_id=ORDERS_ID, partition_data=(partition,))
    return ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(topic,))


class Parking:
    """Which requests count no longer as work."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.mark.parametrize("request_", [fetch(0), produce()], ids=["Fetch", "Produce"])
def test_what_waits_is_parked_and_a_client_that_leaves_leaves_nothing(request_: Any) -> None:
    """Before: the request of a closed connection counted as work for five minutes."""
    world, parking = DataWorld(), Parking()
    asked = world.ask(request_, park=parking)
    assert (asked.is_waiting, parking.count, len(world.plane.waits)) == (True, 1, 1)
    asked.leave()
    assert (asked.raw, len(world.plane.waits), asked.close_calls) == ([None], 0, [])


def test_joins_are_parked() -> None:
    world, parking = GroupWorld(), Parking()
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="x",
        protocols=protocols,
    )
    assert world.ask(request, 3, park=parking).is_waiting
    assert parking.count == 1


def test_a_connection_with_many_waiting_fetches_is_answered_at_once() -> None:
    world = DataWorld()
    asked = [world.ask(fetch(0)) for _ in range(waits.MOST_OF_A_CLIENT + 1)]
    assert [each.is_waiting for each in asked] == [True] * waits.MOST_OF_A_CLIENT + [False]
    assert asked[-1].answer.responses[0].partitions[0].error_code is ErrorCode.none
    world.pass_time(500)
    assert not any(each.is_waiting for each in asked)
    assert world.ask(fetch(0)).is_waiting


@pytest.mark.parametrize(("limit", "most"), [("MOST_WAITS", 2), ("MOST_PARTITIONS", 5)])
def test_a_broker_with_many_waiting_fetches_answers_at_once(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(waits, limit, most)
    world = DataWorld()
    asked = [world.ask(fetch(0, 1)) for _ in range(3)]
    assert [each.is_waiting for each in asked] == [True, True, False]


def test_produce_requests_beyond_the_bound_wait_but_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "MOST_WAITS", 1)
    world, parking = DataWorld(), Parking()
    asked: list[Asked] = [world.ask(produce(), park=parking) for _ in range(2)]
    assert [each.is_waiting for each in asked] == [True, True]
    assert parking.count == 1
    world.follower_fetches(2)
    assert not any(each.is_waiting for each in asked)
