"""Images under random histories: to records and back, column tables against plain dicts, deltas against replays."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS, PartitionTable, table_of
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_from_values, image_records
from tests.support.metadata.image_histories import HISTORIES, STEPS, accepted, partition_states


@given(HISTORIES)
@settings(deadline=None)
def test_image_to_records_to_image(history: list[MetadataRecord]) -> None:
    image = accepted(MetadataImage.empty(), history)[0].apply(Provenance(last_contained_offset=7))
    values = (encode_record(record) for record in image_records(image))
    loaded = image_from_values(values, image.provenance)
    assert loaded == image
    assert list(image_records(loaded)) == list(image_records(image))


@given(HISTORIES, st.integers(1, 7))
@settings(deadline=None)
def test_one_delta_is_as_good_as_many(history: list[MetadataRecord], size: int) -> None:
    whole, kept = accepted(MetadataImage.empty(), history)
    image = MetadataImage.empty()
    for start in range(0, len(kept), size):
        delta = MetadataDelta(image)
        for offset, record in enumerate(kept[start : start + size], start):
            delta.replay(record, offset)
        image = delta.apply(Provenance())
    assert image == whole.apply(Provenance())


@given(HISTORIES, HISTORIES)
@settings(deadline=None)
def test_refused_record_leaves_no_trace(history: list[MetadataRecord], more: list[MetadataRecord]) -> None:
    delta, kept = accepted(MetadataImage.empty(), history + more)
    clean = MetadataDelta(MetadataImage.empty())
    for offset, record in enumerate(kept):
        clean.replay(record, offset)
    assert delta.apply(Provenance()) == clean.apply(Provenance())


@given(HISTORIES, HISTORIES)
@settings(deadline=None)
def test_delta_to_a_loaded_snapshot_tells_every_difference(
    old: list[MetadataRecord], new: list[MetadataRecord]
) -> None:
    before = accepted(MetadataImage.empty(), old)[0].apply(Provenance())
    target = accepted(MetadataImage.empty(), new)[0].apply(Provenance())
    delta = MetadataDelta(before)
    delta.become(target)
    assert delta.apply(Provenance()) == target
    for broker_id in set(before.cluster.brokers) | set(target.cluster.brokers):
        differs = before.cluster.brokers.get(broker_id) != target.cluster.brokers.get(broker_id)
        assert (broker_id in delta.changed_brokers) == differs
    assert delta.deleted_topic_ids == set(before.topics.by_id) - set(target.topics.by_id)
    assert delta.created_topic_ids == set(target.topics.by_id) - set(before.topics.by_id)


@given(STEPS)
@settings(deadline=None)
def test_table_of_columns_is_like_a_dict(steps: list[dict[int, PartitionState]]) -> None:
    table: PartitionTable = EMPTY_PARTITIONS
    twin: dict[int, PartitionState] = {}
    for changes in steps:
        before, known = table, dict(twin)
        table = table.with_rows(table_of(changes))
        twin.update(changes)
        assert dict(before.items()) == known, "a table does not change behind its holders"
        check_like(table, twin)
    assert table == table_of(twin)


def check_like(table: PartitionTable, twin: dict[int, PartitionState]) -> None:
    assert len(table) == len(twin)
    assert list(table.items()) == sorted(twin.items())
    for partition_id in range(-1, 14):
        assert table.get(partition_id) == twin.get(partition_id)
    assert table.leaderless().tolist() == [number for number in sorted(twin) if twin[number].leader == -1]


@given(partition_states(), partition_states())
def test_tables_are_equal_by_content_alone(first: PartitionState, second: PartitionState) -> None:
    grown = table_of({0: first}).with_rows(table_of({0: second}))
    assert grown == table_of({0: second})
    other = replace(second, partition_epoch=(second.partition_epoch + 1) % 1000)
    assert (table_of({0: other}) == grown) == (other == second)
