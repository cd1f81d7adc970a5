"""Clusters with much that is out of the ordinary, for tests of what is done to many partitions at once."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from hypothesis import strategies as st

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.records import broker_record
from kquorum.wire.metadata_records import configs, features, topics
from kquorum.wire.schema import MetadataRecord
from tests.support.controller_world import NODE_ID, World

SEEDS = st.integers(0, 2**32)
BROKERS = range(6)
TOPICS = [UUID(int=1 << 120), UUID(int=256), UUID(int=77)]
LEVELS = [4, 11, 12, 17, 23, 25]


def directory_of(broker_id: int) -> UUID:
    return UUID(int=1000 + broker_id)


def world_records(seed: int) -> Iterator[MetadataRecord]:
    """A cluster that follows from `seed`, with much that is out of the ordinary: a draw for each would take long."""
    random_source = random.Random(seed)
    level = random_source.choice(LEVELS)
    yield features.FeatureLevelRecord(name="metadata.version", feature_level=level)
    if level >= 23 and random_source.randrange(2):
        yield features.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    yield from brokers_of(random_source)
    for number, topic_id in enumerate(TOPICS):
        yield topics.TopicRecord(name=f"t{number}", topic_id=topic_id)
        if random_source.randrange(4) == 0:
            value = random_source.choice(["true", "false"])
            yield configs.ConfigRecord(
                resource_type=2,
                resource_name=f"t{number}",
                name="unclean.leader.election.enable",
                value=value,
            )
        if random_source.randrange(3) == 0:
            value = random_source.choice(["1", "2", "3"])
            yield configs.ConfigRecord(
                resource_type=2, resource_name=f"t{number}", name="min.insync.replicas", value=value
            )
        yield from partitions_of(random_source, topic_id, level)


def brokers_of(random_source: random.Random) -> Iterator[MetadataRecord]:
    for broker_id in BROKERS:
        if random_source.randrange(10):
            broker = BrokerRegistration(
                id=broker_id,
                epoch=broker_id,
                incarnation_id=UUID(int=broker_id + 1),
                end_points=(),
                features=(),
                rack=None,
                fenced=random_source.randrange(4) == 0,
                in_controlled_shutdown=random_source.randrange(8) == 0,
                log_dirs=random_source.choice(
                    [(directory_of(broker_id),)] * 6 + [(), (directory_of(0), directory_of(broker_id + 50))]
                ),
            )
            yield broker_record(broker)


def partitions_of(random_source: random.Random, topic_id: UUID, level: int) -> Iterator[MetadataRecord]:
    """Many are like the one before but for their epochs, as in clusters."""
    longest = random_source.randrange(1, 5)
    last = None
    for partition_id in sorted(
        random_source.sample(range(40), random_source.choice([1, 2, random_source.randrange(25)]))
    ):
        if last is not None and random_source.randrange(3) == 0:
            epochs = {
                "leader_epoch": random_source.randrange(9),
                "partition_epoch": random_source.randrange(9),
            }
            last = replace(last, partition_id=partition_id, **epochs)
        else:
            last = partition_of(random_source, topic_id, partition_id, longest, level)
        yield last


def partition_of(
    random_source: random.Random, topic_id: UUID, partition_id: int, longest: int, level: int = 25
) -> topics.PartitionRecord:
    replicas = tuple(random_source.sample(BROKERS, random_source.randrange(1, longest + 1)))
    if random_source.randrange(20) == 0:
        replicas = (*replicas, replicas[0])
    isr = tuple(
        random_source.sample(
            replicas, random_source.randrange(0 if random_source.randrange(9) == 0 else 1, len(replicas) + 1)
        )
    )
    is_rare = random_source.randrange(8) == 0
    eligible, last_known = (
        _lists(random_source, replicas, isr, is_rare=is_rare) if level >= 23 else (None, None)
    )
    directories = [directory_of(replica) for replica in replicas]
    for place in range(len(replicas)):
        if random_source.randrange(8) == 0:
            directories[place] = random_source.choice(
                [LOST, MIGRATING, UNASSIGNED, directory_of(0), UUID(int=5555)]
            )
    return topics.PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=random_source.choice([*isr, *isr, -1, random_source.choice(BROKERS)]),
        leader_epoch=random_source.randrange(9),
        partition_epoch=random_source.randrange(9),
        directories=tuple(directories),
        leader_recovery_state=random_source.randrange(10) == 0,
        adding_replicas=replicas[-1:] if is_rare and random_source.randrange(2) else (),
        removing_replicas=replicas[:1] if is_rare and random_source.randrange(2) else (),
        eligible_leader_replicas=eligible,
        last_known_elr=last_known,
    )


def _lists(
    random_source: random.Random, replicas: tuple[int, ...], isr: tuple[int, ...], *, is_rare: bool
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Eligible and last known leaders; rarely some that no controller makes: an eligible one that is in sync."""
    outside = sorted(set(replicas) - set(isr))
    eligible = None
    if outside and random_source.randrange(3) == 0:
        eligible = tuple(random_source.sample(outside, random_source.randrange(1, len(outside) + 1)))
    elif is_rare and random_source.randrange(2):
        eligible = replicas[:1]
    return eligible, replicas[:1] if is_rare and random_source.randrange(2) else None


def replayed(image: MetadataImage, records: Sequence[MetadataRecord]) -> MetadataDelta:
    delta = MetadataDelta(image)
    for offset, record in enumerate(records):
        delta.replay(record, offset)
    return delta


def changed(delta: MetadataDelta) -> dict[UUID, list[int]]:
    return {topic_id: sorted(ids) for topic_id, ids in delta.changed_topics.items()}


def world_of(seed: int) -> tuple[World, DecisionContext]:
    image = replayed(MetadataImage.empty(), list(world_records(seed))).apply(
        Provenance(last_contained_offset=-1)
    )
    config = ControllerConfig(metadata_max_idle_interval_ms=0, min_insync_replicas=1 + seed % 3)
    world = World(config, image=image)
    world.raft.leader_id, world.raft.leader_epoch = NODE_ID, 1
    world.controller.handle_leader_change(world.now_ms, NODE_ID, 1)
    active = world.controller._active
    assert active is not None
    if seed % 5 == 0:
        active.liveness.begin_removal(seed % 4)
    return world, world.controller._context(world.now_ms, active)
