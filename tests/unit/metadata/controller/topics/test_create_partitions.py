"""CreatePartitions, through the controller."""

from collections import Counter
from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.controller_world import World, assigned, at_level, kinds, topic
from tests.support.metadata.topic_worlds import ready


def more(name: str, count: int, *replicas: tuple[int, ...]) -> dict[str, Any]:
    assignments = [{"broker_ids": each} for each in replicas] if replicas else None
    return {"name": name, "count": count, "assignments": assignments}


def grow(world: World, *topics: dict[str, Any], version: int = 3, **changes: Any) -> dict[str, Values]:
    values = {"topics": topics, "timeout": 1000, "validate_only": False, **changes}
    answer = world.ask(ApiKey.CREATE_PARTITIONS, version, **values)
    return {entry.name: entry for entry in answer.results}


@pytest.mark.parametrize("version", [0, 3])
def test_partitions_follow_those_that_are_there(version: int) -> None:
    world = ready()
    topic_id = world.create(topic("a", num_partitions=2, replication_factor=3))["a"].topic_id
    start = world.raft.log_end_offset
    entry = grow(world, more("a", 4), version=version)["a"]
    assert (entry.error_code, entry.error_message) == (ErrorCode.none, None)
    _note, *made = world.raft.records(start)
    for partition_id, record in enumerate(made, 2):
        assert isinstance(record, PartitionRecord)
        assert (record.topic_id, record.partition_id) == (topic_id, partition_id)
        assert set(record.replicas) == set(record.isr) == {0, 1, 2}
        assert (record.leader, record.leader_epoch, record.partition_epoch) == (record.replicas[0], 0, 0)
    assert len(world.controller.committed_image.topics.by_name["a"].partitions) == 4


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (more("a", 2), ErrorCode.invalid_partitions),
        (more("a", 1), ErrorCode.invalid_partitions),
        (more("a", -1), ErrorCode.invalid_partitions),
        (more("b", 3), ErrorCode.unknown_topic_or_partition),
        (more("a", 3, (0, 1), (1, 2)), ErrorCode.invalid_replica_assignment),
        (more("a", 4, (0, 1)), ErrorCode.invalid_replica_assignment),
        (more("a", 3, (0,)), ErrorCode.invalid_replica_assignment),
        (more("a", 3, (0, 0)), ErrorCode.invalid_replica_assignment),
        (more("a", 3, (0, 9)), ErrorCode.invalid_replica_assignment),
        (more("a", 3, ()), ErrorCode.invalid_replica_assignment),
        ({"name": "a", "count": 3, "assignments": ()}, ErrorCode.invalid_replica_assignment),
    ],
)
def test_refusals(asked: dict[str, Any], error: ErrorCode) -> None:
    world = ready()
    world.create(assigned("a", (0, 1), (1, 2)))
    start = world.raft.log_end_offset
    entry = grow(world, asked)[asked["name"]]
    assert entry.error_code is error
    assert entry.error_message
    assert world.raft.records(start) == []


def test_manual_assignments_and_one_bad_topic_among_good_ones() -> None:
    world = ready()
    world.create(assigned("a", (0, 1)), assigned("b", (0, 1)))
    entries = grow(world, more("a", 3, (2, 1), (1, 0)), more("missing", 2), more("b", 2, (1, 2)))
    assert [entries[name].error_code for name in ("a", "b")] == [ErrorCode.none] * 2
    assert entries["missing"].error_code is ErrorCode.unknown_topic_or_partition
    assert [world.partition("a", each).replicas for each in range(3)] == [(0, 1), (2, 1), (1, 0)]
    assert world.partition("b", 1).replicas == (1, 2)


def test_topic_named_twice_is_left_as_it_is() -> None:
    world = ready()
    world.create({"name": "a"}, {"name": "b"})
    asked = [more("a", 2), more("b", 2), more("a", 3)]
    answer = world.ask(ApiKey.CREATE_PARTITIONS, 3, topics=asked, timeout=1, validate_only=False)
    errors = [(entry.name, entry.error_code) for entry in answer.results]
    assert sorted(errors) == [("a", ErrorCode.invalid_request), ("b", ErrorCode.none)]
    assert len(world.controller.image.topics.by_name["a"].partitions) == 1


def test_dry_run_says_what_would_be_and_writes_nothing() -> None:
    world = ready()
    world.create({"name": "a"})
    start = world.raft.log_end_offset
    entries = grow(world, more("a", 2), more("b", 2), validate_only=True)
    assert entries["a"].error_code is ErrorCode.none
    assert entries["b"].error_code is ErrorCode.unknown_topic_or_partition
    assert world.raft.records(start) == []


def test_only_members_that_are_up_are_in_sync() -> None:
    world = ready()
    world.create(assigned("a", (0, 1, 2)))
    world.heartbeat(2, want_fence=True)
    world.heartbeat(1, want_shut_down=True)
    grow(world, more("a", 2, (2, 1, 0)))
    state = world.partition("a", 1)
    assert (state.replicas, state.isr, state.leader) == ((2, 1, 0), (0,), 0)


def test_no_node_is_up() -> None:
    """Whether we place the replicas or the client does makes another error."""
    world = ready()
    world.create(assigned("a", (0, 1)))
    for broker_id in range(3):
        world.heartbeat(broker_id, want_fence=True)
    assert grow(world, more("a", 2))["a"].error_code is ErrorCode.invalid_replication_factor
    manual = grow(world, more("a", 2, (0, 1)))["a"]
    assert manual.error_code is ErrorCode.invalid_replica_assignment
    assert "fenced or in controlled shutdown" in manual.error_message


def test_too_many_for_one_batch() -> None:
    world = ready()
    world.create({"name": "a"}, {"name": "b"})
    start = world.raft.log_end_offset
    entries = grow(world, more("a", 6_000), more("b", 6_000))
    assert {entry.error_code for entry in entries.values()} == {ErrorCode.policy_violation}
    assert world.raft.records(start) == []


def test_records_of_an_old_level_have_no_directories() -> None:
    world = at_level(16).add_brokers(0, 1)
    world.create({"name": "a"})
    start = world.raft.log_end_offset
    grow(world, more("a", 2))
    record = world.raft.records(start)[-1]
    assert isinstance(record, PartitionRecord)
    assert record.directories == ()
    assert kinds(world, start)[-1] == "PartitionRecord"


def test_new_partitions_go_to_those_that_lead_fewest() -> None:
    for seed in range(10):
        config = ControllerConfig(bootstrap_records=bootstrap_records(25, {}))
        world = World(config, seed=seed).lead().add_brokers(*range(6))
        world.create(topic("a", num_partitions=4, replication_factor=2))
        grow(world, more("a", 6))
        grow(world, more("a", 12))
        states = [world.partition("a", each) for each in range(12)]
        assert Counter(state.leader for state in states) == dict.fromkeys(range(6), 2)


def test_quota_lets_one_topic_pass_and_refuses_the_next() -> None:
    world = ready()
    world.create(*({"name": name} for name in "abc"))
    quota = {"key": "controller_mutation_rate", "value": 1.0, "remove": False}
    entity = [{"entity_type": "user", "entity_name": "alice"}]
    world.ask(
        ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[{"entity": entity, "ops": [quota]}], validate_only=False
    )
    entries = grow(world, more("a", 50), more("b", 2))
    assert entries["a"].error_code is ErrorCode.none
    assert entries["b"].error_code is ErrorCode.throttling_quota_exceeded
    assert grow(world, more("c", 2), version=2)["c"].error_code is ErrorCode.none
