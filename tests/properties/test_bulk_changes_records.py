"""Records of partition changes by columns against their codec and replay one by one."""

import random
from collections.abc import Sequence
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.image import loading
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.partition_changes import change_values, changes_of
from kquorum.metadata.loader import MetadataLoader
from kquorum.wire import record_batch
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records import features, topics
from kquorum.wire.record_columns import plain_values
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.bulk_worlds import SEEDS, TOPICS, changed, partition_of, world_records


def change_of(random_source: random.Random, count: int) -> topics.PartitionChangeRecord:
    isr = (
        tuple(random_source.randrange(9) for _ in range(random_source.choice([0, 1, 2, 3, 40])))
        if random_source.randrange(3)
        else None
    )
    is_rare = random_source.randrange(6) == 0
    return topics.PartitionChangeRecord(
        partition_id=random_source.randrange(count),
        topic_id=random_source.choice([*TOPICS, *TOPICS, UUID(int=99)])
        if is_rare
        else random_source.choice(TOPICS),
        isr=isr,
        leader=random_source.choice([-2, -1, 3]),
        replicas=(1, 2) if is_rare and random_source.randrange(2) else None,
        leader_recovery_state=random_source.choice([-1, 1]) if is_rare else -1,
        eligible_leader_replicas=(4,) if is_rare and random_source.randrange(2) else None,
    )


def history_of(seed: int) -> list[list[bytes]]:
    """Batches of records: topics with partitions, then changes, now and then with something in between."""
    random_source = random.Random(seed)
    batches: list[list[bytes]] = [[encode_record(record) for record in world_records(seed)]]
    for _ in range(random_source.randrange(1, 5)):
        records: list[MetadataRecord] = []
        for _ in range(random_source.randrange(1, 40)):
            kind = random_source.randrange(30)
            if kind == 0:
                records.append(features.NoOpRecord())
            elif kind == 1:
                records.append(
                    partition_of(random_source, random_source.choice(TOPICS), random_source.randrange(45), 3)
                )
            elif kind == 2:
                records += [features.BeginTransactionRecord(name="x"), change_of(random_source, 4)]
                records.append(
                    random_source.choice([features.EndTransactionRecord(), features.AbortTransactionRecord()])
                )
            else:
                records.append(change_of(random_source, 40))
        values = []
        for record in records:
            value = bytearray(encode_record(record))
            if random_source.randrange(400) == 0:
                value[random_source.randrange(len(value))] = random_source.randrange(256)
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


def check_loading(seed: int, *, is_tolerant: bool) -> None:
    batches = history_of(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "WORTH_COLUMNS", 1 << 30)
        expected = loaded(batches, is_tolerant=is_tolerant)
        patch.setattr(loading, "WORTH_COLUMNS", 1)
        assert loaded(batches, is_tolerant=is_tolerant) == expected


@given(SEEDS, st.booleans())
@settings(deadline=None, max_examples=80)
def test_loading_runs_is_loading_one_by_one(seed: int, is_tolerant: bool) -> None:
    check_loading(seed, is_tolerant=is_tolerant)


@pytest.mark.slow
@given(SEEDS, st.booleans())
@settings(deadline=None, max_examples=1000)
def test_loading_many_runs_is_loading_one_by_one(seed: int, is_tolerant: bool) -> None:
    check_loading(seed, is_tolerant=is_tolerant)


@given(SEEDS, st.integers(0, 2), st.integers(0, 3))
@settings(deadline=None)
def test_values_and_columns_are_each_others(seed: int, version: int, damages: int) -> None:
    random_source = random.Random(seed)
    values = []
    for _ in range(random_source.randrange(60)):
        try:
            values.append(encode_record(change_of(random_source, 1000), version))
        except UnsupportedVersion:
            continue
    for _ in range(damages if values else 0):
        place = random_source.randrange(len(values))
        broken = bytearray(values[place])
        broken[random_source.randrange(len(broken))] = random_source.randrange(256)
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
    random_source = random.Random(seed)
    records = [
        (
            None if random_source.randrange(9) else random_source.randbytes(2),
            random_source.randbytes(random_source.choice([0, 5, 49, 50, 70, 9000]))
            if random_source.randrange(9)
            else None,
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
@settings(deadline=None, max_examples=100)
def test_values_by_columns_are_those_of_the_records(seed: int, damages: int) -> None:
    """Also when a byte is another: then they are the same still, or left to those who tell what is wrong."""
    random_source = random.Random(seed)
    sizes = random_source.choice([(0, 35, 41, 70), (50, 5000)])
    values = [
        random_source.randbytes(random_source.choice(sizes)) for _ in range(random_source.randrange(64, 140))
    ]
    records = [(None, value) for value in values]
    batch = bytearray(
        record_batch.write_batch(base_offset=3, leader_epoch=1, timestamp_ms=5, records=records)
    )
    for _ in range(damages):
        place = random_source.randrange(record_batch.HEADER_BYTES, len(batch))
        batch[place] = random_source.choice([0, 1, 2, 126, 127, 128, 255, random_source.randrange(256)])
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
