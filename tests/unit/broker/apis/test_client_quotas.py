"""Produce and Fetch of clients with quotas: what the answer says, how long the connection is muted, what is read."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from immutables import Map

from kquorum.broker.quota.client_quotas import ClientQuotas
from kquorum.broker.quota.rate import Windows
from kquorum.metadata.image.quotas import ClientQuotasImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.protocol.headers import NoAnswer
from tests.support.broker.data_world import BROKER, ORDERS_ID, Asked, DataWorld
from tests.support.broker.disk_logs import data
from tests.support.images import topic_id

LIMIT = 1_000
# What the full windows hold.
BURST = 10 * LIMIT
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"


@dataclass
class Limited:
    """A broker on which each client may use LIMIT bytes/s; `mutes` are those of the connections, in ms."""

    quotas: dict[str, float] = field(default_factory=lambda: {PRODUCE: LIMIT, FETCH: LIMIT})
    mutes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        image = ClientQuotasImage(Map({(("client-id", None),): Map(self.quotas)}))
        self.world = DataWorld(quotas=ClientQuotas(lambda: image, Windows()))

    def produce(self, request_bytes: int, *, acks: int = 1, topic: str = "single") -> Asked:
        named = topic_id(2) if topic == "single" else ORDERS_ID
        request = ProduceRequest(
            acks=acks,
            timeout_ms=60_000,
            topic_data=(
                TopicProduceData(
                    topic_id=named, partition_data=(PartitionProduceData(index=0, records=data("a")),)
                ),
            ),
        )
        return self.world.ask(request, frame=b"x" * request_bytes, throttle=self.mutes.append)

    def fetch(
        self, offset: int = 0, *, max_bytes: int = 1 << 20, session: tuple[int, int] = (0, -1), **more: Any
    ) -> Asked:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_bytes=max_bytes,
            session_id=session[0],
            session_epoch=session[1],
            topics=(FetchTopic(topic_id=topic_id(2), partitions=(partition,)),),
            **{"max_wait_ms": 0, "min_bytes": 1} | more,
        )
        return self.world.ask(request, throttle=self.mutes.append)

    def pass_time(self, ms: int) -> None:
        self.world.pass_time(ms)


def records_of(asked: Asked) -> int:
    return sum(len(each.records) for topic in asked.answer.responses for each in topic.partitions)


def test_a_producer_over_its_quota_is_answered_and_muted() -> None:
    limited = Limited()
    assert limited.produce(BURST).answer.throttle_time_ms == 0
    assert limited.mutes == []
    over = limited.produce(500)
    assert over.answer.throttle_time_ms == 500
    assert over.answer.responses[0].partition_responses[0].error_code is ErrorCode.none
    assert limited.mutes == [500]
    limited.pass_time(60_000)
    assert limited.produce(10).answer.throttle_time_ms == 0


def test_a_producer_without_an_answer_is_muted_too() -> None:
    limited = Limited()
    assert isinstance(limited.produce(BURST + 700, acks=0).answer, NoAnswer)
    assert limited.mutes == [700]


def test_a_producer_that_waits_for_followers_is_muted_meanwhile() -> None:
    """Its next requests would be carried out before the first is answered."""
    limited = Limited()
    asked = limited.produce(BURST + 700, acks=-1, topic="orders")
    assert asked.is_waiting
    assert limited.mutes == [700]
    limited.pass_time(300)
    limited.world.follower_fetches(1)
    assert asked.answer.throttle_time_ms == 400, "what is left of it"


def test_a_consumer_gets_its_records_and_is_muted_for_what_is_too_much() -> None:
    limited = Limited({FETCH: 20})
    limited.world.append("v" * 500, topic="single")
    first = limited.fetch()
    assert records_of(first) > 500, "a batch that is larger than all windows arrives, too"
    throttle_ms = first.answer.throttle_time_ms
    assert throttle_ms > 10_000
    assert limited.mutes == [throttle_ms]
    # Another connection of the client comes meanwhile: nothing is read for it.
    second = limited.fetch()
    assert records_of(second) == 0
    assert second.answer.error_code is ErrorCode.none
    assert second.answer.throttle_time_ms == throttle_ms
    limited.pass_time(throttle_ms)
    assert records_of(limited.fetch()) > 500


def test_one_answer_is_bounded_by_what_the_quota_allows_at_once() -> None:
    limited = Limited({FETCH: 100})
    for _ in range(20):
        limited.world.append("v" * 300, topic="single")
    assert 0 < records_of(limited.fetch()) <= 1_000
    unlimited = Limited({PRODUCE: 1})
    for _ in range(20):
        unlimited.world.append("v" * 300, topic="single")
    assert records_of(unlimited.fetch()) > 6_000


def test_a_throttled_answer_of_a_session_keeps_the_session() -> None:
    limited = Limited({FETCH: 20})
    limited.world.append("v" * 500, topic="single")
    begun = limited.fetch(session=(0, 0))
    session_id = begun.answer.session_id
    assert session_id > 0
    throttled = limited.fetch(session=(session_id, 1))
    assert (throttled.answer.error_code, throttled.answer.session_id) == (ErrorCode.none, session_id)
    assert throttled.answer.responses == ()
    limited.pass_time(throttled.answer.throttle_time_ms)
    again = limited.fetch(session=(session_id, 2))
    assert again.answer.session_id == session_id
    assert records_of(again) > 500


def test_a_throttled_answer_begins_no_session() -> None:
    limited = Limited({FETCH: 20})
    limited.world.append("v" * 500, topic="single")
    limited.fetch()
    assert limited.fetch(session=(0, 0)).answer.session_id == 0


def test_a_consumer_that_waited_is_throttled_when_another_used_the_quota_up() -> None:
    limited = Limited({FETCH: 20})
    waiting = limited.fetch(max_wait_ms=5_000)
    assert waiting.is_waiting
    limited.world.partition(0, "single").append(limited.world.now_ms, data("v" * 500), required_acks=1)
    assert records_of(limited.fetch()) > 500
    limited.world.settle()
    assert records_of(waiting) == 0
    assert waiting.answer.throttle_time_ms > 0


@pytest.mark.parametrize("replica", [ReplicaState(replica_id=2, replica_epoch=-1)])
def test_followers_are_no_clients(replica: ReplicaState) -> None:
    limited = Limited({FETCH: 1})
    limited.world.append("v" * 500, index=0)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    for _ in range(3):
        asked = limited.world.ask(
            FetchRequest(
                replica_state=replica,
                max_wait_ms=0,
                topics=(FetchTopic(topic_id=ORDERS_ID, partitions=(partition,)),),
            ),
            throttle=limited.mutes.append,
        )
        assert records_of(asked) > 500
    assert limited.mutes == []
    assert replica.replica_id != BROKER
