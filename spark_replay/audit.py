"""Builds the tables of an audit: one pass over the files, then tables from tables, each written as Parquet.

The executors decode the files once, and write `records`, `batches` and `damage` as they do. In a folder of its own
(`spark_replay.staging`) they leave what the other tables are made from, so that Spark need not read all records again.
Which tables there are says `tables.building.registry`.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_folder import read_table
from kquorum.spark_replay.audit_manifest import (
    AuditedSource,
    AuditManifest,
    member_of_files,
    remove_manifest,
    shown_files,
    write_manifest,
)
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.spark_replay.decode.bases import StateBase, state_bases
from kquorum.spark_replay.decode.sources import LogFile, find_log_files_of
from kquorum.spark_replay.decode.split_facts import STATEFUL, LogBounds, SplitFacts, extents, gaps_between
from kquorum.spark_replay.decode.splits import DEFAULT_SPLIT_BYTES
from kquorum.spark_replay.session import plans_for
from kquorum.spark_replay.staging import STAGED
from kquorum.spark_replay.table_files import Destination, hadoop_path, write_empty, write_tables
from kquorum.spark_replay.tables.building.audit_table import AuditTable, TableInputs
from kquorum.spark_replay.tables.building.registry import SCANNED, TABLES
from kquorum.spark_replay.tables.building.state import (
    counted_records,
    uncommitted_transactions,
    without_uncommitted,
)

Progress = Callable[[str], None]

STAGING: Final = "_staging"
_CHANGES: Final = "_changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What was read, and the number of rows of each table. `bases` has the start of each source's state. `record_types`
    counts the records of all files by type, `bounds` has the offsets that each source's segments cover, and
    `unknown_records` counts each source's unreadable records."""

    files: tuple[LogFile, ...]
    bases: tuple[StateBase, ...]
    rows: dict[str, int]
    record_types: Mapping[str, int] = field(default_factory=dict)
    unknown_records: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, LogBounds] = field(default_factory=dict)


def build(
    spark: SparkSession,
    roots: Path | Sequence[Path],
    out: Path,
    *,
    progress: Progress = lambda step: None,  # noqa: ARG005
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    inputs: Sequence[str] | None = None,
) -> AuditResult:
    """Audit the log files found at `roots` into one Parquet folder per table beneath `out`.

    `progress` gets the name of each step before it begins; `inputs` are the roots as the user gave them.
    Raises NoLogFound.
    """
    paths = [roots] if isinstance(roots, Path) else list(roots)
    files = find_log_files_of(paths)
    bases = state_bases(files)
    # First of all: without a manifest no reader takes half-written tables for an audit.
    remove_manifest(out)
    # What `audit data` added to an earlier audit goes with it.
    for name in DATA_TABLES:
        shutil.rmtree(out / name, ignore_errors=True)
    tables = Tables(spark, out, progress)
    staging = out / STAGING
    try:
        splits = _write_scanned(tables, files, bases, staging, split_bytes)
        write_state(tables, bases, Staged(spark, staging))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    # Last of all, when every table is whole (see `remove_manifest` above).
    write_manifest(out, _manifest(inputs or [str(path) for path in paths], files, bases, splits, tables.rows))
    return _result(files, bases, splits, tables.rows)


def _result(
    files: tuple[LogFile, ...],
    bases: tuple[StateBase, ...],
    splits: Iterable[SplitFacts],
    rows: dict[str, int],
) -> AuditResult:
    types, unknown, bounds = Counter[str](), Counter[str](), dict[str, LogBounds]()
    for split in splits:
        types.update(split.types)
        unknown[split.file.source] += split.unknown_records
        if split.bounds is not None:
            bounds[split.file.source] = split.bounds.with_others(bounds.get(split.file.source))
    return AuditResult(
        files=files, bases=bases, rows=rows, record_types=types, unknown_records=unknown, bounds=bounds
    )


def _manifest(
    inputs: Sequence[str],
    files: tuple[LogFile, ...],
    bases: tuple[StateBase, ...],
    splits: Iterable[SplitFacts],
    rows: dict[str, int],
) -> AuditManifest:
    found = extents(splits)
    sources = tuple(
        AuditedSource(
            source=base.source,
            files=(of_source := tuple(file for file in files if file.source == base.source)),
            member=member_of_files(of_source),
            base=base,
            start_offset=found.get(base.source, (None, None))[0],
            end_offset=found.get(base.source, (None, None))[1],
        )
        for base in bases
    )
    return AuditManifest(
        inputs=tuple(inputs), made_ms=time.time_ns() // 1_000_000, sources=sources, rows=rows
    )


class Tables:
    """The tables written so far, each read back with its schema."""

    def __init__(self, spark: SparkSession, out: Path, progress: Progress) -> None:
        self.spark = spark
        self.rows: dict[str, int] = {}
        self.stateful_types: set[str] | None = None
        self.out = out
        self.progress = progress

    def write(self, name: str, table: AuditTable, inputs: TableInputs) -> None:
        """Write the table `name`, replacing one of an earlier audit.

        Where it is known that there are no records of the types that it is made from, it has no rows.
        """
        self.progress(name)
        path = self.out / name
        if table.made_from and not inputs.may_have(table.made_from):
            write_empty(path, table.schema)
            self.rows[name] = 0
        elif table.write is not None:
            self.rows[name] = table.write(inputs, path)
        else:
            assert table.build is not None, f"the pass over the files writes {name}"
            table.build(inputs).write.mode("overwrite").parquet(str(path))
            # The files' footers hold the count. A Spark job for each would be most of the time of a small audit.
            self.rows[name] = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))

    def __getitem__(self, name: str) -> DataFrame:
        assert name in self.rows, f"{name} is not written yet"
        return read_table(self.spark, self.out, name)


class Staged:
    """What the pass over the files left for the tables of the state."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def rows(self, name: str) -> int:
        return sum(pq.read_metadata(file).num_rows for file in shown_files(self._folder / name))

    def __getitem__(self, name: str) -> DataFrame:
        return self._spark.read.schema(STAGED[name]).parquet(hadoop_path(self._folder / name))


def _write_scanned(
    tables: Tables, files: tuple[LogFile, ...], bases: tuple[StateBase, ...], staging: Path, split_bytes: int
) -> list[SplitFacts]:
    tables.progress("records")
    folders = {kind: tables.out / name for kind, name in SCANNED.items()}
    destination = Destination(folders=folders, staging=staging)
    splits = write_tables(tables.spark, files, destination, bases, split_bytes=split_bytes)
    tables.stateful_types = {kind for split in splits for kind in split.stateful_types}
    for kind, name in SCANNED.items():
        tables.rows[name] = sum(split.rows[kind] for split in splits)
    tables.rows["damage"] += sum(1 for _ in gaps_between(splits))
    return splits


def write_state(tables: Tables, bases: tuple[StateBase, ...], staged: Staged) -> None:
    """Write every table that the pass over the files does not write, from what that pass left (`staged`)."""
    stateful_records = staged[STATEFUL].persist(StorageLevel.MEMORY_AND_DISK)
    inputs = _inputs(tables, bases, staged, stateful_records)
    try:
        # Two passes, as the tables of the partitions may have a thousand times the rows of the others: each pass has as
        # many shuffle partitions as its rows need.
        with plans_for(tables.spark, staged.rows(STATEFUL)):
            _write_all(tables, inputs, reads_partitions=False)
        with plans_for(tables.spark, inputs.partition_records):
            _write_all(tables, inputs, reads_partitions=True)
    finally:
        shutil.rmtree(inputs.staging, ignore_errors=True)
        stateful_records.unpersist()


def _inputs(
    tables: Tables, bases: tuple[StateBase, ...], staged: Staged, stateful_records: DataFrame
) -> TableInputs:
    aborted = uncommitted_transactions(stateful_records, tables["damage"])
    state = _state(stateful_records, aborted, bases)
    partitions = _state(staged["partitions"].withColumn("payload", F.lit("")), aborted, bases)
    return TableInputs(
        stateful_records=stateful_records,
        aborted_transactions=aborted,
        counted_records=counted_records(stateful_records, bases),
        state=state,
        partition_state=state.unionByName(partitions, allowMissingColumns=True),
        partition_records=staged.rows("partitions"),
        epoch_spans=staged["epochs"],
        record_types=tables.stateful_types,
        table=tables.__getitem__,
        staging=tables.out / _CHANGES,
    )


def _write_all(tables: Tables, inputs: TableInputs, *, reads_partitions: bool) -> None:
    for name, table in TABLES.items():
        if table.row_kind is None and table.reads_partitions == reads_partitions:
            tables.write(name, table, inputs)


def _state(records: DataFrame, aborted_transactions: DataFrame, bases: tuple[StateBase, ...]) -> DataFrame:
    """Those of `records` to be replayed, without aborted transactions. Most of a log is NoOps, which no table of the
    state reads."""
    kept = records.where(F.col("record_type") != "NoOpRecord")
    kept = kept.where(~F.col("is_control")) if "is_control" in records.columns else kept
    return without_uncommitted(counted_records(kept, bases), aborted_transactions)
