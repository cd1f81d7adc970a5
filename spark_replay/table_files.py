"""A piece of a log file written straight to Parquet files of the tables `records`, `batches` and `damage`.

Bytes to Parquet without a way through the JVM, where each row would be made twice over. For folders that every executor
sees; elsewhere the data source is the way. Spark reads the files as its own: they carry its schema, with the comments.
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kquorum.private_files import replacing
from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.columns import damage_columns, record_batch
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import LogFile
from kquorum.spark_replay.decode.split_facts import FactsOfSplit, SplitFacts, gaps_between
from kquorum.spark_replay.decode.splits import DEFAULT_SPLIT_BYTES, LogSplit, read_split, splits_of
from kquorum.spark_replay.staging import STAGED, counted_from, epoch_rows, staged
from kquorum.spark_replay.tables.batches import BATCHES
from kquorum.spark_replay.tables.damage import DAMAGE
from kquorum.spark_replay.tables.records import RECORDS

SCHEMAS: Final[Mapping[str, StructType]] = {"record": RECORDS, "batch": BATCHES, "damage": DAMAGE}
PARTITIONED: Final = ("record", "batch")
# In a folder of its source a row does not repeat it.
WRITTEN: Final[Mapping[str, StructType]] = {
    kind: StructType([each for each in schema if kind not in PARTITIONED or each.name != "source"])
    for kind, schema in SCHEMAS.items()
}
# What the driver decodes sooner than an executor has started.
SMALL_BYTES: Final = 4 * 1024 * 1024
_TO_ESCAPE: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
_ROW_METADATA: Final = "org.apache.spark.sql.parquet.row.metadata"
_ROWS_PER_GROUP: Final = 65_536
_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


def hadoop_path(path: Path) -> str:
    """For Spark's readers, which take a path for a pattern: `q[1]` would be the folder `q1`. The writers do not."""
    return _GLOB.sub(r"\\\1", str(path))


class TableFile:
    """One Parquet file, which has its name only once it is whole; no file for no rows.

    It carries `table_schema`. `schema` may lack columns of it whose values are in the names of its folders.
    """

    def __init__(self, path: Path, schema: StructType, table_schema: StructType | None = None) -> None:
        self._path = path
        self._stack = ExitStack()
        self._schema = arrow_schema(schema).with_metadata({_ROW_METADATA: (table_schema or schema).json()})
        self._writer: Any = None
        self._batches: list[Any] = []
        self._waiting = 0
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
            self._stack.__exit__(kind, error, trace)
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
            file = self._stack.enter_context(replacing(self._path))
            self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        table = pa.Table.from_batches(self._batches).replace_schema_metadata(self._schema.metadata)
        self._writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        self._batches, self._waiting = [], 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a pass over the files leaves its rows: `folders` by kind of row, and `staging` for what it stages, if any.

    Folders of records and batches get a folder for each source, as Hive names them (`source=...`).
    """

    folders: Mapping[str, Path]
    staging: Path | None = None

    def emptied(self) -> None:
        """Without what an earlier audit left."""
        for folder in self.all_folders():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def all_folders(self) -> list[Path]:
        staged = [] if self.staging is None else [self.staging / name for name in STAGED]
        return [*self.folders.values(), *staged]

    def opened(self, stack: ExitStack, source: str, name: str) -> dict[str, TableFile]:
        """The files called `name` of one source, by kind of row."""
        files = {
            kind: TableFile(folder / partition_of(kind, source) / name, WRITTEN[kind], SCHEMAS[kind])
            for kind, folder in self.folders.items()
        }
        if self.staging is not None:
            files |= {kind: TableFile(self.staging / kind / name, schema) for kind, schema in STAGED.items()}
        return {kind: stack.enter_context(file) for kind, file in files.items()}


def partition_of(kind: str, source: str) -> str:
    """The folder of a source's rows in that of the table, escaped as Hive does; none where rows are of all sources."""
    if kind not in PARTITIONED:
        return ""
    return "source=" + _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", source)


def write_tables(
    spark: SparkSession,
    files: Sequence[LogFile],
    destination: Destination,
    bases: Sequence[StateBase] = (),
    *,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    show_secrets: bool = False,
) -> list[SplitFacts]:
    """Write the rows of the files, gaps between batches among the damage. What was there before is gone.

    The executors decode and write; only facts of each split come to the driver, which decodes small logs itself: a
    worker takes longer to start. Staged are the records that count by `bases`.
    """
    destination.emptied()
    base_of = {base.source: base for base in bases}
    tasks = [
        SplitTask(
            number=number,
            split=split,
            base=base_of.get(split.file.source),
            destination=destination,
            show_secrets=show_secrets,
        )
        for number, split in enumerate(splits_of(files, split_bytes))
    ]
    if sum(file.size_in_bytes for file in files) <= SMALL_BYTES:
        facts = [write_split(task) for task in tasks]
    else:
        facts = spark.sparkContext.parallelize(tasks, max(1, len(tasks))).map(write_split).collect()
    if "damage" in destination.folders:
        _write_gaps(destination.folders["damage"], gaps_between(facts))
    for kind, folder in destination.folders.items():
        if not any(folder.iterdir()):
            write_empty(folder, SCHEMAS[kind])
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTask:
    """The work of one task. `number` goes into the names of its files; `base` selects the records that count."""

    number: int
    split: LogSplit
    base: StateBase | None
    destination: Destination
    show_secrets: bool = False


def write_split(task: SplitTask) -> SplitFacts:
    """Write the rows of a split, as the files with its number.

    Written again, the files are replaced: a task that Spark runs twice leaves the rows once.
    """
    file, destination = task.split.file, task.destination
    facts = FactsOfSplit(file, task.split.start)
    schemas = {kind: arrow_schema(WRITTEN[kind]) for kind in destination.folders}
    from_offset = None if task.base is None else counted_from(file, task.base)
    with ExitStack() as stack:
        files = destination.opened(stack, file.source, f"part-{task.number:05d}.zstd.parquet")
        for kind, batch in read_split(task.split, schemas, show_secrets=task.show_secrets):
            files[kind].add(batch)
            facts.add(kind, batch)
            if kind == "record" and destination.staging is not None:
                for staged_kind, rows in staged(batch, file.source, str(file.kind), from_offset):
                    files[staged_kind].add(rows)
                    facts.add(staged_kind, rows)
        if "damage" in files and (gaps := facts.gaps()):
            files["damage"].add(damage_rows(file, gaps))
        if destination.staging is not None and facts.epochs:
            files["epochs"].add(epoch_rows(file.source, facts.epochs))
    return facts.finished({kind: files[kind].rows for kind in destination.folders})


def _write_gaps(folder: Path, gaps: Iterable[tuple[LogFile, DamageRow]]) -> None:
    with TableFile(folder / "part-between-splits.zstd.parquet", DAMAGE) as table_file:
        for file, gap in gaps:
            table_file.add(damage_rows(file, [gap]))


def damage_rows(file: LogFile, rows: Sequence[DamageRow]) -> Any:
    """A `pyarrow.RecordBatch` of the table `damage`, of places in one file."""
    fixed = {"source": file.source, "file_kind": str(file.kind)}
    return record_batch(arrow_schema(DAMAGE), {**fixed, **damage_columns(rows)}, len(rows))


def write_empty(folder: Path, schema: StructType) -> None:
    """A table without rows, replacing the old one: its file gives the columns to readers that have no schema."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arrow = arrow_schema(schema).with_metadata({_ROW_METADATA: schema.json()})
    pq.write_table(arrow.empty_table(), folder / "part-00000.zstd.parquet")
