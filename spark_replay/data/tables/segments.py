"""The segment files: what they hold, and what in them is no sound batch."""

from collections.abc import Iterator

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import (
    LOG_DIR,
    PARTITION,
    SEGMENT_FILE,
    TOPIC,
    Collector,
    DataTable,
    Row,
)
from kquorum.spark_replay.data.log_dirs import PartitionFolder
from kquorum.spark_replay.data.reading import DataBatch, Unreadable
from kquorum.spark_replay.tables.building.columns import LONG, STRING, column

SCHEMA = StructType(
    [
        LOG_DIR,
        TOPIC,
        PARTITION,
        SEGMENT_FILE,
        column("segment_base_offset", LONG, "the offset in the file's name"),
        column("size_in_bytes", LONG, "size of the file"),
        column("batches", LONG, "sound batches"),
        column("records", LONG, "records in them, markers included"),
        column("first_offset", LONG, "first offset of the first batch; null without one"),
        column("last_offset", LONG, "last offset of the last batch; null without one"),
        column("max_timestamp_ms", LONG, "the latest time of a record; null where there is none"),
        column("undecodable_batches", LONG, "batches with a right checksum whose records cannot be decoded"),
        column("damaged_places", LONG, "stretches of bytes that are no sound batch, a torn end included"),
        column("torn_bytes", LONG, "bytes of a batch that the end of the file cuts off"),
        column("damaged_position", LONG, "where the first damaged place begins; null without one"),
        column("damage", STRING, "what is wrong there; null without one"),
    ]
)


class _Segments(Collector):
    def __init__(self, folder: PartitionFolder) -> None:
        super().__init__(folder)
        self._row: Row = {}

    def begin_segment(self, file: str, size_in_bytes: int) -> Iterator[Row]:
        self._row = dict.fromkeys(SCHEMA.fieldNames()) | {
            **self.at,
            "file": file,
            "segment_base_offset": int(file.removesuffix(".log")),
            "size_in_bytes": size_in_bytes,
            "batches": 0,
            "records": 0,
            "undecodable_batches": 0,
            "damaged_places": 0,
            "torn_bytes": 0,
        }
        return iter(())

    def batch(self, batch: DataBatch) -> Iterator[Row]:
        row, header = self._row, batch.header
        row["batches"] += 1
        # Of a compressed message of the formats 0 and 1 the header does not say how many it holds.
        row["records"] += header.record_count if header.record_count >= 0 else len(batch.records)
        if row["first_offset"] is None:
            first = (
                batch.records[0].offset if header.record_count < 0 and batch.records else header.base_offset
            )
            row["first_offset"] = first
        row["last_offset"] = header.last_offset
        if header.max_timestamp_ms >= 0:
            row["max_timestamp_ms"] = max(header.max_timestamp_ms, row["max_timestamp_ms"] or 0)
        row["undecodable_batches"] += batch.problem is not None
        return iter(())

    def unreadable(self, place: Unreadable) -> Iterator[Row]:
        row = self._row
        row["damaged_places"] += 1
        row["torn_bytes"] += place.size_in_bytes if place.is_torn else 0
        if row["damage"] is None:
            row["damaged_position"], row["damage"] = place.position, place.reason
        return iter(())

    def end_segment(self) -> Iterator[Row]:
        yield self._row


TABLE = DataTable(
    place=20,
    schema=SCHEMA,
    description="Each segment file: its offsets, times and counts, and what in it is damaged.",
    collector=_Segments,
)
