"""Partition changes by columns against the decision, the codec and the replay of single records."""

import random
from collections.abc import Iterator, Sequence
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metadata.controller import sweep
from metadata.controller.bulk_elections import Movement
from metadata.controller.change_run import Limits, run_of
from metadata.controller.config import ControllerConfig
from metadata.controller.context import DecisionContext
from metadata.controller.sweep import PartitionSweep
from metadata.controller.transitions import leader_and_isr_records
from metadata.image import run_replay
from metadata.image.change_layout import change_values, changes_of
from metadata.image.cluster import BrokerRegistration
from metadata.image.delta import MetadataDelta
from metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from metadata.image.errors import ReplayError
from metadata.image.image import MetadataImage, Provenance
from metadata.image.metadata_version import partition_record_version
from metadata.image.records import broker_record
from metadata.loader import MetadataLoader
from raft.batches import LogBatch, build_batch
from tests.unit.metadata.controller_world import NODE_ID, World
from wire import record_batch
from wire.compression import CompressionCodec
from wire.errors import UnsupportedVersion
from wire.metadata_records import configs, features, topics
from wire.record_columns import plain_values
from wire.record_frame import decode_record, encode_record
from wire.schema import MetadataRecord

BROKERS = range(6)
TOPICS = [UUID(int=1 << 120), UUID(int=256), UUID(int=77)]
LEVELS = [4, 11, 12, 17, 23, 25]


def directory_of(broker_id: int) -> UUID:
    return UUID(int=1000 + broker_id)


def world_records(seed: int) -> Iterator[MetadataRecord]:
    """A cluster that follows from `seed`, with much that is out of the ordinary: a draw for each would take long."""
    dice = random.Random(seed)
    level = dice.choice(LEVELS)
    yield features.FeatureLevelRecord(name="metadata.version", feature_level=level)
    if level >= 23 and dice.randrange(2):
        yield features.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    for broker_id in BROKERS:
        if dice.randrange(10):
            broker = BrokerRegistration(
                id=broker_id,
                epoch=broker_id,
                incarnation_id=UUID(int=broker_id + 1),
                end_points=(),
                features=(),
                rack=None,
                fenced=dice.randrange(4) == 0,
                in_controlled_shutdown=dice.randrange(8) == 0,
                log_dirs=dice.choice(
                    [(directory_of(broker_id),)] * 6 + [(), (directory_of(0), directory_of(broker_id + 50))]
                ),
            )
            yield broker_record(broker)
    for number, topic_id in enumerate(TOPICS):
        yield topics.TopicRecord(name=f"t{number}", topic_id=topic_id)
        if dice.randrange(4) == 0:
            value = dice.choice(["true", "false"])
            yield configs.ConfigRecord(
                resource_type=2,
                resource_name=f"t{number}",
                name="unclean.leader.election.enable",
                value=value,
            )
        if dice.randrange(3) == 0:
            value = dice.choice(["1", "2", "3"])
            yield configs.ConfigRecord(
                resource_type=2, resource_name=f"t{number}", name="min.insync.replicas", value=value
            )
        longest = dice.randrange(1, 5)
        for partition_id in sorted(dice.sample(range(40), dice.randrange(25))):
            yield partition_of(dice, topic_id, partition_id, longest, level)


def partition_of(
    dice: random.Random, topic_id: UUID, partition_id: int, longest: int, level: int = 25
) -> topics.PartitionRecord:
    replicas = tuple(dice.sample(BROKERS, dice.randrange(1, longest + 1)))
    if dice.randrange(20) == 0:
        replicas = (*replicas, replicas[0])
    isr = tuple(dice.sample(replicas, dice.randrange(0 if dice.randrange(9) == 0 else 1, len(replicas) + 1)))
    is_rare = dice.randrange(8) == 0
    directories = [directory_of(replica) for replica in replicas]
    for place in range(len(replicas)):
        if dice.randrange(8) == 0:
            directories[place] = dice.choice([LOST, MIGRATING, UNASSIGNED, directory_of(0), UUID(int=5555)])
    return topics.PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=dice.choice([*isr, *isr, -1, dice.choice(BROKERS)]),
        leader_epoch=dice.randrange(9),
        partition_epoch=dice.randrange(9),
        directories=tuple(directories),
        leader_recovery_state=dice.randrange(10) == 0,
        adding_replicas=replicas[-1:] if is_rare and dice.randrange(2) else (),
        removing_replicas=replicas[:1] if is_rare and dice.randrange(2) else (),
        eligible_leader_replicas=replicas[:1] if is_rare and level >= 23 and dice.randrange(2) else None,
        last_known_elr=replicas[:1] if is_rare and level >= 23 and dice.randrange(2) else None,
    )


def replayed(image: MetadataImage, records: Sequence[MetadataRecord]) -> MetadataDelta:
    delta = MetadataDelta(image)
    for offset, record in enumerate(records):
        delta.replay(record, offset)
    return delta


def world_of(seed: int) -> tuple[World, DecisionContext]:
    image = replayed(MetadataImage.empty(), list(world_records(seed))).apply(
        Provenance(last_contained_offset=-1)
    )
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0), image=image)
    world.raft.leader_id, world.raft.leader_epoch = NODE_ID, 1
    world.controller.handle_leader_change(world.now_ms, NODE_ID, 1)
    active = world.controller._active
    assert active is not None
    if seed % 5 == 0:
        active.liveness.begin_removal(seed % 4)
    return world, world.controller._context(world.now_ms, active)


def one_by_one(context: DecisionContext, movement: Movement) -> list[topics.PartitionChangeRecord]:
    """The plain path, topic by topic in the order of the image."""
    broker_id = movement.broker_id
    affected = [
        (topic, topic.partitions.in_isr(broker_id) if movement.is_leaving else topic.partitions.leaderless())
        for topic in context.image.topics.by_id.values()
    ]
    if movement.is_leaving:
        return list(leader_and_isr_records(context, affected, broker_to_remove=broker_id))
    return list(leader_and_isr_records(context, affected, broker_to_add=broker_id))


def changed(delta: MetadataDelta) -> dict[UUID, list[int]]:
    return {topic_id: sorted(ids) for topic_id, ids in delta.changed_topics.items()}


SEEDS = st.integers(0, 2**32)
MOVEMENTS = st.builds(Movement, broker_id=st.sampled_from(BROKERS), is_leaving=st.booleans())


@given(SEEDS, MOVEMENTS)
@settings(deadline=None, max_examples=150)
def test_a_run_is_what_single_decisions_make(seed: int, movement: Movement) -> None:
    world, context = world_of(seed)
    records = one_by_one(context, movement)
    parts = [(topic, topic.partitions) for topic in context.image.topics.by_id.values()]
    run, cut = run_of(context, parts, movement, Limits())
    version = partition_record_version(context.metadata_version)
    assert cut is None
    assert list(run.values) == [encode_record(record, version) for record in records]
    bulk = world.controller._timeline.decide_run(run, 7)
    plain = world.controller._timeline.decide(records, 7)
    assert bulk.image == plain.image
    assert bulk.end_offset == plain.end_offset
    assert changed(bulk.delta) == changed(plain.delta)
    assert bulk.delta.record_count == plain.delta.record_count
    assert dict(bulk.image.topics.led_counts) == dict(plain.image.topics.led_counts)


@given(SEEDS, st.sampled_from(BROKERS), st.tuples(*[st.integers(1, 30)] * 3), st.integers(1, 3))
@settings(deadline=None, max_examples=80)
def test_slices_come_to_the_same_as_all_at_once(
    seed: int, broker_id: int, sizes: tuple[int, int, int], topics_at_once: int
) -> None:
    _, context = world_of(seed)
    broker = context.image.cluster.brokers.get(broker_id)
    if broker is None:
        return
    expected = one_by_one(context, Movement(broker_id=broker_id, is_leaving=True))
    values: list[bytes] = []
    names = ("PARTITIONS_PER_SLICE", "ONE_BY_ONE_PER_SLICE", "LOOKED_AT_PER_SLICE")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(names, sizes, strict=True):
            patch.setattr(sweep, name, size)
        patch.setattr(sweep, "TOPICS_PER_SLICE", topics_at_once)
        sliced = PartitionSweep(context, broker, is_leaving=True)
        while not sliced.is_done:
            run = sliced.next_run(context)
            assert len(run) <= sizes[0]
            values += run.values
    version = partition_record_version(context.metadata_version)
    assert values == [encode_record(record, version) for record in expected]


def test_nearly_all_of_a_failover_goes_by_columns() -> None:
    records = [
        features.FeatureLevelRecord(name="metadata.version", feature_level=25),
        *(
            broker_record(
                BrokerRegistration(
                    id=each,
                    epoch=1,
                    incarnation_id=UUID(int=1 + each),
                    end_points=(),
                    features=(),
                    rack=None,
                    fenced=False,
                    log_dirs=(directory_of(each),),
                )
            )
            for each in range(3)
        ),
        topics.TopicRecord(name="t", topic_id=TOPICS[0]),
        *(
            topics.PartitionRecord(
                partition_id=number,
                topic_id=TOPICS[0],
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=tuple(map(directory_of, replicas)),
            )
            for number, replicas in enumerate([(0, 1, 2), (1, 0), (2, 1), (0,)] * 10)
        ),
    ]
    image = replayed(MetadataImage.empty(), records).apply(Provenance(last_contained_offset=-1))
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0), image=image)
    world.lead()
    active = world.controller._active
    assert active is not None
    context = world.controller._context(world.now_ms, active)
    topic = image.topics.by_name["t"]
    run, _ = run_of(context, [(topic, topic.partitions)], Movement(broker_id=0, is_leaving=True), Limits())
    assert not run.others
    made = [cast(topics.PartitionChangeRecord, decode_record(value)) for value in run.values[:3]]
    assert [(each.partition_id, each.isr, each.leader) for each in made] == [
        (0, (1, 2), 1),
        (1, (1,), -2),
        (3, None, -1),
    ]
    assert len(run) == 30


# Records


def change_of(dice: random.Random, count: int) -> topics.PartitionChangeRecord:
    isr = (
        tuple(dice.randrange(9) for _ in range(dice.choice([0, 1, 2, 3, 40]))) if dice.randrange(3) else None
    )
    is_rare = dice.randrange(6) == 0
    return topics.PartitionChangeRecord(
        partition_id=dice.randrange(count),
        topic_id=dice.choice([*TOPICS, *TOPICS, UUID(int=99)]) if is_rare else dice.choice(TOPICS),
        isr=isr,
        leader=dice.choice([-2, -1, 3]),
        replicas=(1, 2) if is_rare and dice.randrange(2) else None,
        leader_recovery_state=dice.choice([-1, 1]) if is_rare else -1,
        eligible_leader_replicas=(4,) if is_rare and dice.randrange(2) else None,
    )


def history_of(seed: int) -> list[list[bytes]]:
    """Batches of records: topics with partitions, then changes, now and then with something in between."""
    dice = random.Random(seed)
    batches: list[list[bytes]] = [[encode_record(record) for record in world_records(seed)]]
    for _ in range(dice.randrange(1, 5)):
        records: list[MetadataRecord] = []
        for _ in range(dice.randrange(1, 40)):
            kind = dice.randrange(30)
            if kind == 0:
                records.append(features.NoOpRecord())
            elif kind == 1:
                records.append(partition_of(dice, dice.choice(TOPICS), dice.randrange(45), 3))
            elif kind == 2:
                records += [features.BeginTransactionRecord(name="x"), change_of(dice, 4)]
                records.append(
                    dice.choice([features.EndTransactionRecord(), features.AbortTransactionRecord()])
                )
            else:
                records.append(change_of(dice, 40))
        values = []
        for record in records:
            value = bytearray(encode_record(record))
            if dice.randrange(400) == 0:
                value[dice.randrange(len(value))] = dice.randrange(256)
            values.append(bytes(value))
        batches.append(values)
    return batches


def loaded(batches: Sequence[Sequence[bytes]], *, is_tolerant: bool) -> object:
    """The image with what followed from each batch; the faults that were met, each with its offset."""
    faults: list[tuple[int, str]] = []

    def note(error: ReplayError) -> None:
        faults.append((error.offset, str(error)))

    loader = MetadataLoader(on_fault=note if is_tolerant else None)
    seen: list[object] = []
    loader.publishers.append(
        lambda delta, image: seen.append((changed(delta), delta.record_count, image, image.provenance))
    )
    offset = 0
    try:
        for values in batches:
            batch: LogBatch = build_batch(offset, 1, 5, [(None, value) for value in values])
            loader.handle_commit([batch])
            offset = batch.next_offset
    except ReplayError as error:
        note(error)
        return faults, seen
    return faults, seen, loader.image, loader.state_hash, dict(loader.image.topics.led_counts)


@given(SEEDS, st.booleans())
@settings(deadline=None, max_examples=150)
def test_loading_runs_is_loading_one_by_one(seed: int, is_tolerant: bool) -> None:
    batches = history_of(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_replay, "WORTH_COLUMNS", 1 << 30)
        expected = loaded(batches, is_tolerant=is_tolerant)
        patch.setattr(run_replay, "WORTH_COLUMNS", 1)
        assert loaded(batches, is_tolerant=is_tolerant) == expected


@given(SEEDS, st.integers(0, 2), st.integers(0, 3))
@settings(deadline=None)
def test_values_and_columns_are_each_others(seed: int, version: int, damages: int) -> None:
    dice = random.Random(seed)
    values = []
    for _ in range(dice.randrange(60)):
        try:
            values.append(encode_record(change_of(dice, 1000), version))
        except UnsupportedVersion:
            continue
    for _ in range(damages if values else 0):
        place = dice.randrange(len(values))
        broken = bytearray(values[place])
        broken[dice.randrange(len(broken))] = dice.randrange(256)
        values[place] = bytes(broken)
    changes, others = changes_of(values)
    read = [value for place, value in enumerate(values) if place not in set(others)]
    assert len(changes) == len(read)
    for row, value in enumerate(read):
        record = cast(topics.PartitionChangeRecord, decode_record(value))
        isr = (
            None
            if changes.isr_counts[row] < 0
            else tuple(changes.isr[row, : changes.isr_counts[row]].tolist())
        )
        assert record == topics.PartitionChangeRecord(
            partition_id=int(changes.partition_ids[row]),
            topic_id=UUID(bytes=changes.topic_ids[row].tobytes()),
            isr=isr,
            leader=int(changes.leaders[row]),
        )
    if not damages:
        says_something = (changes.isr_counts >= 0) | (changes.leaders != -2)
        assert says_something.all()
        assert change_values(changes, version) == read
        ordinary = [each for each in map(decode_record, values) if is_ordinary(each)]
        assert len(read) == len(ordinary), "what is ordinary goes by columns"


def is_ordinary(record: MetadataRecord) -> bool:
    assert isinstance(record, topics.PartitionChangeRecord)
    plain = topics.PartitionChangeRecord(
        partition_id=record.partition_id, topic_id=record.topic_id, isr=record.isr, leader=record.leader
    )
    says_something = record.isr is not None or record.leader != -2
    return record == plain and says_something and len(record.isr or ()) <= 31


@given(SEEDS, st.integers(1, 200))
@settings(deadline=None)
def test_large_batches_are_written_as_small_ones(seed: int, count: int) -> None:
    dice = random.Random(seed)
    records = [
        (
            None if dice.randrange(9) else dice.randbytes(2),
            dice.randbytes(dice.choice([0, 5, 49, 50, 70, 9000])) if dice.randrange(9) else None,
        )
        for _ in range(count)
    ]
    one_by_one = bytearray()
    for offset_delta, (key, value) in enumerate(records):
        record_batch._write_record(one_by_one, offset_delta, key, value)
    data = record_batch.write_batch(base_offset=3, leader_epoch=1, timestamp_ms=5, records=records)
    assert data[record_batch.HEADER_BYTES :] == one_by_one
    record_batch.check_batch(data)


@given(SEEDS, st.integers(0, 2))
@settings(deadline=None, max_examples=200)
def test_values_by_columns_are_those_of_the_records(seed: int, damages: int) -> None:
    """Also when a byte is another: then they are the same still, or left to those who tell what is wrong."""
    dice = random.Random(seed)
    sizes = dice.choice([(0, 35, 41, 70), (50, 5000)])
    values = [dice.randbytes(dice.choice(sizes)) for _ in range(dice.randrange(64, 140))]
    records = [(None, value) for value in values]
    batch = bytearray(
        record_batch.write_batch(base_offset=3, leader_epoch=1, timestamp_ms=5, records=records)
    )
    for _ in range(damages):
        place = dice.randrange(record_batch.HEADER_BYTES, len(batch))
        batch[place] = dice.choice([0, 1, 2, 126, 127, 128, 255, dice.randrange(256)])
    found = plain_values(batch)
    assert damages or found == values
    if found is not None:
        read = record_batch.read_records(batch, 0, record_batch.read_batch_header(batch))
        assert [record.value for record in read] == found
        assert [record.offset for record in read] == list(range(3, 3 + len(read)))


def test_offsets_of_many_bytes_are_found_too() -> None:
    records = [(None, bytes([number % 200]) * 9) for number in range(9000)]
    batch = record_batch.write_batch(base_offset=0, leader_epoch=1, timestamp_ms=5, records=records)
    assert plain_values(batch) == [value for _, value in records]
    lz4 = record_batch.write_batch(
        base_offset=0, leader_epoch=1, timestamp_ms=5, records=records, codec=CompressionCodec.LZ4
    )
    assert plain_values(lz4) == [value for _, value in records]
