"""Each idempotent producer of each partition, by its epochs."""

from collections.abc import Iterator

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import (
    LOG_DIR,
    PARTITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TOPIC,
    Collector,
    DataTable,
    Row,
)
from kquorum.spark_replay.data.log_dirs import PartitionFolder
from kquorum.spark_replay.data.reading import DataBatch
from kquorum.spark_replay.data.tables.data_batches import known
from kquorum.spark_replay.tables.building.columns import BOOLEAN, INT, LONG, column

SCHEMA = StructType(
    [
        LOG_DIR,
        TOPIC,
        PARTITION,
        PRODUCER_ID,
        PRODUCER_EPOCH,
        column("batches", LONG, "batches of this epoch, markers included"),
        column("records", LONG, "records of this epoch without markers"),
        column("markers", LONG, "ends of transactions"),
        column("is_transactional", BOOLEAN, "whether any of the batches belongs to a transaction"),
        column("first_offset", LONG, "first offset of the first batch"),
        column("last_offset", LONG, "last offset of the last batch"),
        column("first_ms", LONG, "latest time of a record in the first batch"),
        column("last_ms", LONG, "latest time of a record in the last batch"),
        column("last_sequence", INT, "sequence number of the last record; null where only markers are left"),
    ]
)


class _Producers(Collector):
    def __init__(self, folder: PartitionFolder) -> None:
        super().__init__(folder)
        self._rows: dict[tuple[int, int], Row] = {}

    def batch(self, batch: DataBatch) -> Iterator[Row]:
        header = batch.header
        if not header.has_producer_id:
            return iter(())
        key = (header.producer_id, header.producer_epoch)
        row = self._rows.setdefault(
            key,
            {
                **self.at,
                "producer_id": key[0],
                "producer_epoch": key[1],
                **dict.fromkeys(("batches", "records", "markers"), 0),
                "is_transactional": False,
                "first_offset": header.base_offset,
                "first_ms": known(header.max_timestamp_ms),
                "last_sequence": None,
            },
        )
        row["batches"] += 1
        row["markers" if header.is_control else "records"] += header.record_count
        row["is_transactional"] |= header.is_transactional
        row["last_offset"] = header.last_offset
        row["last_ms"] = known(header.max_timestamp_ms)
        if not header.is_control and header.base_sequence >= 0:
            row["last_sequence"] = header.last_sequence
        return iter(())

    def end(self) -> Iterator[Row]:
        yield from self._rows.values()


TABLE = DataTable(
    place=30,
    schema=SCHEMA,
    description="Each idempotent producer of a partition: what each of its epochs wrote there.",
    collector=_Producers,
)
