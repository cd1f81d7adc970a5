"""A piece of a log file written straight to Parquet files of the tables `records`, `batches` and `damage`.

Bytes to Parquet without a way through the JVM, where each row would be made twice over. For folders that every executor
sees; elsewhere the data source is the way. Spark reads the files as its own: they carry its schema, with the comments.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_replay.schemas import BATCHES, DAMAGE, RECORDS
from spark_replay.source import LogSplit, arrow_schema, read_split, splits_of
from spark_replay.sources import LogFile
from spark_replay.splits import DEFAULT_SPLIT_BYTES

SCHEMAS: Final[Mapping[str, StructType]] = {"record": RECORDS, "batch": BATCHES, "damage": DAMAGE}
_ROW_METADATA: Final = "org.apache.spark.sql.parquet.row.metadata"
_ROWS_PER_GROUP: Final = 65_536


class TableFile:
    """One Parquet file, which has its name only once it is whole; no file for no rows."""

    def __init__(self, path: Path, schema: StructType) -> None:
        self._path = path
        # Spark passes over names that begin with a dot.
        self._unfinished = path.with_name(f".{path.name}.unfinished")
        self._schema = arrow_schema(schema).with_metadata({_ROW_METADATA: schema.json()})
        self._writer: Any = None
        self._batches: list[Any] = []
        self._waiting = 0
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
            if kind is None:
                self._unfinished.replace(self._path)
            else:
                self._unfinished.unlink(missing_ok=True)
        elif kind is None:
            self._path.unlink(missing_ok=True)

    def add(self, batch: Any) -> None:
        """A `pyarrow.RecordBatch` of the schema's columns."""
        self._batches.append(batch)
        self._waiting += batch.num_rows
        self.rows += batch.num_rows
        if self._waiting >= _ROWS_PER_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        if not self._batches:
            return
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._unfinished, self._schema, compression="zstd")
        table = pa.Table.from_batches(self._batches).replace_schema_metadata(self._schema.metadata)
        self._writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        self._batches, self._waiting = [], 0


def write_tables(
    spark: SparkSession,
    files: Sequence[LogFile],
    folders: Mapping[str, Path],
    *,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    show_secrets: bool = False,
) -> dict[str, int]:
    """Write the rows of the files into `folders`, by kind of row (record, batch, damage), and answer how many. What the
    folders held is gone. The executors decode and write; only counts come to the driver."""
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    splits = list(enumerate(splits_of(files, split_bytes)))
    tasks = spark.sparkContext.parallelize(splits, max(1, len(splits)))
    counts = tasks.map(
        lambda item: write_split(item[1], item[0], folders, show_secrets=show_secrets)
    ).collect()
    return {kind: sum(count[kind] for count in counts) for kind in folders}


def write_split(
    split: LogSplit, number: int, folders: Mapping[str, Path], *, show_secrets: bool = False
) -> dict[str, int]:
    """Write the rows of a split into `folders`, by kind of row, as the files with this number; answers how many.

    Written again, the files are replaced: a task that Spark runs twice leaves the rows once.
    """
    schemas = {kind: arrow_schema(SCHEMAS[kind]) for kind in folders}
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context(TableFile(folder / f"part-{number:05d}.zstd.parquet", SCHEMAS[kind]))
            for kind, folder in folders.items()
        }
        for kind, batch in read_split(split, schemas, show_secrets=show_secrets):
            files[kind].add(batch)
    return {kind: table_file.rows for kind, table_file in files.items()}
