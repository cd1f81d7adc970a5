"""A topic of many partitions does not keep its broker from everything else: logs are opened and deleted in parts."""

import pytest

from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.replica.replica_manager import DELETED_AT_ONCE, OPENED_AT_ONCE
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from tests.support.broker.data_world import BROKER, DataWorld
from tests.support.images import partition_record, topic_id, topic_records

TOPIC, NUMBER, PARTITIONS = "many", 9, 5 * OPENED_AT_ONCE


def world_with(topic: str = TOPIC) -> DataWorld:
    world = DataWorld()
    world.change(
        *topic_records(NUMBER, topic, *(partition_record(NUMBER, n, (BROKER, 2)) for n in range(PARTITIONS)))
    )
    return world


def opened(world: DataWorld, topic: str = TOPIC) -> list[int]:
    return sorted(n for name, n in (each.topic_partition for each in world.all_online()) if name == topic)


def tick_while_due(world: DataWorld) -> int:
    ticks = 0
    while (due_ms := world.replicas.next_deadline_ms()) is not None and due_ms <= world.now_ms:
        world.replicas.tick(world.now_ms)
        ticks += 1
    return ticks


def test_some_are_opened_at_once_and_the_others_by_as_many_ticks_as_they_need() -> None:
    world = world_with()
    assert len(opened(world)) == OPENED_AT_ONCE
    assert world.replicas.next_deadline_ms() == 0
    for more in range(2, 6):
        world.replicas.tick(world.now_ms)
        assert len(opened(world)) == more * OPENED_AT_ONCE
    assert opened(world) == list(range(PARTITIONS))
    assert all(world.partition(n, TOPIC).is_leader for n in range(PARTITIONS))
    assert tick_while_due(world) == 0


def test_an_internal_topic_is_opened_whole_because_its_coordinator_looks_for_it() -> None:
    assert opened(world_with("__consumer_offsets"), "__consumer_offsets") == list(range(PARTITIONS))


def test_a_topic_that_is_deleted_meanwhile_is_not_opened() -> None:
    world = world_with()
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    tick_while_due(world)
    assert opened(world) == []
    assert TOPIC not in {name for name, _ in world.logs.logs}


def test_a_topic_that_is_created_again_with_fewer_partitions_has_no_more() -> None:
    world = world_with()
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    world.change(*topic_records(NUMBER + 1, TOPIC, partition_record(NUMBER + 1, 0, (BROKER, 2))))
    tick_while_due(world)
    assert opened(world) == [0]
    assert world.partition(0, TOPIC).topic_id == topic_id(NUMBER + 1)


@pytest.mark.parametrize("is_leader", [True, False])
def test_the_newest_image_says_who_leads(is_leader: bool) -> None:
    world = world_with()
    last = PARTITIONS - 1
    assert world.replicas.online(TopicPartition(TOPIC, last)) is None
    world.change(
        PartitionChangeRecord(partition_id=last, topic_id=topic_id(NUMBER), leader=BROKER if is_leader else 2)
    )
    tick_while_due(world)
    assert world.partition(last, TOPIC).is_leader is is_leader
    assert opened(world) == list(range(PARTITIONS))


def test_a_replica_that_moves_away_meanwhile_is_not_opened() -> None:
    world = world_with()
    last = PARTITIONS - 1
    world.change(
        PartitionChangeRecord(
            partition_id=last, topic_id=topic_id(NUMBER), replicas=[2, 3], isr=[2, 3], leader=2
        )
    )
    tick_while_due(world)
    assert opened(world) == list(range(PARTITIONS - 1))


def logs_of(world: DataWorld, topic: str = TOPIC) -> list[int]:
    return sorted(index for name, index in world.logs.logs if name == topic)


def test_the_logs_of_a_deleted_topic_are_set_aside_in_parts_and_its_partitions_stop_at_once() -> None:
    world = world_with()
    tick_while_due(world)
    partitions = [world.partition(n, TOPIC) for n in range(PARTITIONS)]
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    assert opened(world) == []
    assert not any(each.is_leader for each in partitions)
    assert len(logs_of(world)) == PARTITIONS - DELETED_AT_ONCE
    assert world.replicas.next_deadline_ms() == 0
    world.replicas.tick(world.now_ms)
    assert len(logs_of(world)) == PARTITIONS - 2 * DELETED_AT_ONCE
    tick_while_due(world)
    assert logs_of(world) == []


def test_a_topic_that_is_created_again_gets_new_logs_while_its_old_ones_are_set_aside() -> None:
    world = world_with()
    tick_while_due(world)
    world.append("old", index=PARTITIONS - 1, topic=TOPIC)
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    records = (partition_record(NUMBER + 1, n, (BROKER, 2)) for n in range(PARTITIONS))
    world.change(*topic_records(NUMBER + 1, TOPIC, *records))
    tick_while_due(world)
    assert opened(world) == logs_of(world) == list(range(PARTITIONS))
    assert {each.topic_id for name, each in world.logs.logs.items() if name.topic == TOPIC} == {
        topic_id(NUMBER + 1)
    }
    assert world.partition(PARTITIONS - 1, TOPIC).log.log_end_offset == 0
