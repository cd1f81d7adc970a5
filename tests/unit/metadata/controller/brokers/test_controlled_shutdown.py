"""A broker in controlled shutdown gets nothing new to lead, or it could never leave.

Below 3.3-IV3 only the memory of the controller tells that it is in it.
"""

from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import World, assigned, topic

# The last level that does not tell who is in controlled shutdown, the first that does, and the newest but one.
LEVELS = (4, 6, 7, 25)
BALANCING_S = 20


def leaving(level: int, *broker_ids: int) -> World:
    """Broker 1, which led partitions, is on its way out; the others have not read yet who leads instead."""
    config = ControllerConfig(
        bootstrap_records=bootstrap_records(level, {}),
        leader_imbalance_check_interval_seconds=BALANCING_S,
        metadata_max_idle_interval_ms=0,
    )
    world = World(config).lead().add_brokers(*broker_ids)
    world.create(assigned("led", (1, *broker_ids[1:])), assigned("lone", (1,)))
    assert not world.heartbeat(1, want_shut_down=True, current_metadata_offset=0).should_shut_down
    return world


def may_go(world: World, *others: int) -> bool:
    for broker_id in others:
        world.heartbeat(broker_id)
    return bool(world.heartbeat(1, want_shut_down=True).should_shut_down)


def add_partitions(world: World, name: str, count: int) -> Any:
    topics = [{"name": name, "count": count, "assignments": None}]
    answer = world.ask(ApiKey.CREATE_PARTITIONS, 3, topics=topics, timeout=1000, validate_only=False)
    return answer.results[0]


@pytest.mark.parametrize("level", LEVELS)
def test_new_partitions_go_to_others(level: int) -> None:
    world = leaving(level, 1, 2, 3)
    world.create(topic("placed", num_partitions=12, replication_factor=2))
    assert {each for index in range(12) for each in world.partition("placed", index).replicas} == {2, 3}
    assert add_partitions(world, "placed", 24).error_code is ErrorCode.none
    assert {each for index in range(24) for each in world.partition("placed", index).replicas} == {2, 3}
    world.create(assigned("manual", (1, 2)))
    assert (world.partition("manual").leader, world.partition("manual").isr) == (2, (2,))
    assert may_go(world, 2, 3)


@pytest.mark.parametrize("level", LEVELS)
def test_a_sole_member_has_no_place(level: int) -> None:
    world = leaving(level, 1, 2)
    world.heartbeat(2, want_fence=True)
    refused = world.create(topic("a"), assigned("b", (1, 2)))
    assert refused["a"].error_code is ErrorCode.invalid_replication_factor
    assert refused["a"].error_message == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced or in controlled shutdown."
    )
    assert refused["b"].error_code is ErrorCode.invalid_replica_assignment
    assert add_partitions(world, "led", 2).error_code is ErrorCode.invalid_replication_factor


@pytest.mark.parametrize("level", LEVELS)
def test_balancing_gives_nothing_back(level: int) -> None:
    world = leaving(level, 1, 2)
    for _ in range(2 * BALANCING_S):
        world.advance(1000)
        world.commit()
        world.heartbeat(2, current_metadata_offset=0)
        assert not world.heartbeat(1, want_shut_down=True, current_metadata_offset=0).should_shut_down
    assert (world.partition("lone").leader, world.partition("led").leader) == (NO_LEADER, 2)
    assert may_go(world, 2)
