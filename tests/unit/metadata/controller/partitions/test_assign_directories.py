"""AssignReplicasToDirs, through the controller."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.controller_world import World, assigned, at_level

FIRST, SECOND, OTHER, OFFLINE = UUID(int=501), UUID(int=502), UUID(int=601), UUID(int=777)
UNKNOWN_TOPIC = UUID(int=0xABCDEF)

Place = tuple[UUID | None, int]


def ready() -> World:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead()
    world.add_brokers(1, log_dirs=[FIRST, SECOND])
    world.add_brokers(2, log_dirs=[OTHER])
    return world


def send(world: World, directories: dict[UUID, list[Place]], **changes: Any) -> Values:
    brokers = world.controller.image.cluster.brokers
    values: dict[str, Any] = {
        "broker_id": 1,
        "broker_epoch": brokers[1].epoch,
        "directories": [
            {
                "id_": directory_id,
                "topics": [
                    {"topic_id": topic_id, "partitions": [{"partition_index": partition_id}]}
                    for topic_id, partition_id in places
                ],
            }
            for directory_id, places in directories.items()
        ],
    }
    return world.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, **values | changes)


def assign(world: World, directories: dict[UUID, list[Place]]) -> dict[tuple[UUID, UUID, int], ErrorCode]:
    answer = send(world, directories)
    assert answer.error_code is ErrorCode.none
    return {
        (directory.id_, each.topic_id, one.partition_index): one.error_code
        for directory in answer.directories
        for each in directory.topics
        for one in each.partitions
    }


def test_many_at_once() -> None:
    world = ready()
    a = world.create(assigned("a", (1, 2), (1, 2), (1, 2)))["a"].topic_id
    b = world.create(assigned("b", (1, 2), (1, 2)))["b"].topic_id
    c = world.create(assigned("c", (2,)))["c"].topic_id
    assert world.partition("a").directories == (UNASSIGNED, OTHER)
    start = world.raft.log_end_offset
    codes = assign(
        world,
        {
            FIRST: [(a, 0), (a, 137), (b, 0), (c, 0)],
            SECOND: [(a, 1), (UNKNOWN_TOPIC, 1)],
            OFFLINE: [(a, 2)],
            LOST: [(b, 1)],
        },
    )
    refused = {key: code for key, code in codes.items() if code is not ErrorCode.none}
    assert refused == {
        (FIRST, a, 137): ErrorCode.unknown_topic_or_partition,
        (FIRST, c, 0): ErrorCode.not_leader_or_follower,
        (SECOND, UNKNOWN_TOPIC, 1): ErrorCode.unknown_topic_id,
    }
    assert len(codes) == 8

    def moved(topic_id: UUID, partition_id: int, directory_id: UUID) -> PartitionChangeRecord:
        directories = (directory_id, OTHER)
        return PartitionChangeRecord(topic_id=topic_id, partition_id=partition_id, directories=directories)

    def left(topic_id: UUID, partition_id: int) -> PartitionChangeRecord:
        return PartitionChangeRecord(topic_id=topic_id, partition_id=partition_id, isr=(2,), leader=2)

    assert world.raft.records(start) == [
        moved(a, 0, FIRST),
        moved(b, 0, FIRST),
        moved(a, 1, SECOND),
        moved(a, 2, OFFLINE),
        moved(b, 1, LOST),
        left(a, 2),
        left(b, 1),
    ]
    assert world.partition("a", 2).directories == (OFFLINE, OTHER)
    assert [world.partition("a", each).leader for each in range(3)] == [1, 1, 2]


def test_same_directory_again_writes_nothing() -> None:
    world = ready()
    a = world.create(assigned("a", (1, 2)))["a"].topic_id
    assign(world, {FIRST: [(a, 0)]})
    end = world.raft.log_end_offset
    assert assign(world, {FIRST: [(a, 0)]}) == {(FIRST, a, 0): ErrorCode.none}
    assert world.raft.log_end_offset == end


def test_last_of_the_isr_stays_in_it_without_a_leader() -> None:
    world = ready()
    a = world.create(assigned("a", (1,)))["a"].topic_id
    assign(world, {LOST: [(a, 0)]})
    state = world.partition("a")
    assert (state.leader, state.isr, state.directories) == (NO_LEADER, (1,), (LOST,))


def test_later_word_counts_within_a_request() -> None:
    world = ready()
    a = world.create(assigned("a", (1, 2)))["a"].topic_id
    assign(world, {OFFLINE: [(a, 0)], SECOND: [(a, 0)]})
    state = world.partition("a")
    assert (state.directories, state.leader, state.isr) == ((SECOND, OTHER), 1, (1, 2))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"broker_epoch": 0}, ErrorCode.stale_broker_epoch),
        ({"broker_id": 9}, ErrorCode.stale_broker_epoch),
    ],
)
def test_unregistered_broker_or_stale_epoch(changes: dict[str, Any], error: ErrorCode) -> None:
    world = ready()
    answer = send(world, {}, **changes)
    assert (answer.error_code, answer.directories) == (error, ())


def test_level_without_directories() -> None:
    """Even a broker of an old epoch gets this error."""
    world = at_level(16).add_brokers(1)
    a = world.create(assigned("a", (1,)))["a"].topic_id
    assert send(world, {FIRST: [(a, 0)]}).error_code is ErrorCode.unsupported_version
    assert send(world, {}, broker_epoch=0).error_code is ErrorCode.unsupported_version
    assert world.partition("a").directories == (MIGRATING,)


def test_missing_topic_id_is_unknown() -> None:
    assert list(assign(ready(), {FIRST: [(None, 0)]}).values()) == [ErrorCode.unknown_topic_id]
