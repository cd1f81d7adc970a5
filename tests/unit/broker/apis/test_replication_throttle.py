"""What a leader sends to throttled replicas, by Kafka's ReplicaManagerQuotasTest."""

from typing import Any

import pytest

from kquorum.broker.quota.rate import Windows
from kquorum.broker.quota.replication import ReplicationThrottle
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.broker.data_world import BROKER, ORDERS, ORDERS_ID, Asked, DataWorld

FOLLOWER = 2
LIMIT = 100


class Throttled(DataWorld):
    """Broker 2 has left the ISR of orders-0 and is in that of orders-1. Both have records that it lacks."""

    def __init__(self, replicas: str = "*") -> None:
        self.throttle = ReplicationThrottle(BROKER, Windows())
        self.throttle.limit = LIMIT
        self.throttle.set_replicas(ORDERS, replicas)
        super().__init__(throttle=self.throttle)
        self.change(PartitionChangeRecord(topic_id=ORDERS_ID, partition_id=0, isr=(1,)))
        # It is not about to join again, so that records are committed without it.
        self.pass_time(60_000)
        for index in (0, 1):
            for number in range(3):
                self.append(f"{number}" * 100, index=index)

    def exceed(self) -> None:
        self.throttle.record(self.now_ms, 50 * LIMIT)

    def fetch(self, *indexes: int, replica: int = FOLLOWER, **more: Any) -> Asked:
        partitions = tuple(
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=10_000, log_start_offset=0)
            for index in indexes
        )
        return self.ask(
            FetchRequest(
                replica_state=ReplicaState(replica_id=replica, replica_epoch=-1),
                topics=(FetchTopic(topic=ORDERS, topic_id=ORDERS_ID, partitions=partitions),),
                **{"max_wait_ms": 0, "min_bytes": 1} | more,
            )
        )


def sizes(asked: Asked) -> dict[int, int]:
    found = {
        each.partition_index: (each.error_code, len(each.records))
        for topic in asked.answer.responses
        for each in topic.partitions
    }
    assert all(error is ErrorCode.none for error, _ in found.values())
    return {index: size for index, (_, size) in found.items()}


def test_a_throttled_replica_gets_records_until_the_quota_is_exceeded() -> None:
    world = Throttled()
    first = sizes(world.fetch(0))[0]
    assert first > 300
    assert world.throttle.per_second(world.now_ms) == first, "what was sent counts"
    assert sizes(world.fetch(0)) == {0: 0}
    world.pass_time(11_000)
    assert sizes(world.fetch(0)) == {0: first}


def test_replicas_in_sync_consumers_and_replicas_that_no_config_names_are_never_held_back() -> None:
    world = Throttled()
    world.exceed()
    got = sizes(world.fetch(0, 1))
    assert got[0] == 0
    assert got[1] > 300
    assert sizes(world.fetch(0, replica=-1))[0] > 300
    others = Throttled("0:2,1:2")
    others.exceed()
    assert sizes(others.fetch(0))[0] > 300


def test_what_replicas_in_sync_get_counts() -> None:
    world = Throttled()
    got = sizes(world.fetch(1))[1]
    assert world.throttle.per_second(world.now_ms) == got


def test_a_fetch_that_is_held_back_counts_as_progress() -> None:
    """Or the leader would not notice that the replica has caught up."""
    world = Throttled()
    world.exceed()
    request = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=10_000, log_start_offset=0)
    world.ask(
        FetchRequest(
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=-1),
            max_wait_ms=0,
            topics=(FetchTopic(topic_id=ORDERS_ID, partitions=(request,)),),
        )
    )
    assert world.partition(0).followers[FOLLOWER].log_end_offset == 3


@pytest.mark.parametrize("min_bytes", [1, 500])
def test_a_fetch_that_is_held_back_waits(min_bytes: int) -> None:
    world = Throttled()
    world.exceed()
    asked = world.fetch(0, max_wait_ms=500, min_bytes=min_bytes)
    assert asked.is_waiting
    world.append("more", index=0)
    assert asked.is_waiting, "an answer without records would be asked for again at once"
    world.pass_time(500)
    assert sizes(asked) == {0: 0}


def test_a_fetch_that_waits_gets_what_the_quota_allows_at_its_end() -> None:
    world = Throttled()
    world.throttle.record(world.now_ms, 5 * LIMIT)
    asked = world.fetch(0, max_wait_ms=6_000)
    assert asked.is_waiting
    world.pass_time(6_000)
    assert sizes(asked)[0] > 300
