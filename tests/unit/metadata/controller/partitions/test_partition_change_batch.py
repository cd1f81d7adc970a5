"""What is decided by columns, and what is left to the rules for single partitions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.broker_movement import Movement, affected_partitions
from kquorum.metadata.controller.partitions.change_batch import (
    Limits,
    PartitionChangeBatch,
    movement_records,
    run_of,
)
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import LOST
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.records import broker_record
from kquorum.wire.metadata_records import configs, features, topics
from kquorum.wire.record_frame import decode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.controller_world import World

TOPIC = UUID(int=1 << 120)
BROKERS = range(3)
PLACED = ((0, 1, 2), (1, 0), (2, 1), (0,))
TIMES = 10
UNCHANGED = -2


def directory_of(broker_id: int) -> UUID:
    return UUID(int=1000 + broker_id)


def broker_of(broker_id: int) -> MetadataRecord:
    registration = BrokerRegistration(
        id=broker_id,
        epoch=1,
        incarnation_id=UUID(int=1 + broker_id),
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
        log_dirs=(directory_of(broker_id),),
    )
    return broker_record(registration)


def image_of(*more: MetadataRecord) -> MetadataImage:
    """Ten times the same four placements, all of them in sync."""
    records = [
        features.FeatureLevelRecord(name="metadata.version", feature_level=25),
        *map(broker_of, BROKERS),
        topics.TopicRecord(name="t", topic_id=TOPIC),
        *(
            topics.PartitionRecord(
                partition_id=number,
                topic_id=TOPIC,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=tuple(map(directory_of, replicas)),
            )
            for number, replicas in enumerate(PLACED * TIMES)
        ),
        *more,
    ]
    delta = MetadataDelta(MetadataImage.empty())
    for offset, record in enumerate(records):
        delta.replay(record, offset)
    return delta.apply(Provenance(last_contained_offset=-1))


def eligible_leaders(minimum: int) -> Sequence[MetadataRecord]:
    return [
        features.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        configs.ConfigRecord(
            resource_type=4, resource_name="", name="min.insync.replicas", value=str(minimum)
        ),
    ]


def context_of(image: MetadataImage) -> DecisionContext:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0), image=image)
    world.lead()
    active = world.controller._active
    assert active is not None
    return world.controller._context(world.now_ms, active)


def run_for(image: MetadataImage, movement: Movement) -> PartitionChangeBatch:
    parts = [(topic, topic.partitions) for topic in image.topics.by_id.values()]
    run, cut = run_of(context_of(image), parts, movement, Limits())
    assert cut is None
    return run


def first_of_each(run: PartitionChangeBatch, count: int) -> list[topics.PartitionChangeRecord]:
    """All placements come again and again, in the same order."""
    made = [cast(topics.PartitionChangeRecord, decode_record(value)) for value in run.values]
    assert len(made) == count * TIMES
    assert [each.partition_id for each in made[count:]] == [each.partition_id + 4 for each in made[:-count]]
    return made[:count]


def summary(records: Sequence[topics.PartitionChangeRecord]) -> list[tuple[object, ...]]:
    return [(each.partition_id, each.isr, each.leader, each.eligible_leader_replicas) for each in records]


LEAVING = Movement(broker_id=0, is_leaving=True)
FOR_GOOD = Movement(broker_id=0, is_leaving=True, is_for_good=True)
FAILED = Movement(broker_id=0, is_leaving=True, failed_directories=frozenset({directory_of(0)}))


@pytest.mark.parametrize("movement", [LEAVING, FOR_GOOD, FAILED], ids=["leaving", "for good", "failed"])
def test_ordinary_partitions_all_go_by_columns(movement: Movement) -> None:
    run = run_for(image_of(), movement)
    assert not run.others
    assert summary(first_of_each(run, 3)) == [
        (0, (1, 2), 1, None),
        (1, (1,), UNCHANGED, None),
        (3, None, -1, None),
    ]


def test_only_what_lies_in_the_failed_directory_is_left() -> None:
    elsewhere = frozenset({directory_of(7)})
    assert not len(run_for(image_of(), Movement(broker_id=0, is_leaving=True, failed_directories=elsewhere)))


def test_with_enough_in_sync_no_replica_is_eligible_also_in_columns() -> None:
    run = run_for(image_of(*eligible_leaders(1)), LEAVING)
    assert len(run.changes) == 2 * TIMES
    assert summary(first_of_each(run, 3)) == [
        (0, (1, 2), 1, None),
        (1, (1,), UNCHANGED, None),
        (3, (), -1, (0,)),
    ]


def test_below_the_minimum_who_leaves_stays_eligible() -> None:
    run = run_for(image_of(*eligible_leaders(2)), LEAVING)
    assert len(run.changes) == TIMES
    assert summary(first_of_each(run, 3)) == [
        (0, (1, 2), 1, None),
        (1, (1,), UNCHANGED, (0,)),
        (3, (), -1, (0,)),
    ]
    last_known = [each.last_known_elr for each in first_of_each(run, 3)]
    assert last_known == [None, None, (0,)]


def test_a_removed_replica_is_not_eligible_also_in_columns_unless_none_is_left() -> None:
    run = run_for(image_of(*eligible_leaders(2)), FOR_GOOD)
    assert len(run.changes) == 2 * TIMES
    assert summary(first_of_each(run, 3)) == [
        (0, (1, 2), 1, None),
        (1, (1,), UNCHANGED, None),
        (3, (), -1, None),
    ]


def test_who_is_only_eligible_loses_that_for_good() -> None:
    lost = topics.PartitionChangeRecord(
        partition_id=2, topic_id=TOPIC, isr=(2,), eligible_leader_replicas=(1,)
    )
    image = image_of(*eligible_leaders(2), lost)
    assert 2 not in partitions(run_for(image, Movement(broker_id=1, is_leaving=True)))
    run = run_for(image, Movement(broker_id=1, is_leaving=True, is_for_good=True))
    assert partitions(run)[2].eligible_leader_replicas == ()


ODD = UUID(int=77)
BASE = topics.PartitionRecord(
    partition_id=0,
    topic_id=ODD,
    replicas=(0, 1, 2, 3),
    isr=(0, 1),
    leader=0,
    directories=tuple(map(directory_of, range(4))),
    eligible_leader_replicas=(2,),
)
VARIANTS: dict[str, dict[str, Any]] = {
    "epochs only": {"leader_epoch": 5, "partition_epoch": 9},
    "replicas": {"replicas": (0, 1, 2)[::-1], "directories": tuple(map(directory_of, (2, 1, 0)))},
    "directory": {"directories": (directory_of(0), LOST, directory_of(2), directory_of(3))},
    "isr": {"isr": (0, 1, 3)},
    "leader": {"leader": -1},
    "removing": {"removing_replicas": (0,)},
    "adding": {"adding_replicas": (2,)},
    "eligible": {"eligible_leader_replicas": (3,)},
    "last known": {"last_known_elr": (2,)},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("movement", [LEAVING, FOR_GOOD, FAILED], ids=["leaving", "for good", "failed"])
def test_what_is_alike_only_almost_is_decided_for_itself(movement: Movement, variant: str) -> None:
    """One by one, those alike but for their epochs are decided once."""
    other = replace(BASE, partition_id=1, **VARIANTS[variant])
    odd = (topics.TopicRecord(name="odd", topic_id=ODD), BASE, other, replace(BASE, partition_id=2))
    image = image_of(*eligible_leaders(2), *odd)
    context = context_of(image)
    topic = image.topics.by_id[ODD]
    run, _ = run_of(context, [(topic, topic.partitions)], movement, Limits())
    expected = movement_records(context, [(topic, topic.partitions.ids)], movement)
    made = [cast(topics.PartitionChangeRecord, decode_record(value)) for value in run.values]
    assert made == list(expected)
    assert len(made) == 3


def test_who_is_only_eligible_is_found_in_the_last_of_several_topics() -> None:
    alone = replace(BASE, isr=(1,), leader=1, eligible_leader_replicas=(0,))
    image = image_of(*eligible_leaders(2), topics.TopicRecord(name="odd", topic_id=ODD), alone)
    made = [decode_record(value) for value in run_for(image, FOR_GOOD).values]
    assert topics.PartitionChangeRecord(topic_id=ODD, partition_id=0, eligible_leader_replicas=()) in made
    found = affected_partitions(image.topics, FOR_GOOD)
    assert [(topic.name, ids.size) for topic, ids in found if topic.id == ODD] == [("odd", 1)]
    assert all(topic.id != ODD for topic, _ in affected_partitions(image.topics, LEAVING))


def partitions(run: PartitionChangeBatch) -> dict[int, topics.PartitionChangeRecord]:
    made = [cast(topics.PartitionChangeRecord, decode_record(value)) for value in run.values]
    return {each.partition_id: each for each in made}
