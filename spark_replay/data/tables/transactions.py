"""The transactions in each partition: how long they were open, and how they ended."""

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
from kquorum.spark_replay.data.words import ABORTED, COMMITTED, OPEN
from kquorum.spark_replay.tables.building.columns import INT, LONG, STRING, column

SCHEMA = StructType(
    [
        LOG_DIR,
        TOPIC,
        PARTITION,
        PRODUCER_ID,
        PRODUCER_EPOCH,
        column("outcome", STRING, "committed, aborted, or open: no marker ends it in this log"),
        column("first_offset", LONG, "first offset of its first batch; null for a marker without batches"),
        column("last_offset", LONG, "last offset of its last batch; null for a marker without batches"),
        column("marker_offset", LONG, "offset of the marker that ended it; null while it is open"),
        column("first_ms", LONG, "latest time of a record in its first batch"),
        column("end_ms", LONG, "time of the marker; null while it is open"),
        column(
            "duration_ms",
            LONG,
            "from first_ms to end_ms, or to the latest record of this log while it is open",
        ),
        column("batches", LONG, "its batches"),
        column("records", LONG, "its records"),
        column("coordinator_epoch", INT, "epoch of the transaction coordinator that ended it"),
    ]
)


class _Transactions(Collector):
    """A producer has at most one transaction at a time; its marker ends it."""

    def __init__(self, folder: PartitionFolder) -> None:
        super().__init__(folder)
        self._open: dict[int, Row] = {}
        self._latest_ms: int | None = None

    def batch(self, batch: DataBatch) -> Iterator[Row]:
        header = batch.header
        if header.max_timestamp_ms >= 0:
            self._latest_ms = max(header.max_timestamp_ms, self._latest_ms or 0)
        if not header.has_producer_id or not header.is_transactional:
            return
        if not header.is_control:
            row = self._open.setdefault(header.producer_id, self._begun(batch))
            row["producer_epoch"] = header.producer_epoch
            row["last_offset"] = header.last_offset
            row["batches"] += 1
            row["records"] += header.record_count
            return
        marker = batch.marker
        if marker is None:
            return
        alone = {**self._begun(batch), "first_offset": None, "first_ms": None}
        row = self._open.pop(header.producer_id, alone)
        row |= {
            "producer_epoch": header.producer_epoch,
            "outcome": COMMITTED if marker.is_commit else ABORTED,
            "marker_offset": header.base_offset,
            "end_ms": known(header.max_timestamp_ms),
            "coordinator_epoch": known(marker.coordinator_epoch),
        }
        yield _timed(row, row["end_ms"])

    def _begun(self, batch: DataBatch) -> Row:
        header = batch.header
        return {
            **dict.fromkeys(SCHEMA.fieldNames()),
            **self.at,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "outcome": OPEN,
            "first_offset": header.base_offset,
            "first_ms": known(header.max_timestamp_ms),
            "batches": 0,
            "records": 0,
        }

    def end(self) -> Iterator[Row]:
        for row in self._open.values():
            yield _timed(row, self._latest_ms)


def _timed(row: Row, end_ms: int | None) -> Row:
    if end_ms is not None and row["first_ms"] is not None:
        row["duration_ms"] = max(end_ms - row["first_ms"], 0)
    return row


TABLE = DataTable(
    place=40,
    schema=SCHEMA,
    description="Each transaction in each partition: committed, aborted or open, and how long it was open.",
    collector=_Transactions,
)
