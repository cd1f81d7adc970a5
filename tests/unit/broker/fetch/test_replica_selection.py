"""Which replica a consumer is sent to (KIP-392), by Kafka's RackAwareReplicaSelectorTest and ReplicaManagerTest."""

from typing import Any

import pytest

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kquorum.wire.metadata_records.cluster import FenceBrokerRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.broker.data_world import BROKER, Asked, DataWorld
from tests.support.images import broker_record, partition_record, topic_id, topic_records

TOPIC, TOPIC_ID = "racks", topic_id(7)
A, B, C = "rack a", "rack b", "rack c"


class Racks(DataWorld):
    """Brokers 1 (the leader) in rack a, 2 and 3 in rack b; ten records, of which 2 has nine and 3 has all."""

    def __init__(self, *, chooses_replicas: bool = True) -> None:
        super().__init__(chooses_replicas=chooses_replicas)
        self.change(
            *(broker_record(each, rack=rack) for each, rack in ((1, A), (2, B), (3, B))),
            *topic_records(7, TOPIC, partition_record(7, 0, (1, 2, 3))),
        )
        for number in range(10):
            self.append(str(number), topic=TOPIC)
        self.have(2, 9)
        self.have(3, 10)

    def have(self, replica: int, offset: int, log_start_offset: int = 0) -> None:
        self.partition(0, TOPIC).read_as_follower(
            self.now_ms, replica, offset, max_bytes=1_000, log_start_offset=log_start_offset
        )
        self.settle()

    def fetch(self, offset: int, rack: str = "", version: int = 18, **more: Any) -> Asked:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)
        request = FetchRequest(
            rack_id=rack,
            topics=(FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=(partition,)),),
            **{"max_wait_ms": 60_000} | more,
        )
        return self.ask(request, version)


def told(asked: Asked) -> Any:
    [topic] = asked.answer.responses
    [partition] = topic.partitions
    assert partition.error_code is ErrorCode.none
    return partition


def chosen(world: Racks, offset: int, rack: str, **more: Any) -> int:
    replica: int = told(world.fetch(offset, rack, **more)).preferred_read_replica
    return replica


def test_the_longest_log_in_the_consumers_rack_is_chosen() -> None:
    world = Racks()
    answer = told(world.fetch(3, B))
    assert answer.preferred_read_replica == 3
    assert bytes(answer.records) == b"", "the partition is not read"
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (9, 9, 0)


@pytest.mark.parametrize("rack", [A, C, ""])
def test_a_consumer_in_the_leaders_rack_or_in_none_reads_from_the_leader(rack: str) -> None:
    answer = told(Racks().fetch(3, rack))
    assert answer.preferred_read_replica == -1
    assert len(answer.records) > 0


def test_without_the_config_no_replica_is_chosen() -> None:
    assert chosen(Racks(chooses_replicas=False), 3, B) == -1


def test_a_consumer_that_cannot_be_sent_elsewhere_reads_from_the_leader() -> None:
    assert len(told(Racks().fetch(3, B, version=11, max_wait_ms=0)).records) == 0
    old = Racks().fetch(3, version=10)
    assert len(told(old).records) > 0


def test_of_equal_logs_the_one_that_was_caught_up_last_is_chosen_and_then_the_larger_id() -> None:
    world = Racks()
    world.have(2, 10)
    assert chosen(world, 3, B) == 3
    world.pass_time(1)
    world.have(2, 10)
    assert chosen(world, 3, B) == 2


def test_the_replicas_log_has_the_offset() -> None:
    world = Racks()
    world.have(3, 9, log_start_offset=5)
    world.have(2, 9, log_start_offset=7)
    assert chosen(world, 6, B) == 3
    assert chosen(world, 4, B) == -1
    assert chosen(world, 10, B, max_wait_ms=0) == -1


def test_replicas_that_are_not_in_sync_or_fenced_are_not_chosen() -> None:
    world = Racks()
    world.change(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=(1, 2)))
    assert chosen(world, 3, B) == 2
    world.change(FenceBrokerRecord(id=2, epoch=world.image.cluster.brokers[2].epoch))
    assert chosen(world, 3, B) == -1


def test_a_follower_sends_no_consumer_elsewhere() -> None:
    world = Racks()
    world.change(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=2))
    assert chosen(world, 3, B) == -1
    assert BROKER == 1


def test_an_old_leader_epoch_is_refused_before_a_replica_is_chosen() -> None:
    world = Racks()
    partition = FetchPartition(
        partition=0, fetch_offset=3, partition_max_bytes=1_000, current_leader_epoch=99
    )
    asked = world.ask(
        FetchRequest(
            rack_id=B, max_wait_ms=0, topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(partition,)),)
        )
    )
    assert asked.answer.responses[0].partitions[0].error_code is ErrorCode.unknown_leader_epoch


def follower_waits(world: Racks, session: tuple[int, int]) -> Asked:
    partition = FetchPartition(partition=0, fetch_offset=10, partition_max_bytes=1_000, log_start_offset=0)
    return world.ask(
        FetchRequest(
            replica_state=ReplicaState(replica_id=3, replica_epoch=-1),
            max_wait_ms=500,
            min_bytes=1,
            session_id=session[0],
            session_epoch=session[1],
            topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(partition,)),),
        )
    )


def test_followers_hear_of_a_high_watermark_at_once() -> None:
    """Their readers wait for it."""
    world = Racks()
    first = follower_waits(world, (0, 0))
    world.pass_time(500)
    assert told(first).high_watermark == 9
    session_id = first.answer.session_id
    waiting = follower_waits(world, (session_id, 1))
    assert waiting.is_waiting
    world.have(2, 10)
    assert told(waiting).high_watermark == 10
    # What moved before the request came does not wait for the next move.
    world.append("more", topic=TOPIC)
    world.have(2, 11)
    world.have(3, 11)
    late = follower_waits(world, (session_id, 2))
    assert told(late).high_watermark == 11


def test_followers_wait_for_records_where_no_consumer_reads_from_them() -> None:
    world = Racks(chooses_replicas=False)
    waiting = follower_waits(world, (0, 0))
    world.have(2, 10)
    assert waiting.is_waiting
