"""The Spark data source `kraft_log`: log segments and snapshots as rows, decoded on the executors.

    spark.dataSource.register(KraftLogDataSource)
    spark.read.format("kraft_log").option("rows", "records").load("/var/lib/kafka/metadata")

Options: `path` (see `spark_replay.sources`), `rows` (records, batches, damage, or all: one pass over the files for
the three of them), `split_bytes`, `show_secrets`. Rows travel to the JVM as Arrow batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BinaryType, BooleanType, DataType, IntegerType, LongType, StringType, StructType

from spark_replay.columns import ColumnBuffer
from spark_replay.decode import RecordDecoder, batch_row, origin_of, scan
from spark_replay.files import map_file
from spark_replay.rows import DamageRow, Row
from spark_replay.schemas import SOURCE_ROWS
from spark_replay.sources import FileKind, LogFile, find_log_files
from spark_replay.splits import DEFAULT_SPLIT_BYTES, split_ranges

ROWS_PER_ARROW_BATCH = 8192
ROW_KINDS = {
    "records": frozenset({"record"}),
    "batches": frozenset({"batch"}),
    "damage": frozenset({"damage"}),
    "all": frozenset({"record", "batch", "damage"}),
}

_ARROW_TYPES: dict[type[DataType], pa.DataType] = {
    StringType: pa.string(),
    LongType: pa.int64(),
    IntegerType: pa.int32(),
    BooleanType: pa.bool_(),
    BinaryType: pa.binary(),
}


@dataclass
class LogSplit(InputPartition):  # type: ignore[misc]
    """A piece of one file: the batches which begin in [start, end)."""

    file: LogFile
    start: int
    end: int


class KraftLogDataSource(DataSource):  # type: ignore[misc]
    """Rows of a metadata log, of every kind in one schema: `schemas.SOURCE_ROWS`."""

    @classmethod
    def name(cls) -> str:
        return "kraft_log"

    def schema(self) -> StructType:
        return SOURCE_ROWS

    def reader(self, schema: StructType) -> "KraftLogReader":
        options = self.options
        rows = options.get("rows", "records")
        if rows not in ROW_KINDS:
            raise ValueError(f"option rows is {rows!r}; it must be one of {', '.join(ROW_KINDS)}")
        if "path" not in options:
            raise ValueError("option path is missing: the folder or file to read")
        return KraftLogReader(
            schema,
            find_log_files(Path(options["path"])),
            ROW_KINDS[rows],
            split_bytes=int(options.get("split_bytes", DEFAULT_SPLIT_BYTES)),
            show_secrets=options.get("show_secrets", "false").lower() == "true",
        )


class KraftLogReader(DataSourceReader):  # type: ignore[misc]
    """Plans the splits on the driver and reads one of them on an executor."""

    def __init__(
        self,
        schema: StructType,
        files: tuple[LogFile, ...],
        row_kinds: frozenset[str],
        *,
        split_bytes: int,
        show_secrets: bool,
    ) -> None:
        self._schema = schema
        self._files = files
        self._row_kinds = row_kinds
        self._split_bytes = split_bytes
        self._show_secrets = show_secrets

    def partitions(self) -> list[LogSplit]:
        return [split for file in self._files for split in self._splits(file)]

    def read(self, partition: LogSplit) -> Iterator[pa.RecordBatch]:
        fixed = {"source": partition.file.source, "file_kind": str(partition.file.kind)}
        columns = ColumnBuffer(arrow_schema(self._schema), fixed)
        for kind, row in self._rows(partition):
            columns.add(kind, row)
            if len(columns) >= ROWS_PER_ARROW_BATCH:
                yield columns.take()
        if len(columns):
            yield columns.take()

    def _splits(self, file: LogFile) -> list[LogSplit]:
        # A snapshot's records need its header's timestamp, so it is read as a whole.
        if file.kind != FileKind.LOG or file.size_in_bytes <= self._split_bytes:
            return [LogSplit(file, 0, file.size_in_bytes)]
        index = Path(file.path).with_suffix(".index")
        index_bytes = index.read_bytes() if index.is_file() else b""
        ranges = split_ranges(map_file(file.path), index_bytes, self._split_bytes)
        return [LogSplit(file, start, end) for start, end in ranges]

    def _rows(self, split: LogSplit) -> Iterator[tuple[str, Row]]:
        origin = origin_of(split.file)
        decoder = RecordDecoder(origin, show_secrets=self._show_secrets)
        # Records which cannot be read are damage too, so looking for damage means to decode.
        decodes = not self._row_kinds.isdisjoint({"record", "damage"})
        for item in scan(map_file(split.file.path), origin, split.start, split.end):
            if isinstance(item, DamageRow):
                if "damage" in self._row_kinds:
                    yield "damage", item
                continue
            if "batch" in self._row_kinds:
                yield "batch", batch_row(item, origin)
            for row in decoder.rows(item) if decodes else ():
                kind = "damage" if isinstance(row, DamageRow) else "record"
                if kind in self._row_kinds:
                    yield kind, row


def arrow_schema(schema: StructType) -> Any:
    """The Arrow schema that Spark expects for rows of `schema`."""
    return pa.schema([(field.name, _ARROW_TYPES[type(field.dataType)]) for field in schema.fields])
