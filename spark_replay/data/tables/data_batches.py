"""Every batch of every partition, by its header: place, offsets, times, codec, producer, transaction."""

from collections.abc import Iterator

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import (
    LOG_DIR,
    PARTITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SEGMENT_FILE,
    TOPIC,
    Collector,
    DataTable,
    Row,
)
from kquorum.spark_replay.data.reading import DataBatch
from kquorum.spark_replay.tables.building.columns import BOOLEAN, INT, LONG, STRING, column

SCHEMA = StructType(
    [
        LOG_DIR,
        TOPIC,
        PARTITION,
        SEGMENT_FILE,
        column("position", LONG, "byte position in the file"),
        column("base_offset", LONG, "offset of the first record"),
        column(
            "last_offset", LONG, "offset of the last record; compaction may have left out records between"
        ),
        column(
            "record_count", INT, "records in the batch; null in a compressed message of the formats 0 and 1"
        ),
        column("size_in_bytes", LONG, "bytes of the batch with its header"),
        column("leader_epoch", INT, "epoch of the partition's leader that appended it; null before format 2"),
        column("magic", INT, "format of the batch: 0, 1 or 2"),
        column("codec", STRING, "none, gzip, snappy, lz4 or zstd"),
        column("base_timestamp_ms", LONG, "time of the first record; null with a delete horizon"),
        column("max_timestamp_ms", LONG, "the latest time of its records; null where they have none"),
        column("is_log_append_time", BOOLEAN, "whether the broker stamped the records, and not the producer"),
        PRODUCER_ID,
        PRODUCER_EPOCH,
        column("base_sequence", INT, "sequence number of the first record; null where it has none"),
        column("is_transactional", BOOLEAN, "whether it belongs to a transaction"),
        column("is_control", BOOLEAN, "whether it is a marker and no data"),
        column("marker", STRING, "commit or abort, of a batch that ends a transaction"),
        column("delete_horizon_ms", LONG, "when the tombstones of a compacted batch may go (KIP-534)"),
        column("crc", LONG, "the checksum in the header; equal in replicas that hold the same batch"),
    ]
)


class _Batches(Collector):
    def batch(self, batch: DataBatch) -> Iterator[Row]:
        header = batch.header
        horizon = header.delete_horizon_ms
        marker = batch.marker
        yield {
            **self.at,
            "file": batch.file,
            "position": batch.position,
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "record_count": known(header.record_count),
            "size_in_bytes": header.size_in_bytes,
            "leader_epoch": known(header.partition_leader_epoch),
            "magic": header.magic,
            "codec": header.codec.name.lower(),
            "base_timestamp_ms": None if horizon is not None else known(header.base_timestamp_ms),
            "max_timestamp_ms": known(header.max_timestamp_ms),
            "is_log_append_time": header.is_log_append_time,
            "producer_id": known(header.producer_id),
            "producer_epoch": known(header.producer_epoch),
            "base_sequence": known(header.base_sequence),
            "is_transactional": header.is_transactional,
            "is_control": header.is_control,
            "marker": None if marker is None else "commit" if marker.is_commit else "abort",
            "delete_horizon_ms": horizon,
            "crc": header.crc,
        }


def known(number: int) -> int | None:
    """Kafka writes -1 for what is not there."""
    return None if number < 0 else number


TABLE = DataTable(
    place=10,
    schema=SCHEMA,
    description="Every batch of every partition, by its header: place, offsets, times, producer, transaction. "
    "It holds no record.",
    collector=_Batches,
)
