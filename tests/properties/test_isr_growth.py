"""ISRs that grow are decided together as they are one by one: the same answer, records and state."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions import alter_partition as isr_growth
from kquorum.metadata.controller.partitions.alter_partition import alter_partition
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.timeline import RecordRun, record_count
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.records import partition_record
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, TopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import decode_record
from tests.support.api_calls import request_of
from tests.support.controller_world import World

BROKERS = tuple(range(1, 10))
LEADER, FENCED, LEAVING = 1, 8, 9
TOPICS, PARTITIONS, ROUNDS = 4, 60, 25


def directory_of(broker_id: int, random_source: Random) -> UUID:
    own = UUID(int=10_000 + broker_id)
    return random_source.choices((own, UNASSIGNED, MIGRATING, LOST, UUID(int=77_777)), (40, 5, 5, 1, 1))[0]


def some_state(random_source: Random, width: int) -> PartitionState:
    """Led by LEADER, mostly, and with nothing unusual about it, mostly."""
    # Now and then one that may not be added.
    others = random_source.sample(BROKERS[1:] if random_source.random() < 0.2 else BROKERS[1:-2], width - 1)
    replicas = [LEADER, *others]
    random_source.shuffle(replicas)
    isr = [LEADER, *random_source.sample(others, random_source.randint(0, len(others)))]
    random_source.shuffle(isr)
    rare = {}
    if random_source.random() < 0.15:
        name = random_source.choice(("removing_replicas", "adding_replicas", "elr", "last_known_elr"))
        rare[name] = (random_source.choice(replicas),)
    return PartitionState(
        replicas=tuple(replicas),
        directories=tuple(directory_of(each, random_source) for each in replicas),
        isr=tuple(isr),
        leader=LEADER if random_source.random() < 0.95 else random_source.choice((*replicas, -1)),
        leader_recovery_state=int(random_source.random() < 0.05),
        leader_epoch=random_source.randint(2, 4),
        partition_epoch=random_source.randint(5, 9),
        **rare,
    )


def world_with(random_source: Random) -> tuple[DecisionContext, MetadataImage]:
    world = World().lead().add_brokers(*BROKERS)
    world.heartbeat(FENCED, want_fence=True)
    world.heartbeat(LEAVING, want_shut_down=True)
    controller = world.controller
    assert controller._active is not None
    delta = MetadataDelta(controller.image)
    for number in range(TOPICS):
        record = TopicRecord(name=f"t{number}", topic_id=UUID(int=500 + number))
        delta.replay(record, 0)
        topic = delta.topics._image.by_id[record.topic_id]
        width = random_source.randint(2, 5)
        for index in range(PARTITIONS):
            state = some_state(random_source, width)
            delta.replay(partition_record(topic, index, state, controller.image.metadata_version), 0)
    image = delta.apply(Provenance())
    return replace(controller._context(world.now_ms, controller._active), image=image), image


def wish(
    random_source: Random, context: DecisionContext, index: int, state: PartitionState | None
) -> dict[str, Any]:
    """Mostly proposals that add a replica."""
    state = state or some_state(random_source, 3)
    missing = [each for each in state.replicas if each not in state.isr]
    isr = [*state.isr, *random_source.sample(missing, random_source.randint(0, len(missing)))]
    odd = random_source.random()
    if odd < 0.05:
        isr = isr[1:]
    elif odd < 0.1:
        isr.append(random_source.choice((*BROKERS, 99, isr[0], -(2**31))))
    elif odd < 0.15:
        random_source.shuffle(isr)
    brokers = context.image.cluster.brokers
    epochs = [brokers[each].epoch if each in brokers else 3 for each in isr]
    return {
        "partition_index": index,
        "leader_epoch": state.leader_epoch
        + (random_source.choice((-1, 1)) if random_source.random() < 0.05 else 0),
        "new_isr": isr,
        "new_isr_with_epochs": [
            {"broker_id": each, "broker_epoch": random_source.choices((epoch, -1, 1), (20, 4, 1))[0]}
            for each, epoch in zip(isr, epochs, strict=True)
        ],
        "leader_recovery_state": state.leader_recovery_state
        if random_source.random() < 0.95
        else random_source.randint(0, 2),
        "partition_epoch": state.partition_epoch
        + (random_source.choice((-1, 1)) if random_source.random() < 0.05 else 0),
    }


def some_request(random_source: Random, context: DecisionContext) -> ControllerRequest:
    topics = []
    numbers: Sequence[int] = [*range(TOPICS), 99]
    if random_source.random() < 0.1:
        numbers = [*numbers, random_source.randrange(TOPICS)]
    for number in random_source.sample(numbers, random_source.randint(1, len(numbers))):
        topic = context.image.topics.by_id.get(UUID(int=500 + number))
        indexes = random_source.sample(range(PARTITIONS + 5), random_source.randint(0, PARTITIONS))
        if indexes and random_source.random() < 0.05:
            indexes.append(indexes[0])
        wishes = [
            wish(random_source, context, index, None if topic is None else topic.partitions.get(index))
            for index in indexes
        ]
        topics.append({"topic_id": UUID(int=500 + number), "partitions": wishes})
    version = random_source.choice((2, 3))
    values = {
        "broker_id": LEADER,
        "broker_epoch": context.image.cluster.brokers[LEADER].epoch,
        "topics": topics,
    }
    body = request_of(ApiKey.ALTER_PARTITION, version, values)
    return ControllerRequest(api_key=ApiKey.ALTER_PARTITION, api_version=version, body=body)


def records_of(result: ControllerResult) -> list[PartitionChangeRecord]:
    records = []
    for entry in result.records:
        records += (
            [decode_record(value) for value in entry.values] if isinstance(entry, RecordRun) else [entry]
        )
    return sorted(records, key=lambda record: (record.topic_id, record.partition_id))  # type: ignore[attr-defined, arg-type, return-value]


def decided_together(result: ControllerResult) -> int:
    return sum(len(entry) for entry in result.records if isinstance(entry, RecordRun))


def image_after(image: MetadataImage, result: ControllerResult) -> MetadataImage:
    delta = MetadataDelta(image)
    for entry in result.records:
        if isinstance(entry, RecordRun):
            entry.replay(delta, 0)
        else:
            delta.replay(entry, 0)
    return delta.apply(Provenance())


@pytest.mark.parametrize("seed", range(4))
def test_together_is_as_one_by_one(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random_source = Random(seed)
    context, image = world_with(random_source)
    together = alone = 0
    for _ in range(ROUNDS):
        request = some_request(random_source, context)
        monkeypatch.setattr(isr_growth, "WORTH_COLUMNS", 1)
        by_columns = alter_partition(context, request)
        monkeypatch.setattr(isr_growth, "WORTH_COLUMNS", 10**6)
        one_by_one = alter_partition(context, request)
        assert decided_together(one_by_one) == 0
        assert by_columns.response == one_by_one.response
        assert records_of(by_columns) == records_of(one_by_one)
        assert image_after(image, by_columns) == image_after(image, one_by_one)
        together += decided_together(by_columns)
        alone += record_count(by_columns.records) - decided_together(by_columns)
    assert together > 100
    assert alone > 20


def test_most_of_what_a_returning_broker_is_asked_for_is_decided_together() -> None:
    """Or else a restart costs the leader some thirty microseconds a replica."""
    world = World().lead().add_brokers(1, 2, 3)
    names = [f"t{number}" for number in range(20)]
    assignments = [{"partition_index": index, "broker_ids": (1, 2, 3)} for index in range(10)]
    asked = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments, "configs": ()}
    world.create(*({"name": name, **asked} for name in names))
    world.heartbeat(2, want_fence=True)
    world.heartbeat(2)
    controller = world.controller
    assert controller._active is not None
    context = controller._context(world.now_ms, controller._active)
    topics = [context.image.topics.by_name[name] for name in names]
    wishes = [
        {
            "topic_id": topic.id,
            "partitions": [
                {
                    "partition_index": index,
                    "leader_epoch": state.leader_epoch,
                    "new_isr_with_epochs": [
                        {"broker_id": each, "broker_epoch": -1} for each in (*state.isr, 2)
                    ],
                    "leader_recovery_state": 0,
                    "partition_epoch": state.partition_epoch,
                }
                for index, state in topic.partitions.items()
            ],
        }
        for topic in topics
    ]
    values = {"broker_id": 1, "broker_epoch": context.image.cluster.brokers[1].epoch, "topics": wishes}
    body = request_of(ApiKey.ALTER_PARTITION, 3, values)
    result = alter_partition(
        context, ControllerRequest(api_key=ApiKey.ALTER_PARTITION, api_version=3, body=body)
    )
    assert (decided_together(result), record_count(result.records)) == (200, 200)
    answer = world.ask(ApiKey.ALTER_PARTITION, 3, **values)
    assert {int(each.error_code) for topic in answer.topics for each in topic.partitions} == {0}
    assert all(set(world.partition(name, index).isr) == {1, 2, 3} for name in names for index in range(10))
