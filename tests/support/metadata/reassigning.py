"""AlterPartitionReassignments and ListPartitionReassignments, asked of a controller in a test."""

from typing import Any

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.controller_world import World

Target = tuple[int, ...] | None


def ready(brokers: int = 6) -> World:
    return World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(*range(brokers))


def reassign(
    world: World, targets: dict[tuple[str, int], Target], version: int = 1, **changes: Any
) -> dict[tuple[str, int], Values]:
    topics: dict[str, list[Values]] = {}
    for (name, partition_id), replicas in targets.items():
        topics.setdefault(name, []).append({"partition_index": partition_id, "replicas": replicas})
    values: dict[str, Any] = {
        "timeout": 1000,
        "topics": [{"name": name, "partitions": partitions} for name, partitions in topics.items()],
        "allow_replication_factor_change": True,
    }
    answer = world.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, **values | changes)
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    return {
        (entry.name, each.partition_index): each for entry in answer.responses for each in entry.partitions
    }


def move(world: World, *target: int, name: str = "a") -> None:
    """Reassign partition 0, which succeeds."""
    assert reassign(world, {(name, 0): target})[name, 0].error_code is ErrorCode.none


def cancel(world: World) -> Values:
    return reassign(world, {("a", 0): None})["a", 0]


def running(world: World, topics: Any = None) -> dict[tuple[str, int], Values]:
    answer = world.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout=1000, topics=topics)
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    return {(entry.name, each.partition_index): each for entry in answer.topics for each in entry.partitions}


def report_isr(world: World, *isr: int, name: str = "a") -> Values:
    """By the leader of partition 0."""
    state, brokers = world.partition(name), world.controller.image.cluster.brokers
    partition = {
        "partition_index": 0,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": brokers[each].epoch} for each in isr],
    }
    topics = [
        {"topic_id": world.controller.image.topics.by_name[name].id, "partitions": [partition]},
    ]
    answer = world.ask(
        ApiKey.ALTER_PARTITION,
        3,
        broker_id=state.leader,
        broker_epoch=brokers[state.leader].epoch,
        topics=topics,
    )
    entry: Values = answer.topics[0].partitions[0]
    return entry
