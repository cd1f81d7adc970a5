"""Requests of many entries: decided in several turns, answered once, as if it had been one."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller import controller as controller_module
from kquorum.metadata.controller import divided_requests
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller_apis import HANDLERS
from kquorum.metadata.forwarding import is_for_the_leader
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID
from tests.support.controller_world import World, assigned, topic
from tests.support.metadata.faulty_world import FaultyWorld


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided_requests, "PART_WEIGHT", 40)
    monkeypatch.setattr(divided_requests, "UNDIVIDED_WEIGHT", 60)


def world_of(*topics: dict[str, Any]) -> World:
    world = World().lead().add_brokers(1, 2, 3)
    if topics:
        world.create(*topics)
    return world


def turns_until_answered(world: World, answers: list[Any]) -> int:
    turns = 0
    while not answers:
        assert world.controller.next_deadline_ms() == 0
        world.controller.handle_time(world.now_ms)
        world.commit()
        turns += 1
    return turns


def creation(*names: str) -> dict[str, Any]:
    return {"topics": [topic(name) for name in names], "timeout": 1000}


def test_topics_are_created_in_several_turns_and_answered_at_once() -> None:
    world = world_of()
    names = [f"t{number}" for number in range(40)]
    answers = world.send(ApiKey.CREATE_TOPICS, 7, **creation(*names))
    assert not answers
    assert turns_until_answered(world, answers) == 5
    assert [entry.name for entry in answers[0].topics] == names
    assert {entry.error_code for entry in answers[0].topics} == {ErrorCode.none}
    assert set(world.controller.committed_image.topics.by_name) == set(names)


def test_a_topic_that_is_named_twice_is_refused_wherever_it_stands() -> None:
    world = world_of()
    names = ["twice", *(f"t{number}" for number in range(40)), "twice"]
    answers = world.send(ApiKey.CREATE_TOPICS, 7, **creation(*names))
    turns_until_answered(world, answers)
    codes = {entry.name: entry.error_code for entry in answers[0].topics}
    assert codes.pop("twice") is ErrorCode.invalid_request
    assert set(codes.values()) == {ErrorCode.none}
    assert "twice" not in world.controller.image.topics.by_name


def test_others_have_their_turns_in_between() -> None:
    world = world_of()
    answers = world.send(ApiKey.CREATE_TOPICS, 7, **creation(*(f"t{number}" for number in range(40))))
    world.controller.handle_time(world.now_ms)
    world.commit()
    assert not world.heartbeat(1).is_fenced
    assert not answers


def test_a_lost_leadership_is_reported_for_what_was_not_done() -> None:
    world = world_of()
    answers = world.send(ApiKey.CREATE_TOPICS, 7, **creation(*(f"t{number}" for number in range(40))))
    world.controller.handle_time(world.now_ms)
    world.commit()
    world.controller.handle_time(world.now_ms)
    assert not answers
    world.follow(9, 2)
    codes = [entry.error_code for entry in answers[0].topics]
    assert len(codes) == 40
    assert codes[:8] == [ErrorCode.none] * 8, "the first part was committed"
    assert codes[8:] == [ErrorCode.not_controller] * 32


def test_more_partitions_than_an_operation_may_make_are_refused_as_a_whole() -> None:
    world = world_of()
    topics = [topic(f"t{number}", num_partitions=400) for number in range(30)]
    answer = world.ask(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout=1000)
    assert ErrorCode.none not in {entry.error_code for entry in answer.topics}
    assert not world.controller.image.topics.by_name


def test_an_isr_change_of_many_partitions_is_cut_anywhere() -> None:
    world = world_of(assigned("a", *([1, 2, 3] for _ in range(230))), assigned("b", [1, 2, 3]))
    by_name = world.controller.image.topics.by_name
    epoch = world.controller.image.cluster.brokers[1].epoch
    topics = [
        {"topic_id": by_name[name].id, "partitions": [wanted(index) for index in range(count)]}
        for name, count in (("a", 230), ("b", 1))
    ]
    topics.append({"topic_id": UUID(int=5), "partitions": []})
    values = {"broker_id": 1, "broker_epoch": epoch, "topics": topics}
    answers = world.send(ApiKey.ALTER_PARTITION, 2, **values)
    assert turns_until_answered(world, answers) > 5
    told = [(each.topic_id, entry) for each in answers[0].topics for entry in each.partitions]
    assert [entry.partition_index for _, entry in told] == [*range(230), 0]
    assert {entry.error_code for _, entry in told} == {ErrorCode.none}
    assert all(world.partition("a", index).isr == (1, 2) for index in range(230))
    assert world.partition("b").isr == (1, 2)


def test_a_lost_leadership_refuses_an_isr_change_once() -> None:
    """To make hundreds of parts only to refuse each of them alike would hold the loop up."""
    world = world_of(assigned("a", *([1, 2, 3] for _ in range(230))))
    image = world.controller.image
    topic_id = image.topics.by_name["a"].id
    values = {
        "broker_id": 1,
        "broker_epoch": image.cluster.brokers[1].epoch,
        "topics": [{"topic_id": topic_id, "partitions": [wanted(index) for index in range(230)]}],
    }
    answers = world.send(ApiKey.ALTER_PARTITION, 2, **values)
    assert world.controller._active is not None
    (whole,) = world.controller._active.divided
    world.follow(9, 2)
    assert answers[0].error_code is ErrorCode.not_controller
    assert len(whole._taken) == 1


def test_the_tables_of_the_topics_count_in_an_isr_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made again, however few of their partitions change."""
    monkeypatch.setattr(divided_requests, "_ROWS_OF_A_WEIGHT", 2)
    names = [f"t{number}" for number in range(12)]
    world = world_of(*(assigned(name, *([1, 2, 3] for _ in range(20))) for name in names))
    image = world.controller.image
    topics = [{"topic_id": image.topics.by_name[name].id, "partitions": [wanted(7)]} for name in names]
    epoch = image.cluster.brokers[1].epoch
    answers = world.send(ApiKey.ALTER_PARTITION, 2, broker_id=1, broker_epoch=epoch, topics=topics)
    assert turns_until_answered(world, answers) == 4
    assert all(world.partition(name, 7).isr == (1, 2) for name in names)


def test_that_an_isr_change_is_long_is_seen_by_its_first_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's request may have 150,000 of them: to weigh all would hold the loop up."""
    weighed = []
    weight_of_table = divided_requests._weight_of_table

    def counted(topic: Any, image: MetadataImage) -> int:
        weighed.append(topic.topic_id)
        return weight_of_table(topic, image)

    monkeypatch.setattr(divided_requests, "_weight_of_table", counted)
    world = world_of()
    epoch = world.controller.image.cluster.brokers[1].epoch
    topics = [{"topic_id": UUID(int=99 + number), "partitions": [wanted(0)]} for number in range(5_000)]
    answers = world.send(ApiKey.ALTER_PARTITION, 2, broker_id=1, broker_epoch=epoch, topics=topics)
    most = 0
    while not answers:
        most, weighed[:] = max(most, len(weighed)), ()
        world.controller.handle_time(world.now_ms)
        world.commit()
    assert len(answers[0].topics) == 5_000
    assert most < 100


def test_a_part_that_is_refused_as_a_whole_refuses_all() -> None:
    world = world_of(assigned("a", *([1, 2, 3] for _ in range(70))))
    topic_id = world.controller.image.topics.by_name["a"].id
    topics = [{"topic_id": topic_id, "partitions": [wanted(index) for index in range(70)]}]
    answer = world.ask(ApiKey.ALTER_PARTITION, 2, broker_id=1, broker_epoch=-7, topics=topics)
    assert answer.error_code is ErrorCode.stale_broker_epoch
    assert not answer.topics


def wanted(index: int) -> dict[str, Any]:
    return {
        "partition_index": index,
        "leader_epoch": 0,
        "new_isr": (1, 2),
        "leader_recovery_state": 0,
        "partition_epoch": 0,
    }


def test_what_makes_the_controller_fail_in_one_part_is_not_offered_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our own fault deposes one controller. NOT_CONTROLLER for the other parts would have the broker send all of it to
    the next one, and depose that as well."""
    world = FaultyWorld()
    world.lead().add_brokers(1, 2, 3)
    handler = HANDLERS[ApiKey.CREATE_TOPICS]

    def failing(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
        if any(each.name == "t12" for each in request.body.topics):
            raise RuntimeError("a fault of ours")
        return handler(context, request)

    monkeypatch.setattr(controller_module, "HANDLERS", {**HANDLERS, ApiKey.CREATE_TOPICS: failing})
    answers = world.send(ApiKey.CREATE_TOPICS, 7, **creation(*(f"t{number}" for number in range(40))))
    world.controller.handle_time(world.now_ms)
    assert not answers
    world.controller.handle_time(world.now_ms)
    assert [str(error) for _, error in world.faults] == ["a fault of ours"]
    assert not is_for_the_leader(ApiKey.CREATE_TOPICS, answers[0])
    entries = answers[0].topics
    assert [entry.name for entry in entries] == [f"t{number}" for number in range(40)]
    assert {entry.error_code for entry in entries} == {ErrorCode.unknown_server_error}


LEADER_THROTTLED = "leader.replication.throttled.replicas"


def altered(name: str, value: str, key: str = LEADER_THROTTLED) -> dict[str, Any]:
    """A resource of IncrementalAlterConfigs: one config of a topic is set."""
    config = {"name": key, "config_operation": 0, "value": value}
    return {"resource_type": TOPIC, "resource_name": name, "configs": [config]}


def replaced(name: str, value: str) -> dict[str, Any]:
    """A resource of AlterConfigs."""
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "configs": [{"name": LEADER_THROTTLED, "value": value}],
    }


def replicas(count: int) -> str:
    return ",".join(f"{each}:1" for each in range(count))


@pytest.mark.parametrize(
    ("api_key", "resource"), [(ApiKey.INCREMENTAL_ALTER_CONFIGS, altered), (ApiKey.ALTER_CONFIGS, replaced)]
)
def test_configs_with_long_values_are_altered_in_several_turns(api_key: ApiKey, resource: Any) -> None:
    """200 topics with two values of 32 KB each held the leader for half a second."""
    names = [f"t{number}" for number in range(8)]
    world = world_of(*map(topic, names))
    value = replicas(4_000)
    resources = [resource(name, value) for name in (*names, "missing")]
    answers = world.send(api_key, 1, resources=resources, validate_only=False)
    assert not answers
    assert turns_until_answered(world, answers) > 3
    told = {each.resource_name: each.error_code for each in answers[0].responses}
    assert list(told) == [*names, "missing"]
    assert told.pop("missing") is ErrorCode.unknown_topic_or_partition
    assert set(told.values()) == {ErrorCode.none}
    configs = world.controller.committed_image.configs.resources
    assert all(configs[ConfigResource(TOPIC, name)][LEADER_THROTTLED] == value for name in names)


def test_what_a_resource_has_already_counts_as_well() -> None:
    """All configs of a topic are checked with each change of one of them."""
    names = [f"t{number}" for number in range(8)]
    world = world_of(*map(topic, names))
    long = [altered(name, replicas(4_000)) for name in names]
    turns_until_answered(
        world, world.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=long, validate_only=False)
    )
    resources = [altered(name, "77777", "retention.ms") for name in names]
    answers = world.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    assert not answers
    assert turns_until_answered(world, answers) > 3
    assert {each.error_code for each in answers[0].responses} == {ErrorCode.none}


def test_a_resource_that_is_named_twice_is_refused_wherever_it_stands() -> None:
    names = [f"t{number}" for number in range(60)]
    world = world_of(topic("twice"), *map(topic, names))
    resources = [altered(name, "1:1") for name in ("twice", *names, "twice")]
    answers = world.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    assert turns_until_answered(world, answers) > 1
    codes = [(each.resource_name, each.error_code) for each in answers[0].responses]
    assert codes.count(("twice", ErrorCode.invalid_request)) == 2
    assert len(codes) == 62
    assert ConfigResource(TOPIC, "twice") not in world.controller.image.configs.resources


def test_more_configs_than_an_operation_may_write_are_refused_as_a_whole() -> None:
    names = [f"t{number}" for number in range(60)]
    world = World(ControllerConfig(max_records_per_batch=50)).lead().add_brokers(1, 2, 3)
    for name in names:
        world.create(topic(name))
    resources = [altered(name, "1:1") for name in names]
    answer = world.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    assert {each.error_code for each in answer.responses} == {ErrorCode.policy_violation}
    assert not world.controller.image.configs.resources


def test_topics_with_long_configs_are_created_in_several_turns() -> None:
    world = world_of()
    names = [f"t{number}" for number in range(8)]
    configs = [{"name": LEADER_THROTTLED, "value": replicas(4_000)}]
    topics = [{**topic(name), "configs": configs} for name in names]
    answers = world.send(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout=1000)
    assert not answers
    assert turns_until_answered(world, answers) > 3
    assert {each.error_code for each in answers[0].topics} == {ErrorCode.none}


def deletion(*entries: str | UUID) -> dict[str, Any]:
    """Topics by name or by id."""
    topics = [
        {"name": None, "topic_id": entry} if isinstance(entry, UUID) else {"name": entry, "topic_id": None}
        for entry in entries
    ]
    return {"topics": topics, "timeout": 1000}


def topics_with_long_configs(*names: str) -> World:
    world = world_of()
    configs = [{"name": LEADER_THROTTLED, "value": replicas(4_000)}]
    for name in names:
        world.create({**topic(name), "configs": configs})
    return world


@pytest.mark.parametrize("version", [5, 6])
def test_topics_with_long_configs_are_deleted_in_several_turns(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """1,200 topics with two values of 32 KB each held the leader for 110 ms."""
    monkeypatch.setattr(divided_requests, "_DELETED_BYTES_OF_A_WEIGHT", 600)
    names = [f"t{number}" for number in range(8)]
    world = topics_with_long_configs(*names)
    by_name = {"topic_names": (*names, "missing"), "timeout": 1000}
    values = by_name if version < 6 else deletion(*names, "missing")
    answers = world.send(ApiKey.DELETE_TOPICS, version, **values)
    assert not answers
    assert turns_until_answered(world, answers) > 3
    told = {each.name: each.error_code for each in answers[0].responses}
    assert list(told) == [*names, "missing"]
    assert told.pop("missing") is ErrorCode.unknown_topic_or_partition
    assert set(told.values()) == {ErrorCode.none}
    image = world.controller.committed_image
    assert image.topics.is_empty
    assert image.configs.is_empty


def test_the_partitions_of_deleted_topics_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided_requests, "_DELETED_ROWS_OF_A_WEIGHT", 1)
    names = [f"t{number}" for number in range(8)]
    world = world_of(*(topic(name, num_partitions=30) for name in names))
    answers = world.send(ApiKey.DELETE_TOPICS, 6, **deletion(*names))
    assert turns_until_answered(world, answers) > 2
    assert {each.error_code for each in answers[0].responses} == {ErrorCode.none}


def test_a_deleted_topic_is_named_twice_wherever_its_name_and_its_id_stand() -> None:
    """It is not deleted at all, and the answer is that of an undivided request."""
    names = [f"t{number}" for number in range(60)]
    world = world_of(*map(topic, ("by-both", "by-name", "by-id", "odd")), *map(topic, names))
    ids = {name: each.id for name, each in world.controller.image.topics.by_name.items()}
    unknown = UUID(int=99)
    twice = ("by-both", "by-name", ids["by-id"], unknown, "missing")
    values = deletion(*twice, *names, ids["by-both"], *twice[1:])
    values["topics"] += [{"name": "odd", "topic_id": ids["odd"]}, {"name": None, "topic_id": None}] * 2
    answers = world.send(ApiKey.DELETE_TOPICS, 6, **values)
    assert turns_until_answered(world, answers) > 1
    refused = [
        (each.name, each.topic_id) for each in answers[0].responses if each.error_code is not ErrorCode.none
    ]
    assert {each.error_code for each in answers[0].responses if each.name not in names} == {
        ErrorCode.invalid_request
    }
    assert sorted(refused, key=str) == sorted(
        [
            ("by-both", ids["by-both"]),
            ("by-name", ZERO_UUID),
            (None, ids["by-id"]),
            (None, unknown),
            ("missing", ZERO_UUID),
            ("odd", ids["odd"]),
            (None, ZERO_UUID),
        ],
        key=str,
    )
    assert len(answers[0].responses) == 60 + len(refused)
    assert set(world.controller.image.topics.by_name) == {"by-both", "by-name", "by-id", "odd"}


def test_few_parts_are_uncommitted_at_a_time() -> None:
    """A commit hashes what it changes: many parts that are committed together would hold the loop up."""
    names = [f"t{number}" for number in range(200)]
    world = world_of()
    for start in range(0, 200, 10):
        world.create(*map(topic, names[start : start + 10]))
    answers = world.send(ApiKey.DELETE_TOPICS, 6, **deletion(*names))
    for _ in range(5):
        world.controller.handle_time(world.now_ms)
    assert len(world.controller.image.topics.by_name) == 200 - 2 * 20
    assert world.controller.next_deadline_ms() != 0, "what waits for a commit is not due"
    world.commit()
    assert turns_until_answered(world, answers) > 3
    assert world.controller.committed_image.topics.is_empty
