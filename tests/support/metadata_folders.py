"""A whole metadata folder, as a node leaves it: two segments with indexes, checkpoints, election state, a snapshot."""

from pathlib import Path

from kquorum.cli.main import run
from kquorum.storage.indexes import SegmentIndexes
from kquorum.storage.leader_epoch_checkpoint import write_epochs
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from kquorum.wire.record_batch import CompressionCodec
from tests.support.sample_logs import (
    COMMITTED,
    ORDERS,
    LogBuilder,
    broker,
    partition,
)

FIRST, SECOND = "00000000000000000000", "00000000000000000100"
SNAPSHOT_OFFSET = 60
END_OFFSET = 155
META_PROPERTIES = "#\n#\ncluster.id=EP6hyiddQNW5FPrAvR9kWw\nnode.id=1\nversion=1\n"
QUORUM_STATE = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
)


def first_segment() -> LogBuilder:
    """Offsets 0 to 99, epoch 1: two brokers, a topic, and the noise of an idle cluster."""
    log = LogBuilder().leader(1000, 1, 1, 2, epoch=1)
    log.records(
        1100, FeatureLevelRecord(name="metadata.version", feature_level=25), broker(1, 1), broker(2, 2)
    )
    log.records(
        1200,
        TopicRecord(name="orders", topic_id=ORDERS),
        partition(ORDERS, 0, 1, (1, 2)),
        partition(ORDERS, 1, 2, (2, 1)),
        codec=CompressionCodec.LZ4,
    )
    log.records(1300, ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"))
    log.records(1400, PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=(2,)))
    return idle(log, 100)


def second_segment() -> LogBuilder:
    """Offsets 100 to 154, epoch 2: a topic in a transaction, another removed."""
    log = LogBuilder(next_offset=100).leader(300_000, 2, 2, 3, epoch=2)
    log.records(
        300_100,
        BeginTransactionRecord(name="topic"),
        TopicRecord(name="committed", topic_id=COMMITTED),
        partition(COMMITTED, 0, 1, (1,)),
    )
    log.records(300_200, EndTransactionRecord())
    log.records(300_300, RemoveTopicRecord(topic_id=ORDERS))
    return idle(log, END_OFFSET)


def idle(log: LogBuilder, end_offset: int) -> LogBuilder:
    while log.next_offset < end_offset:
        log.records(10_000 + log.next_offset * 2000, NoOpRecord())
    return log


def write_folder(root: Path) -> Path:
    """The data folder; its metadata folder is inside. Everything in it is sound."""
    folder = root / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    for name, log in ((FIRST, first_segment()), (SECOND, second_segment())):
        (folder / f"{name}.log").write_bytes(log.data)
        write_indexes(folder, name)
    write_epochs(folder, [(1, 0), (2, 100)])
    (folder / "quorum-state").write_text(QUORUM_STATE)
    write_recovery_point(folder, 155)
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    (root / "meta.properties").write_text(META_PROPERTIES)
    assert run(["snapshot", "take", str(root), "--offset", str(SNAPSHOT_OFFSET), "--committed"]) == 0
    return folder


def write_recovery_point(folder: Path, offset: int) -> None:
    point = RecoveryPoint(folder)
    point.put(offset)
    point.close()


def write_indexes(folder: Path, name: str) -> None:
    indexes = SegmentIndexes(int(name))
    for found in scan_batches((folder / f"{name}.log").read_bytes()):
        assert isinstance(found, ScannedBatch), found
        header = found.header
        indexes.observe(found.position, header.size_in_bytes, header.last_offset, header.max_timestamp_ms)
    indexes.add_time_entry()
    offset_index, time_index = indexes.encoded()
    (folder / f"{name}.index").write_bytes(offset_index)
    (folder / f"{name}.timeindex").write_bytes(time_index)


def snapshot_path(folder: Path) -> Path:
    return folder / f"{SNAPSHOT_OFFSET:020d}-0000000001.checkpoint"
