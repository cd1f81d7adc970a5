"""Small lawful histories of a cluster, step by step, and the faults that are planted in them: each with right checksums
but for the one that is about a checksum."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kquorum.snapshots.naming import snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.audit_note import AUDIT_NOTE_TAG, note_hash
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord, UnregisterBrokerRecord
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.batches import rewrite_offsets
from tests.support.log_faults import batches_of, flip_in
from tests.support.sample_logs import COMMITTED, ORDERS, LogBuilder, broker, partition

SEGMENT, SNAPSHOT_STEP = "00000000000000000000.log", "second note"


@dataclass(frozen=True, slots=True)
class Step:
    """One batch, by a name; an election where `epoch` is set."""

    name: str
    records: tuple[MetadataRecord, ...] = ()
    epoch: int | None = None


@dataclass(slots=True)
class Notes:
    last: bytes = b""

    def note(self, covered: int, why: str = "asked for") -> MetadataRecord:
        value = AuditNote(
            principal="User:alice",
            api_key=19,
            covered_records=covered,
            reason=why,
            previous_note_hash=self.last,
        ).SerializeToString(deterministic=True)
        self.last = note_hash(value)
        return NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, value),))


def lawful_steps() -> list[Step]:
    """Three brokers, two topics, three notes, two transactions, two epochs."""
    notes = Notes()
    brokers = (1, 2, 3)
    whole = (TopicRecord(name="committed", topic_id=COMMITTED), partition(COMMITTED, 0, 1, (1, 2)))
    return [
        Step("first epoch", epoch=1),
        Step("features", (FeatureLevelRecord(name="metadata.version", feature_level=25),)),
        Step("brokers", tuple(broker(number, number) for number in brokers)),
        Step("unfenced", tuple(unfenced(number) for number in brokers)),
        Step(
            "topic",
            (
                notes.note(3),
                TopicRecord(name="orders", topic_id=ORDERS),
                partition(ORDERS, 0, 1, (1, 2, 3)),
                partition(ORDERS, 1, 2, (2, 3, 1)),
            ),
        ),
        Step("moved", (PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=(2, 3)),)),
        Step("idle", (NoOpRecord(),)),
        Step("second note", (notes.note(1), config("5"))),
        Step("transaction", (BeginTransactionRecord(name="whole"), *whole, EndTransactionRecord())),
        Step("second epoch", epoch=2),
        Step("begun", (BeginTransactionRecord(name="never"), config("6"))),
        Step("aborted", (AbortTransactionRecord(reason="Controller failover"),)),
        Step("third note", (notes.note(1), config("7"))),
        Step("removed", (RemoveTopicRecord(topic_id=COMMITTED),)),
        Step("unregistered", (UnregisterBrokerRecord(broker_id=3, broker_epoch=3),)),
        Step("end", (NoOpRecord(),)),
    ]


def unfenced(number: int) -> MetadataRecord:
    return BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, fenced=-1)


def config(value: str) -> MetadataRecord:
    return ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=value)


@dataclass(slots=True)
class History:
    """Steps as a log; `at` are the offsets at which each begins."""

    steps: Sequence[Step]
    at: dict[str, int] = field(default_factory=dict)

    def data(self) -> bytes:
        log = LogBuilder()
        for number, step in enumerate(self.steps):
            self.at[step.name] = log.next_offset
            if step.epoch is not None:
                log.leader(1_000 * number, 1 + step.epoch % 2, 1, 2, epoch=step.epoch)
            else:
                log.records(1_000 * number, *step.records)
        return bytes(log.data)


def with_step(name: str, *records: MetadataRecord, before: str | None = None) -> list[Step]:
    """The lawful steps, one of them with other records, or a new one before another."""
    steps = lawful_steps()
    if before is None:
        return [replace(step, records=records) if step.name == name else step for step in steps]
    place = next(index for index, step in enumerate(steps) if step.name == before)
    return [*steps[:place], Step(name, records), *steps[place:]]


def write_history(
    folder: Path,
    steps: Sequence[Step],
    *,
    node_id: int = 1,
    cluster: str = "",
    epoch: int = 2,
    leader: int = 2,
) -> History:
    """A metadata folder, with the files that tell whose it is."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    history = History(steps)
    (log_folder / SEGMENT).write_bytes(history.data())
    name = cluster or f"cluster-of-{folder.name}"
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id={node_id}\n")
    (log_folder / "quorum-state").write_text(f'{{"leaderId":{leader},"leaderEpoch":{epoch},"votedId":-1}}')
    return history


def segment_of(folder: Path) -> Path:
    return folder / "__cluster_metadata-0" / SEGMENT


def change_batches(folder: Path, change: Callable[[list[bytes]], None]) -> None:
    path = segment_of(folder)
    batches = batches_of(path)
    change(batches)
    path.write_bytes(b"".join(batches))


def flip_byte(folder: Path, step: int) -> None:
    change_batches(folder, lambda batches: flip_in(batches, step, -2))


def drop_batch(folder: Path, step: int) -> None:
    change_batches(folder, lambda batches: batches.pop(step) and None)


def set_epoch_back(folder: Path, step: int, epoch: int) -> None:
    def change(batches: list[bytes]) -> None:
        batches[step] = rewrite_offsets(batches[step], int.from_bytes(batches[step][:8], "big"), epoch)

    change_batches(folder, change)


def forged(steps: Sequence[Step], name: str) -> list[Step]:
    """The note in one step says something else; the ones behind it still name the true one."""

    def lie(record: MetadataRecord) -> MetadataRecord:
        if not isinstance(record, NoOpRecord):
            return record
        note = AuditNote.FromString(dict(record.unknown_tagged_fields)[AUDIT_NOTE_TAG])
        note.principal = "User:bob"
        return NoOpRecord(
            unknown_tagged_fields=((AUDIT_NOTE_TAG, note.SerializeToString(deterministic=True)),)
        )

    return [
        replace(step, records=tuple(map(lie, step.records))) if step.name == name else step for step in steps
    ]


def change_snapshot(path: Path, change: Callable[[PartitionRecord], PartitionRecord]) -> None:
    """The same snapshot, perfect in form, with its first partition changed."""
    reader = SnapshotReader(path.read_bytes())
    records = [decode_record(value) for value in reader.values()]
    place = next(index for index, record in enumerate(records) if isinstance(record, PartitionRecord))
    found = records[place]
    assert isinstance(found, PartitionRecord)
    records[place] = change(found)
    snapshot_id = snapshot_id_of(path.name)
    assert snapshot_id is not None
    writer = SnapshotWriter(
        snapshot_id,
        timestamp_ms=5,
        last_contained_log_timestamp_ms=reader.last_contained_log_timestamp_ms,
    )
    path.unlink()
    path.write_bytes(b"".join(writer.write(map(encode_record, records))))


def batch_offsets(folder: Path) -> Mapping[int, tuple[int, int]]:
    """(base offset, last offset) of each batch, by its number."""
    found = [each for each in scan_batches(segment_of(folder).read_bytes()) if isinstance(each, ScannedBatch)]
    return {index: (each.header.base_offset, each.header.last_offset) for index, each in enumerate(found)}
