"""Builds the tables of an audit: one pass over the files, then tables from tables, each written as Parquet.

The records are decoded once and written; the tables of the state are made from the written records, so that Spark
reads only the columns that each of them needs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_replay.audit_folder import (
    AuditedSource,
    AuditManifest,
    member_of_files,
    read_table,
    remove_manifest,
    write_manifest,
)
from spark_replay.bases import StateBase, state_bases
from spark_replay.sources import LogFile, find_log_files
from spark_replay.splits import DEFAULT_SPLIT_BYTES
from spark_replay.tables.acls_history import acls_history
from spark_replay.tables.audit_notes import audit_notes
from spark_replay.tables.brokers import brokers
from spark_replay.tables.brokers_history import broker_events, brokers_history
from spark_replay.tables.configs_history import configs_history
from spark_replay.tables.features_history import features_history
from spark_replay.tables.isr_changes import isr_changes
from spark_replay.tables.leader_changes import leader_changes
from spark_replay.tables.partition_history import partition_history
from spark_replay.tables.quorum_epochs import quorum_epochs
from spark_replay.tables.scanned import batches, damage, records
from spark_replay.tables.state import counted_records, state_records
from spark_replay.tables.topics import topics
from spark_replay.tables.topics_history import topics_history
from spark_replay.tables.voters_history import voters_history

Progress = Callable[[str], None]

STATE_COLUMNS = (
    *(
        "source",
        "file_kind",
        "offset",
        "leader_epoch",
        "batch_base_offset",
        "state_offset",
        "state_timestamp_ms",
        "record_type",
        "payload",
    ),
    *("topic_id", "topic_name", "partition_id", "broker_id"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What was read and how many rows each table got; `bases` say where the state of each source begins."""

    files: tuple[LogFile, ...]
    bases: tuple[StateBase, ...]
    rows: dict[str, int]


def build(
    spark: SparkSession,
    root: Path,
    out: Path,
    *,
    progress: Progress = lambda step: None,  # noqa: ARG005
    split_bytes: int = DEFAULT_SPLIT_BYTES,
) -> AuditResult:
    """Audit the log files found at `root` into one Parquet folder per table beneath `out`.

    `progress` is told each step before it is taken. Raises NoLogFound.
    """
    files = find_log_files(root)
    bases = state_bases(files)
    remove_manifest(out)
    tables = Tables(spark, out, progress)
    _write_scanned(tables, root, split_bytes)
    _write_state(tables, bases)
    write_manifest(out, _manifest(root, files, bases, tables))
    return AuditResult(files=files, bases=bases, rows=tables.rows)


def _manifest(
    root: Path, files: tuple[LogFile, ...], bases: tuple[StateBase, ...], tables: "Tables"
) -> AuditManifest:
    extents = _extents(tables["batches"])
    sources = tuple(
        AuditedSource(
            source=base.source,
            files=(of_source := tuple(file for file in files if file.source == base.source)),
            member=member_of_files(of_source),
            base=base,
            start_offset=extents.get(base.source, (None, None))[0],
            end_offset=extents.get(base.source, (None, None))[1],
        )
        for base in bases
    )
    return AuditManifest(
        inputs=(str(root),), made_ms=time.time_ns() // 1_000_000, sources=sources, rows=tables.rows
    )


def _extents(batches_table: DataFrame) -> dict[str, tuple[int, int]]:
    """First offset and end offset (exclusive) of each source's log."""
    log = batches_table.where(F.col("file_kind") == "log").groupBy("source")
    found = log.agg(F.min("base_offset").alias("first"), F.max("last_offset").alias("last")).collect()
    return {row["source"]: (row["first"], row["last"] + 1) for row in found}


class Tables:
    """The tables written so far, each read back with its schema."""

    def __init__(self, spark: SparkSession, out: Path, progress: Progress) -> None:
        self.spark = spark
        self.rows: dict[str, int] = {}
        self._out = out
        self._progress = progress

    def write(self, name: str, frame: DataFrame) -> DataFrame:
        """Write `frame` as table `name`, replacing one of an earlier audit, and give it back as written."""
        self._progress(name)
        path = self._out / name
        frame.write.mode("overwrite").parquet(str(path))
        # The footers of the files hold the count; a Spark job for each would be most of the time of a small audit.
        self.rows[name] = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))
        return read_table(self.spark, self._out, name)

    def __getitem__(self, name: str) -> DataFrame:
        assert name in self.rows, f"{name} is not written yet"
        return read_table(self.spark, self._out, name)


def _write_scanned(tables: Tables, root: Path, split_bytes: int) -> None:
    reader = (
        tables.spark.read.format("kraft_log").option("rows", "all").option("split_bytes", str(split_bytes))
    )
    rows = reader.load(str(root.resolve())).persist(StorageLevel.DISK_ONLY)
    try:
        tables.write("records", records(rows))
        tables.write("batches", batches(rows))
        tables.write("damage", damage(rows, tables["batches"]))
    finally:
        rows.unpersist()


def _write_state(tables: Tables, bases: tuple[StateBase, ...]) -> None:
    epochs = tables.write("quorum_epochs", quorum_epochs(tables["records"]))
    tables.write("audit_notes", audit_notes(tables["records"], epochs))
    counted = counted_records(tables["records"], bases)
    tables.write("voters_history", voters_history(counted))
    # Every table below reads these records several times over, and most of a log is NoOps, which none of them reads.
    state = state_records(tables["records"], bases).where(
        ~F.col("is_control") & (F.col("record_type") != "NoOpRecord")
    )
    state = state.select(*STATE_COLUMNS).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        tables.write("features_history", features_history(state, counted))
        for name, make in _TABLES_OF_STATE.items():
            tables.write(name, make(state))
        history = tables["partition_history"]
        tables.write("leader_changes", leader_changes(history, epochs, broker_events(state)))
        tables.write("isr_changes", isr_changes(history, epochs))
    finally:
        state.unpersist()


_TABLES_OF_STATE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "brokers": brokers,
    "brokers_history": brokers_history,
    "topics": topics,
    "topics_history": topics_history,
    "partition_history": partition_history,
    "configs_history": configs_history,
    "acls_history": acls_history,
}
