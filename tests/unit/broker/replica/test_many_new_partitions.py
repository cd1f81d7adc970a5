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


def world_that_makes_files(count: int = 1) -> DataWorld:
    """With a new topic whose files are still being made."""
    world = DataWorld()
    world.logs.in_making = {}
    world.change(
        *topic_records(NUMBER, TOPIC, *(partition_record(NUMBER, n, (BROKER, 2)) for n in range(count)))
    )
    return world


def make(world: DataWorld, number: int = 0) -> None:
    world.logs.make(TopicPartition(TOPIC, number))
    world.replicas.log_made(TopicPartition(TOPIC, number))


def test_an_image_does_not_wait_for_the_files_of_new_logs() -> None:
    world = world_that_makes_files(2)
    assert opened(world) == []
    assert not world.replicas.is_offline(TopicPartition(TOPIC, 0))
    assert tick_while_due(world) == 0
    make(world, 1)
    assert tick_while_due(world) == 1
    assert opened(world) == [1]
    assert world.partition(1, TOPIC).is_leader
    make(world, 0)
    tick_while_due(world)
    assert opened(world) == [0, 1]


def test_a_change_meanwhile_counts_and_makes_no_files_again() -> None:
    world = world_that_makes_files()
    world.change(PartitionChangeRecord(partition_id=0, topic_id=topic_id(NUMBER), leader=2))
    make(world)
    tick_while_due(world)
    assert not world.partition(0, TOPIC).is_leader
    assert world.partition(0, TOPIC).leader_id == 2


@pytest.mark.parametrize("is_made_before", [True, False])
def test_what_was_made_for_a_topic_that_is_deleted_meanwhile_is_deleted(is_made_before: bool) -> None:
    world = world_that_makes_files()
    if is_made_before:
        make(world)
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    if not is_made_before:
        make(world)
    tick_while_due(world)
    assert opened(world) == []
    assert TOPIC not in {name for name, _ in world.logs.logs}


@pytest.mark.parametrize("is_made_before", [True, False])
def test_a_topic_that_is_created_again_meanwhile_gets_a_log_of_its_own(is_made_before: bool) -> None:
    world = world_that_makes_files()
    if is_made_before:
        make(world)
    again = topic_records(NUMBER + 1, TOPIC, partition_record(NUMBER + 1, 0, (BROKER, 2)))
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)), *again)
    if not is_made_before:
        make(world)
    tick_while_due(world)
    assert opened(world) == []
    make(world)
    tick_while_due(world)
    assert world.partition(0, TOPIC).topic_id == topic_id(NUMBER + 1)


def test_what_was_made_for_a_replica_that_moves_away_meanwhile_is_deleted() -> None:
    world = world_that_makes_files()
    world.change(
        PartitionChangeRecord(
            partition_id=0, topic_id=topic_id(NUMBER), replicas=[2, 3], isr=[2, 3], leader=2
        )
    )
    make(world)
    tick_while_due(world)
    assert opened(world) == []
    assert TOPIC not in {name for name, _ in world.logs.logs}


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
