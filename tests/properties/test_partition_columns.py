"""Partition records by columns against the codec and the replay of single records."""

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kquorum.metadata.image import topics as topics_delta
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.loading import delta_from_values
from kquorum.metadata.image.metadata_version import record_version
from kquorum.metadata.image.partition_records import read_by_columns
from kquorum.metadata.image.partitions import PartitionTable, table_of
from kquorum.metadata.image.records import image_values
from kquorum.metadata.image.topics import TopicsImage
from kquorum.wire.errors import DecodeError, UnsupportedVersion
from kquorum.wire.metadata_records import features, topics
from kquorum.wire.record_batch import check_batch, read_records, read_values, write_batch
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_from_values, image_records
from tests.support.metadata.image_histories import HISTORIES, TOPICS, accepted, alike, partition_states


def one_by_one(values: Sequence[bytes]) -> MetadataDelta:
    delta = MetadataDelta(MetadataImage.empty())
    for ordinal, value in enumerate(values):
        delta.replay(decode_record(value), ordinal)
    return delta


def outcome(load: Callable[[Sequence[bytes]], MetadataDelta], values: Sequence[bytes]) -> object:
    """The delta, or where and on what the replay failed."""
    try:
        return load(values)
    except ReplayError as error:
        return error.offset, error.record


@given(alike(), st.integers(0, 2), st.booleans())
@settings(deadline=None)
def test_loading_by_columns_is_loading_one_by_one(
    history: list[MetadataRecord], version: int, is_shuffled: bool
) -> None:
    values = []
    for record in history:
        try:
            is_partition = isinstance(record, topics.PartitionRecord)
            values.append(encode_record(record, version if is_partition else 0))
        except UnsupportedVersion:
            continue
    if is_shuffled:
        values.reverse()
    expected = outcome(one_by_one, values)
    if not isinstance(expected, MetadataDelta):
        assert outcome(delta_from_values, values) == expected
        return
    loaded = delta_from_values(values)
    assert loaded.apply(Provenance()) == expected.apply(Provenance())
    assert loaded.record_count == expected.record_count
    assert {each: set(ids) for each, ids in loaded.changed_topics.items()} == {
        each: set(ids) for each, ids in expected.changed_topics.items()
    }


@given(alike(), st.data())
@settings(deadline=None)
def test_mutilated_values_fail_alike(history: list[MetadataRecord], data: st.DataObject) -> None:
    values = [encode_record(record, 1 if record.api_key == 3 else 0) for record in history if plain(record)]
    assume(values)
    number = data.draw(st.integers(0, len(values) - 1))
    broken = bytearray(values[number])
    broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    values[number] = bytes(broken)
    try:
        expected = one_by_one(values).apply(Provenance())
    except (DecodeError, ReplayError):
        with pytest.raises((DecodeError, ReplayError)):
            delta_from_values(values)
        return
    assert delta_from_values(values).apply(Provenance()) == expected


def plain(record: MetadataRecord) -> bool:
    return not isinstance(record, topics.PartitionRecord) or record.eligible_leader_replicas is None


@given(HISTORIES, alike(), st.sampled_from([1, 16, 17, 22, 23, 30]))
@settings(deadline=None)
def test_values_by_columns_are_the_bytes_of_single_records(
    history: list[MetadataRecord], more: list[MetadataRecord], level: int
) -> None:
    first: list[MetadataRecord] = [features.FeatureLevelRecord(name="metadata.version", feature_level=level)]
    image = accepted(MetadataImage.empty(), first + history + more)[0].apply(Provenance())
    level = image.metadata_version
    try:
        expected = [encode_record(record, record_version(record, level)) for record in image_records(image)]
    except UnsupportedVersion:
        with pytest.raises(UnsupportedVersion):
            list(image_values(image))
        return
    assert list(image_values(image)) == expected
    assert image_from_values(image_values(image), Provenance()) == image


def test_most_records_go_by_columns() -> None:
    records = [
        topics.PartitionRecord(
            partition_id=number,
            topic_id=TOPICS[number // 50],
            replicas=(1, 2, 3),
            isr=(1, 2, 3)[: 3 - number % 2],
            directories=(UUID(int=number),) * 3,
        )
        for number in range(150)
    ]
    tables, others = read_by_columns([encode_record(record, 1) for record in records])
    assert not others
    assert [(topic_id, len(table)) for topic_id, table in tables] == [(each, 50) for each in TOPICS]
    assert all(len(table.directory_ids) == 50 for _, table in tables), (
        "each lists the directories that it uses"
    )


STATES = st.dictionaries(st.integers(0, 9), partition_states(), max_size=6)


@given(STATES, STATES, STATES)
@settings(deadline=None)
def test_differing_ids_are_those_that_differ(one: dict, two: dict, three: dict) -> None:  # type: ignore[type-arg]
    table: PartitionTable = table_of(one).with_rows(table_of(two))
    other = table_of(three).with_rows(table_of(two))
    mine, others = {**one, **two}, {**three, **two}
    expected = [each for each in sorted(mine) if others.get(each) != mine[each]]
    assert table.ids_not_in(other).tolist() == expected
    assert (table == other) == (mine == others)
    assert list(table.part(1, 3).items()) == sorted(mine.items())[1:3]


@given(HISTORIES, st.integers(1, 5))
@settings(deadline=None)
def test_led_counts_and_settling_before_the_end(history: list[MetadataRecord], most: int) -> None:
    expected, kept = accepted(MetadataImage.empty(), history)
    image = expected.apply(Provenance())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics_delta, "MOST_PENDING", most)
        delta = accepted(MetadataImage.empty(), kept)[0]
        changed = delta.changed_topics
        assert delta.apply(Provenance()) == image
    assert {each: set(ids) for each, ids in changed.items()} == {
        each: set(ids) for each, ids in expected.changed_topics.items()
    }
    assert dict(image.topics.led_counts) == counted(image.topics)
    assert image.topics.partition_count == sum(len(each.partitions) for each in image.topics.by_id.values())


def counted(image: TopicsImage) -> dict[int, int]:
    counts: dict[int, int] = {}
    for topic in image.by_id.values():
        for _, state in topic.partitions.items():
            if state.leader != -1:
                counts[state.leader] = counts.get(state.leader, 0) + 1
    return counts


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=80), st.data())
@settings(deadline=None)
def test_values_alone_are_those_of_the_records(values: list[bytes], data: st.DataObject) -> None:
    keys = [data.draw(st.sampled_from([None, None, None, b"k"])) for _ in values]
    batch = bytearray(
        write_batch(
            base_offset=3, leader_epoch=1, timestamp_ms=5, records=list(zip(keys, values, strict=True))
        )
    )
    header = check_batch(batch)
    assert read_values(batch, 0, header) == values
    assert read_values(memoryview(batch), 0, header) == values
    batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected = [record.value for record in read_records(batch, 0, header)]
    except DecodeError as error:
        with pytest.raises(type(error)):
            read_values(batch, 0, header)
        return
    assert read_values(batch, 0, header) == expected
