"""Builds the tables of an audit: one pass over the files, then tables from tables, each written as Parquet.

The executors decode the files once, and write `records`, `batches` and `damage` as they do. What the tables of the
state are made from they leave in a folder of its own (`spark_replay.staging`), so that nobody goes through all records
again.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_folder import (
    AuditedSource,
    AuditManifest,
    hadoop_path,
    member_of_files,
    read_table,
    remove_manifest,
    shown_files,
    write_manifest,
)
from kquorum.spark_replay.bases import StateBase, state_bases
from kquorum.spark_replay.schemas import TABLES
from kquorum.spark_replay.session import plans_for
from kquorum.spark_replay.several_sources import find_log_files_of
from kquorum.spark_replay.sources import LogFile
from kquorum.spark_replay.split_facts import LogBounds, SplitFacts, extents, gaps_between
from kquorum.spark_replay.splits import DEFAULT_SPLIT_BYTES
from kquorum.spark_replay.staging import STAGED, TOLD
from kquorum.spark_replay.table_files import Destination, write_empty, write_tables
from kquorum.spark_replay.tables.acls_history import acls_history
from kquorum.spark_replay.tables.audit_notes import audit_notes
from kquorum.spark_replay.tables.brokers import brokers
from kquorum.spark_replay.tables.brokers_history import broker_events, brokers_history
from kquorum.spark_replay.tables.configs_history import configs_history
from kquorum.spark_replay.tables.features_history import features_history
from kquorum.spark_replay.tables.isr_changes import isr_changes
from kquorum.spark_replay.tables.leader_changes import leader_changes
from kquorum.spark_replay.tables.partition_columns import CHANGES, CLEARED
from kquorum.spark_replay.tables.partition_events import partition_events
from kquorum.spark_replay.tables.partition_history import (
    SMALL_EVENTS,
    PartitionFolders,
    write_partition_history,
)
from kquorum.spark_replay.tables.quorum_epochs import quorum_epochs
from kquorum.spark_replay.tables.state import counted_records, uncommitted_transactions, without_uncommitted
from kquorum.spark_replay.tables.topics import topics
from kquorum.spark_replay.tables.topics_history import topics_history
from kquorum.spark_replay.tables.voters_history import voters_history

Progress = Callable[[str], None]

STAGING: Final = "_staging"
_CHANGES: Final = "_changes"
_SCANNED: Final = {"record": "records", "batch": "batches", "damage": "damage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What was read and how many rows each table got; `bases` say where the state of each source begins.

    Of all files `record_types` counts the records by type; of each source's segments `bounds` say where they reach;
    `unknown_records` counts those of each source that could not be read.
    """

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

    `progress` is told each step before it is taken; `inputs` are the roots as the user gave them. Raises NoLogFound.
    """
    paths = [roots] if isinstance(roots, Path) else list(roots)
    files = find_log_files_of(paths)
    bases = state_bases(files)
    remove_manifest(out)
    tables = Tables(spark, out, progress)
    staging = out / STAGING
    try:
        splits = _write_scanned(tables, files, bases, staging, split_bytes)
        write_state(tables, bases, Staged(spark, staging))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
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
        self.told_types: set[str] | None = None
        self.out = out
        self.progress = progress

    def write(self, name: str, frame: DataFrame, *needed_types: str) -> DataFrame:
        """Write `frame` as table `name`, replacing one of an earlier audit, and give it back as written.

        Where it is known that there are no records of any of the types that it is made from, it has no rows.
        """
        self.progress(name)
        path = self.out / name
        if needed_types and self.told_types is not None and not self.told_types & set(needed_types):
            write_empty(path, TABLES[name])
            self.rows[name] = 0
            return read_table(self.spark, self.out, name)
        frame.write.mode("overwrite").parquet(str(path))
        # The footers of the files hold the count; a Spark job for each would be most of the time of a small audit.
        self.rows[name] = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))
        return read_table(self.spark, self.out, name)

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
    folders = {kind: tables.out / name for kind, name in _SCANNED.items()}
    destination = Destination(folders=folders, staging=staging)
    splits = write_tables(tables.spark, files, destination, bases, split_bytes=split_bytes)
    tables.told_types = {kind for split in splits for kind in split.told}
    for kind, name in _SCANNED.items():
        tables.rows[name] = sum(split.rows[kind] for split in splits)
    tables.rows["damage"] += sum(1 for _ in gaps_between(splits))
    return splits


def write_state(tables: Tables, bases: tuple[StateBase, ...], staged: Staged | None = None) -> None:
    """Write every table but `records`, `batches` and `damage`. Without what a pass over the files left for this
    (`staged`) they are made from the table `records`."""
    spans = None if staged is None else staged["epochs"]
    told = (_told(tables["records"]) if staged is None else staged["told"]).persist(
        StorageLevel.MEMORY_AND_DISK
    )
    try:
        gone = uncommitted_transactions(told, tables["damage"])
        state = _state(told, gone, bases)
        with nullcontext() if staged is None else plans_for(tables.spark, staged.rows("told")):
            epochs = quorum_epochs(tables["records"] if staged is None else told, spans)
            tables.write("quorum_epochs", epochs)
            _write_from_told(tables, told, gone, state, bases)
        if staged is None:
            _write_partitions(tables, state, state, on_driver=False)
            return
        partitions = _state(staged["partitions"].withColumn("payload", F.lit("")), gone, bases)
        rows = staged.rows("partitions")
        with plans_for(tables.spark, rows):
            of_all = state.unionByName(partitions, allowMissingColumns=True)
            _write_partitions(tables, of_all, state, on_driver=rows <= SMALL_EVENTS)
    finally:
        told.unpersist()


def _told(records: DataFrame) -> DataFrame:
    """The records which say something: most of a log is NoOps, of which only those with a note do."""
    is_told = (F.col("record_type") != "NoOpRecord") | F.col("payload").contains('"audit_note"')
    return records.where(is_told).select(*TOLD.fieldNames())


def _write_from_told(
    tables: Tables,
    told: DataFrame,
    gone: DataFrame,
    state: DataFrame,
    bases: tuple[StateBase, ...],
) -> None:
    """The tables that no record of a partition is needed for."""
    counted = counted_records(told, bases)
    tables.write("audit_notes", audit_notes(told, tables["quorum_epochs"], gone), "NoOpRecord")
    tables.write("voters_history", voters_history(counted))
    tables.write("features_history", features_history(state, counted))
    tables.write("brokers", brokers(state))
    tables.write("brokers_history", brokers_history(state))
    tables.write("configs_history", configs_history(state), "ConfigRecord")
    tables.write("acls_history", acls_history(state), "AccessControlEntryRecord")


def _write_partitions(tables: Tables, state: DataFrame, told: DataFrame, *, on_driver: bool) -> None:
    """The tables of topics and partitions; `told` is the state without the records of partitions."""
    tables.write("topics", topics(state))
    tables.write("topics_history", topics_history(state))
    tables.progress("partition_history")
    has_clearings = tables.told_types is None or CLEARED in tables.told_types
    events = partition_events(state, told, has_clearings=has_clearings)
    folders = PartitionFolders(history=tables.out / "partition_history", staging=tables.out / _CHANGES)
    try:
        tables.rows["partition_history"] = write_partition_history(events, folders, on_driver=on_driver)
        changes = tables.spark.read.schema(CHANGES).parquet(hadoop_path(folders.changes))
        epochs = tables["quorum_epochs"]
        tables.write("leader_changes", leader_changes(changes, epochs, broker_events(told)))
        tables.write("isr_changes", isr_changes(changes, epochs))
    finally:
        shutil.rmtree(folders.staging, ignore_errors=True)


def _state(records: DataFrame, gone: DataFrame, bases: tuple[StateBase, ...]) -> DataFrame:
    """Those of `records` to be replayed, without what is `gone` with its transaction. Most of a log is NoOps, which no
    table of the state reads."""
    kept = records.where(F.col("record_type") != "NoOpRecord")
    kept = kept.where(~F.col("is_control")) if "is_control" in records.columns else kept
    return without_uncommitted(counted_records(kept, bases), gone)
