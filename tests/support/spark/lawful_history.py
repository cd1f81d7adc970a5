"""A random history that a controller could have written, with the controller's image behind every record."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.metadata_version import METADATA_VERSION
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_records
from tests.support.sample_logs import DIRECTORY
from tests.support.spark.random_history import RandomLife, RandomLog, voter_set

SEED = 71
OPERATIONS = 110
LEVEL = 25  # of metadata.version: the image's records then tell directories and eligible leaders


@dataclass
class LawfulHistory:
    """`images[offset]` is the image behind the record there: within a transaction, the one before it began.

    `stamps[offset]` is the time of its batch, `batches` the first offset of each.
    """

    log: RandomLog
    images: dict[int, MetadataImage] = field(default_factory=dict)
    stamps: dict[int, int] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    image: MetadataImage = field(default_factory=MetadataImage.empty)
    held_back: list[MetadataRecord] | None = None

    def write(self, timestamp_ms: int, records: list[MetadataRecord]) -> None:
        """One batch, of those of the records which the state allows."""
        wanted = self._lawful(records)
        if not wanted:
            return
        self.batches.append(self.log.next_offset)
        for place, record in enumerate(wanted):
            self._apply(record)
            self._remember(self.log.next_offset + place, timestamp_ms)
        self.log.records(timestamp_ms, *wanted)

    def elect(self, timestamp_ms: int, life: RandomLife) -> None:
        self.log.epoch += 1
        records = life.election(self.log.epoch)
        self.batches.append(self.log.next_offset)
        for place in range(len(records)):
            self._remember(self.log.next_offset + place, timestamp_ms)
        self.log.control(timestamp_ms, *records)

    def _remember(self, offset: int, timestamp_ms: int) -> None:
        self.images[offset] = self.image
        self.stamps[offset] = timestamp_ms

    def _apply(self, record: MetadataRecord) -> None:
        if isinstance(record, BeginTransactionRecord):
            self.held_back = []
        elif isinstance(record, AbortTransactionRecord):
            self.held_back = None
        elif isinstance(record, EndTransactionRecord):
            self.image = replayed(self.image, self.held_back or [])
            self.held_back = None
        elif self.held_back is not None:
            self.held_back.append(record)
        else:
            self.image = replayed(self.image, [record])

    def _lawful(self, records: list[MetadataRecord]) -> list[MetadataRecord]:
        found: list[MetadataRecord] = []
        image = replayed(self.image, self.held_back or [])
        for record in records:
            fitted = _fitted(record, image.cluster)
            try:
                image = replayed(image, [fitted])
            except ReplayError:
                continue
            found.append(fitted)
        return found


def replayed(image: MetadataImage, records: list[MetadataRecord]) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record, 0)
    return delta.apply(Provenance())


def _fitted(record: MetadataRecord, cluster: ClusterImage) -> MetadataRecord:
    """With the epoch of the broker it is about, a directory for each replica, a level that a log can have."""
    if isinstance(record, BrokerRegistrationChangeRecord | UnregisterBrokerRecord):
        broker = cluster.brokers.get(record.broker_id)
        return record if broker is None else replace(record, broker_epoch=broker.epoch)
    if isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord):
        broker = cluster.brokers.get(record.id)
        return record if broker is None else replace(record, epoch=broker.epoch)
    if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
        return replace(record, feature_level=LEVEL + record.feature_level)
    if isinstance(record, PartitionChangeRecord):
        named = None if record.replicas is None else tuple(DIRECTORY for _ in record.replicas)
        return replace(record, directories=named)
    return record


def lawful_history(seed: int = SEED, operations: int = OPERATIONS) -> LawfulHistory:
    """The same for the same seed."""
    random, life = Random(seed), RandomLife(seed)
    history = LawfulHistory(RandomLog())
    history.elect(500, life)
    history.write(600, [FeatureLevelRecord(name=METADATA_VERSION, feature_level=0)])
    for number in range(operations):
        now_ms = 1_000 * (number + 1)
        batches = life.transaction() if life.in_transaction() else life.batches()
        for index, records in enumerate(batches):
            if random.random() < 0.05:
                history.elect(now_ms, life)
            history.write(now_ms + 300 * index, records)
    return history


def write_lawful_logs(root: Path) -> None:
    """The metadata folders `lawful`, from offset 0, and `lawful-trimmed`, the same log behind a snapshot."""
    history = lawful_history()
    _write_segment(root / "lawful", 0, bytes(history.log.data))
    write_behind_a_snapshot(root / "lawful-trimmed", history, cut_of(history))


def cut_of(history: LawfulHistory) -> int:
    """The first offset of a batch in the middle that is outside of transactions: the image changes with its records."""
    middle = history.log.next_offset // 2
    for offset in history.batches:
        before, here, behind = (history.images.get(each) for each in (offset - 1, offset, offset + 1))
        if offset > middle and before is not here and here is not behind:
            return offset
    raise AssertionError(f"seed {SEED} makes no history that can be cut")


def write_behind_a_snapshot(folder: Path, history: LawfulHistory, at: int) -> None:
    """The same log from `at` on (see `cut_of`), behind a snapshot that ends there."""
    writer = SnapshotWriter(
        SnapshotId(at, 3),
        timestamp_ms=history.stamps[at - 1],
        last_contained_log_timestamp_ms=history.stamps[at - 1],
        voters=voter_set([1, 2, 3], port=0),
        kraft_version=1,
    )
    values = map(encode_record, image_records(history.images[at - 1]))
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    (log_folder / SnapshotId(at, 3).file_name).write_bytes(b"".join(writer.write(values)))
    _write_segment(folder, at, _tail(bytes(history.log.data), at))


def _write_segment(folder: Path, base_offset: int, data: bytes) -> None:
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True, exist_ok=True)
    (log_folder / f"{base_offset:020d}.log").write_bytes(data)


def _tail(data: bytes, at: int) -> bytes:
    """The batches from offset `at` on. A batch begins with its offset and the length of what follows that."""
    position = 0
    while int.from_bytes(data[position : position + 8], "big") < at:
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return data[position:]
