"""A keeper of snapshots with a disk in memory and a replica that only remembers."""

from dataclasses import replace

from kquorum.metadata.adapters.snapshot_manager import SnapshotManager, SnapshotSettings
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.snapshot import LoadedSnapshot, load_snapshot
from kquorum.raft.inputs import SnapshotWritten
from kquorum.snapshots.naming import SnapshotId
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from tests.support.fault_file_system import FaultFileSystem
from tests.support.images import image_of, partition_record, topic_records
from tests.support.metadata.snapshot_parts import FOLDER, START_MS, FakeReplica
from tests.support.raft.driver_parts import until

SETTINGS = SnapshotSettings(
    max_bytes=1000,
    max_interval_ms=60_000,
    retention_bytes=-1,
    retention_ms=-1,
    cleaning_interval_ms=3_600_000,
)
NOTE = b"a note"


def image_at(end_offset: int, epoch: int = 2, *, aligned: bool = True) -> MetadataImage:
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        *topic_records(1, "orders", *(partition_record(1, index, (1, 2, 3)) for index in range(30))),
    ]
    here = Provenance(
        last_contained_offset=end_offset - 1,
        last_contained_epoch=epoch,
        timestamp_ms=START_MS,
        is_batch_aligned=aligned,
    )
    return replace(image_of(*records), provenance=here)


def batch(size: int) -> LogBatch:
    return build_batch(0, 1, START_MS, [(None, bytes(size))])


class Rig:
    def __init__(self, settings: SnapshotSettings = SETTINGS) -> None:
        self.disk = FaultFileSystem(FOLDER)
        self.replica = FakeReplica()
        self.now_ms = START_MS
        self.fatal: list[Exception] = []
        self.keeper = SnapshotManager(
            FOLDER,
            settings,
            self.replica,
            self.replica,
            lambda: self.now_ms,
            self.fatal.append,
            self.disk,
        )

    def publish(self, image: MetadataImage, *notes: bytes) -> None:
        delta = MetadataDelta(image)
        delta.audit_notes.extend(notes)
        self.keeper.publish(delta, image)

    def commit(self, size: int = 2000) -> None:
        self.keeper.handle_commit(self.now_ms, [batch(size)])

    @property
    def names(self) -> list[str]:
        return self.disk.names(FOLDER)

    async def written(self, end_offset: int, epoch: int = 2) -> None:
        event = SnapshotWritten(OffsetAndEpoch(end_offset, epoch))
        await until(lambda: event in self.replica.received)

    def load(self, end_offset: int, epoch: int = 2) -> LoadedSnapshot:
        data = self.disk.read(FOLDER / SnapshotId(end_offset, epoch).file_name)
        return load_snapshot(data, OffsetAndEpoch(end_offset, epoch))
