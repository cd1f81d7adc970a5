"""The Spark data source `kraft_log`: log segments and snapshots as rows, decoded on the executors.

    spark.dataSource.register(KraftLogDataSource)
    spark.read.format("kraft_log").option("rows", "records").load("/var/lib/kafka/metadata")

Options: `path` (see `spark_replay.sources`), `rows` (records, batches, damage, or all: one pass over the files for
the three of them), `split_bytes`, `show_secrets`, and `listing` in place of `path`, so that several reads see the same
bytes of a log that grows meanwhile. Rows travel to the JVM as Arrow batches.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from spark_replay.arrow_types import arrow_schema as arrow_schema
from spark_replay.decode import origin_of, snapshot_timestamp_ms
from spark_replay.files import is_regular, map_file, read_listed
from spark_replay.log_columns import LogColumns
from spark_replay.runs import scan_runs
from spark_replay.schemas import BATCHES, DAMAGE, RECORDS, SOURCE_ROWS
from spark_replay.sources import FileKind, LogFile, find_log_files
from spark_replay.splits import DEFAULT_SPLIT_BYTES, split_ranges
from wire.batch_runs import BatchRun, one_by_one_if_compressed

ROW_KINDS = {
    "records": frozenset({"record"}),
    "batches": frozenset({"batch"}),
    "damage": frozenset({"damage"}),
    "all": frozenset({"record", "batch", "damage"}),
}
_OF_ONE_KIND = {"records": RECORDS, "batches": BATCHES, "damage": DAMAGE}


@dataclass
class LogSplit(InputPartition):  # type: ignore[misc]
    """A piece of one file: the batches which begin in [start, end)."""

    file: LogFile
    start: int
    end: int


class KraftLogDataSource(DataSource):  # type: ignore[misc]
    """Rows of a metadata log: of every kind in one schema, `schemas.SOURCE_ROWS`, or of one kind with its columns of
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
        if "listing" in options:
            files = files_of_listing(options["listing"])
        elif "path" in options:
            files = find_log_files(Path(options["path"]))
        else:
            raise ValueError("option path is missing: the folder or file to read")
        return KraftLogReader(
            schema,
            files,
            ROW_KINDS[self._rows()],
            split_bytes=int(options.get("split_bytes", DEFAULT_SPLIT_BYTES)),
            show_secrets=options.get("show_secrets", "false").lower() == "true",
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """See `spark_replay.stream.reader`."""
        from spark_replay.stream.reader import KraftLogStreamReader  # that module builds on this one

        return KraftLogStreamReader.of_options(schema, self.options, ROW_KINDS[self._rows()])

    def _rows(self) -> str:
        rows: str = self.options.get("rows", "records")
        if rows not in ROW_KINDS:
            raise ValueError(f"option rows is {rows!r}; it must be one of {', '.join(ROW_KINDS)}")
        return rows


def listing_of(files: Iterable[LogFile]) -> str:
    """The option `listing` for these files, each as long as it was when it was found."""
    return json.dumps([asdict(file) for file in files])


def files_of_listing(listing: str) -> tuple[LogFile, ...]:
    return tuple(LogFile.from_json(file) for file in json.loads(listing))


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
        return splits_of(self._files, self._split_bytes)

    def read(self, partition: LogSplit) -> Iterator[pa.RecordBatch]:
        schemas = dict.fromkeys(self._row_kinds, arrow_schema(self._schema))
        for _, batch in read_split(partition, schemas, show_secrets=self._show_secrets):
            yield batch


def splits_of(files: Iterable[LogFile], split_bytes: int) -> list[LogSplit]:
    """Pieces of about `split_bytes` of each file."""
    return [split for file in files for split in _splits(file, split_bytes)]


def _splits(file: LogFile, split_bytes: int) -> list[LogSplit]:
    if file.size_in_bytes <= split_bytes:
        return [LogSplit(file, 0, file.size_in_bytes)]
    index = Path(file.path).with_suffix(".index")
    index_bytes = read_listed(index) if file.kind is FileKind.LOG and is_regular(index) else b""
    ranges = split_ranges(map_file(file.path)[: file.size_in_bytes], index_bytes, split_bytes)
    return [LogSplit(file, start, end) for start, end in ranges]


def read_split(
    split: LogSplit, schemas: Mapping[str, Any], *, show_secrets: bool
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a split, of the kinds that `schemas` has Arrow schemas for, each batch with its kind."""
    file = split.file
    origin, view = origin_of(file), map_file(file.path)[: file.size_in_bytes]
    in_snapshot = file.kind is FileKind.SNAPSHOT and split.start > 0
    columns = LogColumns(
        schemas,
        origin,
        fixed={"source": file.source, "file_kind": str(file.kind)},
        show_secrets=show_secrets,
        snapshot_timestamp_ms=snapshot_timestamp_ms(view) if in_snapshot else None,
    )
    for item in scan_runs(view, origin, split.start, split.end):
        for piece in one_by_one_if_compressed(item) if isinstance(item, BatchRun) else (item,):
            columns.add(piece)
            if columns.is_full:
                yield from columns.take()
    yield from columns.take()
