"""A snapshot at every offset of random histories, with transactions: it is what was committed there, and all of it.

The histories are committed batch by batch to a loader, as on a node. After each batch the image that a snapshot would
be made of is compared with a plain replay of the records that count, then written and loaded again, and the rest of
the log is replayed from there. Bugs planted in the writer, the loader and the transactions show that this can fail.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.image import loading, partition_records
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_records import NUMBERS
from kquorum.metadata.image.records import image_values
from kquorum.metadata.loader import MetadataLoader, Slices
from kquorum.metadata.snapshot import load_snapshot
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch
from kquorum.wire.metadata_records import features, topics
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.metadata.image_histories import HISTORIES, RECORDS, alike

EPOCH = 3
LEVEL = features.FeatureLevelRecord(name="metadata.version", feature_level=25)
Write = Callable[[MetadataImage], Iterator[bytes]]


@st.composite
def histories(draw: st.DrawFn) -> list[MetadataRecord]:
    """Records with transactions around some (the last may still be open), and audit notes."""
    history: list[MetadataRecord] = [LEVEL]
    for _ in range(draw(st.integers(1, 6))):
        part = draw(HISTORIES.map(lambda records: records[:8]) | alike().map(lambda records: records[:30]))
        ending = draw(
            st.sampled_from([None, features.EndTransactionRecord(), features.AbortTransactionRecord()])
        )
        history += part if ending is None else [features.BeginTransactionRecord(), *part, ending]
        if draw(st.booleans()):
            note = draw(st.binary(min_size=1, max_size=3))
            history.append(features.NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)))
    if draw(st.booleans()):
        history += [features.BeginTransactionRecord(), *draw(st.lists(RECORDS, max_size=5))]
    return history


@dataclass
class Model:
    """What counts of a log, by the plainest rule: `committed` records, and those of a transaction that is open."""

    committed: list[MetadataRecord] = field(default_factory=list)
    open: list[MetadataRecord] | None = None
    end: int = 0
    position: int = 0

    def take(self, record: MetadataRecord) -> None:
        self.position += 1
        match record:
            case features.BeginTransactionRecord() if self.open is None:
                self.open = []
            case features.EndTransactionRecord() if self.open is not None:
                self.committed, self.open = self.committed + self.open, None
            case features.AbortTransactionRecord() if self.open is not None:
                self.open = None
            case _ if self._fits(record):
                (self.committed if self.open is None else self.open).append(record)
        if self.open is None:
            self.end = self.position

    def _fits(self, record: MetadataRecord) -> bool:
        delta = replayed(self.committed + (self.open or []))
        try:
            delta.replay(record, 0)
        except ReplayError:
            return False
        return True


def replayed(records: Iterable[MetadataRecord]) -> MetadataDelta:
    delta = MetadataDelta(MetadataImage.empty())
    for record in records:
        delta.replay(record, 0)
    return delta


def batches_of(history: list[MetadataRecord], sizes: list[int]) -> list[LogBatch]:
    batches: list[LogBatch] = []
    offset = 0
    while offset < len(history):
        some = history[offset : offset + sizes[len(batches) % len(sizes)]]
        records = [(None, encode_record(record)) for record in some]
        batches.append(build_batch(offset, EPOCH, 1000 + offset, records))
        offset += len(some)
    return batches


def snapshot_of(image: MetadataImage, note: bytes | None, codec: CompressionCodec, write: Write) -> bytes:
    def values() -> Iterator[bytes]:
        yield from write(image)
        if note is not None:
            yield encode_record(features.NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)), 0)

    snapshot_id = SnapshotId(image.end_offset, image.provenance.last_contained_epoch)
    timestamp_ms = image.provenance.timestamp_ms
    writer = SnapshotWriter(
        snapshot_id,
        timestamp_ms=1,
        last_contained_log_timestamp_ms=timestamp_ms,
        codec=codec,
        max_batch_bytes=300,
    )
    return b"".join(writer.write(values()))


def check_every_offset(
    history: list[MetadataRecord],
    sizes: list[int],
    codec: CompressionCodec = CompressionCodec.NONE,
    write: Write = image_values,
    loader: MetadataLoader | None = None,
) -> None:
    loader = loader or MetadataLoader(on_fault=lambda _: None)
    batches, model = batches_of(history, sizes), Model()
    loaded: list[tuple[int, MetadataImage]] = []
    for number, batch in enumerate(batches):
        loader.handle_commit([batch])
        for record in batch.records:
            model.take(decode_record(record.value or b""))
        image = loader.image
        assert image.end_offset == model.end, "a snapshot ends before an open transaction, and nowhere else"
        assert replace(image, provenance=Provenance()) == replayed(model.committed).apply(Provenance())
        if not image.provenance.is_batch_aligned or not image.end_offset:
            continue
        note = loader.last_audit_note
        try:
            data = snapshot_of(image, note, codec, write)
        except UnsupportedVersion:
            continue
        found = load_snapshot(data, OffsetAndEpoch(image.end_offset, EPOCH))
        assert found.image == image
        assert found.last_audit_note == note
        assert SnapshotReader(data).last_contained_log_timestamp_ms == image.provenance.timestamp_ms
        loaded.append((number, found.image))
    for _, start in loaded[-3:]:
        again = MetadataLoader(start, on_fault=lambda _: None)
        again.handle_commit([batch for batch in batches if batch.base_offset >= start.end_offset])
        assert again.image == loader.image


@given(
    histories(),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.sampled_from([CompressionCodec.NONE, CompressionCodec.LZ4]),
)
@settings(deadline=None, max_examples=50)
def test_image_to_snapshot_to_image_at_every_offset(
    history: list[MetadataRecord], sizes: list[int], codec: CompressionCodec
) -> None:
    check_every_offset(history, sizes, codec)


# One history with all that the planted bugs get wrong.
TOPIC_ID = UUID(int=9)
PARTITIONS: list[MetadataRecord] = [
    topics.PartitionRecord(
        partition_id=number,
        topic_id=TOPIC_ID,
        replicas=(1, 2, 3),
        isr=(1, 2),
        leader=1,
        leader_epoch=number,
        partition_epoch=2 * number + 1,
        directories=(UUID(int=101), UUID(int=102), UUID(int=103)),
        eligible_leader_replicas=(3,) if number == 4 else None,
    )
    for number in range(12)
]
TELLING: list[MetadataRecord] = [
    LEVEL,
    topics.TopicRecord(name="a", topic_id=TOPIC_ID),
    *PARTITIONS,
    features.BeginTransactionRecord(),
    topics.TopicRecord(name="b", topic_id=UUID(int=10)),
    features.AbortTransactionRecord(),
    features.BeginTransactionRecord(),
    topics.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=2),
    features.EndTransactionRecord(),
]


def test_the_telling_history_is_sound() -> None:
    check_every_offset(TELLING, [1])
    check_every_offset(TELLING, [4])


def without_last(image: MetadataImage) -> Iterator[bytes]:
    return iter(list(image_values(image))[:-1])


def without_eligible_replicas(image: MetadataImage) -> Iterator[bytes]:
    for value in image_values(image):
        record = decode_record(value)
        if isinstance(record, topics.PartitionRecord):
            record = replace(record, eligible_leader_replicas=None)
        yield encode_record(record, value[2])


def with_next_leader_epoch(image: MetadataImage) -> Iterator[bytes]:
    for value in image_values(image):
        record = decode_record(value)
        if isinstance(record, topics.PartitionRecord) and record.partition_id == 11:
            record = replace(record, leader_epoch=record.leader_epoch + 1)
        yield encode_record(record, value[2])


@pytest.mark.parametrize("write", [without_last, without_eligible_replicas, with_next_leader_epoch])
def test_a_broken_writer_is_caught(write: Write) -> None:
    with pytest.raises(AssertionError):
        check_every_offset(TELLING, [1], write=write)


@pytest.mark.parametrize("field_name", ["leader", "partition_epoch"])
def test_a_broken_reader_of_columns_is_caught(monkeypatch: pytest.MonkeyPatch, field_name: str) -> None:
    """Two columns mixed up, as by a wrong order of the fields."""
    mixed = tuple("leader_epoch" if name == field_name else name for name in NUMBERS)
    monkeypatch.setattr(partition_records, "NUMBERS", mixed)
    with pytest.raises(AssertionError):
        check_every_offset(TELLING, [len(TELLING)])


def test_a_reader_that_drops_a_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    read = partition_records.read_by_columns

    def shifted(values: list[bytes]) -> object:
        return read([*values[1:]])

    monkeypatch.setattr(loading, "read_by_columns", shifted)
    with pytest.raises(AssertionError):
        check_every_offset(TELLING, [3])


class NoTransactions(MetadataLoader):
    """Publishes inside a transaction."""

    def _begin(self, record: MetadataRecord, offset: int) -> Slices:
        yield from ()
        return None


class NoWayBack(MetadataLoader):
    """Ends an aborted transaction like any other."""

    def _close(self, record: MetadataRecord, offset: int) -> None:
        super()._close(features.EndTransactionRecord(), offset)


@pytest.mark.parametrize("broken", [NoTransactions, NoWayBack])
def test_broken_transactions_are_caught(broken: type[MetadataLoader]) -> None:
    with pytest.raises(AssertionError):
        check_every_offset(TELLING, [1], loader=broken(on_fault=lambda _: None))
