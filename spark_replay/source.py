"""The Spark data source `kraft_log`: log segments and snapshots as rows, decoded on the executors.

    spark.dataSource.register(KraftLogDataSource)
    spark.read.format("kraft_log").option("rows", "records").load("/var/lib/kafka/metadata")

Options: `path` (see `spark_replay.decode.sources`), `rows` (records, batches, damage, or all: one pass over the files
for the three of them), `split_bytes` and `show_secrets`. Rows travel to the JVM as Arrow batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.decode.sources import LogFile, find_log_files
from kquorum.spark_replay.decode.splits import DEFAULT_SPLIT_BYTES, LogSplit, read_split, splits_of
from kquorum.spark_replay.stream.reader import KraftLogStreamReader
from kquorum.spark_replay.tables.batches import BATCHES
from kquorum.spark_replay.tables.building.source_rows import SOURCE_ROWS
from kquorum.spark_replay.tables.damage import DAMAGE
from kquorum.spark_replay.tables.records import RECORDS

ROW_KINDS = {
    "records": frozenset({"record"}),
    "batches": frozenset({"batch"}),
    "damage": frozenset({"damage"}),
    "all": frozenset({"record", "batch", "damage"}),
}
_OF_ONE_KIND = {"records": RECORDS, "batches": BATCHES, "damage": DAMAGE}


class KraftLogDataSource(DataSource):  # type: ignore[misc]
    """Rows of a metadata log: of every kind in one schema, `SOURCE_ROWS`, or of one kind with its columns of
    that."""

    @classmethod
    def name(cls) -> str:
        return "kraft_log"

    def schema(self) -> StructType:
        of_one_kind = _OF_ONE_KIND.get(self._rows())
        if of_one_kind is None:
            return SOURCE_ROWS
        names = {"row_kind", *of_one_kind.fieldNames()}
        return StructType([field for field in SOURCE_ROWS.fields if field.name in names])

    def reader(self, schema: StructType) -> "KraftLogReader":
        options = self.options
        if "path" not in options:
            raise ValueError("option path is missing: the folder or file to read")
        return KraftLogReader(
            schema,
            find_log_files(Path(options["path"])),
            ROW_KINDS[self._rows()],
            split_bytes=int(options.get("split_bytes", DEFAULT_SPLIT_BYTES)),
            show_secrets=options.get("show_secrets", "false").lower() == "true",
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """See `spark_replay.stream.reader`."""
        return KraftLogStreamReader.of_options(schema, self.options, ROW_KINDS[self._rows()])

    def _rows(self) -> str:
        rows: str = self.options.get("rows", "records")
        if rows not in ROW_KINDS:
            raise ValueError(f"option rows is {rows!r}; it must be one of {', '.join(ROW_KINDS)}")
        return rows


@dataclass
class SplitPartition(InputPartition):  # type: ignore[misc]
    """A split as Spark sends it to an executor."""

    split: LogSplit


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

    def partitions(self) -> list[SplitPartition]:
        return [SplitPartition(split) for split in splits_of(self._files, self._split_bytes)]

    def read(self, partition: SplitPartition) -> Iterator[pa.RecordBatch]:
        schemas = dict.fromkeys(self._row_kinds, arrow_schema(self._schema))
        for _, batch in read_split(partition.split, schemas, show_secrets=self._show_secrets):
            yield batch
