"""Builds the tables of the partitions' logs: one pass over the files of each partition, in tasks of Spark.

Each task writes the Parquet files of its partitions itself, as `spark_replay.table_files` does for the metadata log, so
that no row passes through the JVM. Only the numbers of rows come to the driver.
"""

import heapq
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.audit_manifest import (
    AuditManifest,
    NoAudit,
    is_audit,
    read_manifest,
    write_manifest,
)
from kquorum.spark_replay.data.data_table import Row
from kquorum.spark_replay.data.log_dirs import LogDir, PartitionFolder
from kquorum.spark_replay.data.reading import DataBatch, read_segment
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.spark_replay.table_files import SMALL_BYTES, TableFile, write_empty

_ROWS_A_BATCH = 8192
UNFINISHED = ".data-unfinished"
_TASKS_A_CORE = 2
_BYTES_A_TASK = 64 * 1024 * 1024
_DAMAGED = "damaged places"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAudit:
    """What was read, the number of rows of each table, and of damaged places in segments."""

    log_dirs: tuple[LogDir, ...]
    rows: dict[str, int]
    damaged_places: int


def build_data(
    spark: SparkSession,
    log_dirs: Sequence[LogDir],
    out: Path,
    *,
    progress: Progress = lambda done, total: None,  # noqa: ARG005
) -> DataAudit:
    """Write the tables into `out`, beside the tables of a metadata log where `out` is a finished audit of one.

    `progress` gets how many of how many partitions are done. Raises OSError for files that cannot be read, and NoAudit
    for an audit of another version.
    """
    manifest = read_manifest(out) if is_audit(out) else _empty_manifest(log_dirs)
    if manifest.table_format != "parquet":
        raise NoAudit(
            f"{out} has {manifest.table_format} tables, and those of partitions are Parquet: name another folder"
        )
    # Finished tables are replaced at the end, so that a run that is ended in between leaves the audit as it was.
    unfinished = out / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    for name in DATA_TABLES:
        (unfinished / name).mkdir(parents=True)
    rows = Counter[str]()
    tasks = _tasks(spark, log_dirs, unfinished)
    total = sum(len(task.folders) for task in tasks)
    if sum(map(_size_of_task, tasks)) <= SMALL_BYTES:
        done_tasks: Iterable[dict[str, int]] = map(write_partitions, tasks)
    else:
        jobs = spark.sparkContext.parallelize(tasks, max(1, len(tasks))).map(write_partitions)
        done_tasks = jobs.toLocalIterator(prefetchPartitions=True)
    done = 0
    for task, counts in zip(tasks, done_tasks, strict=True):
        rows.update(counts)
        done += len(task.folders)
        progress(done, total)
    for name, table in DATA_TABLES.items():
        if table.of_log_dir is not None:
            path = unfinished / name / "part-log-dirs.zstd.parquet"
            found = (row for log_dir in log_dirs for row in table.of_log_dir(log_dir))
            with TableFile(path, table.schema) as file:
                _add(file, name, found)
            rows[name] += file.rows
        if not any((unfinished / name).iterdir()):
            write_empty(unfinished / name, table.schema)
    for name in DATA_TABLES:
        shutil.rmtree(out / name, ignore_errors=True)
        (unfinished / name).rename(out / name)
    unfinished.rmdir()
    whole = {name: rows[name] for name in DATA_TABLES}
    write_manifest(out, replace(manifest, rows={**manifest.rows, **whole}))
    return DataAudit(log_dirs=tuple(log_dirs), rows=whole, damaged_places=rows[_DAMAGED])


def _empty_manifest(log_dirs: Sequence[LogDir]) -> AuditManifest:
    """Of an audit without a metadata log."""
    return AuditManifest(
        inputs=tuple(each.path for each in log_dirs),
        made_ms=time.time_ns() // 1_000_000,
        sources=(),
        rows={},
    )


def _tasks(spark: SparkSession, log_dirs: Sequence[LogDir], out: Path) -> list["PartitionsTask"]:
    """The partitions in tasks of about the same size: a few for each core, more for large logs."""
    folders = sorted(
        (folder for log_dir in log_dirs for folder in log_dir.partitions), key=lambda each: -_size(each)
    )
    total = sum(map(_size, folders))
    cores = spark.sparkContext.defaultParallelism
    count = min(len(folders), max(_TASKS_A_CORE * cores, total // _BYTES_A_TASK))
    # The largest partition goes to the task that has the least so far.
    waiting = [(0, number, list[PartitionFolder]()) for number in range(count)]
    for folder in folders:
        size, number, taken = heapq.heappop(waiting)
        taken.append(folder)
        heapq.heappush(waiting, (size + _size(folder), number, taken))
    by_number = sorted(waiting, key=lambda each: each[1])
    return [
        PartitionsTask(number=number, folders=tuple(taken), out=str(out)) for _, number, taken in by_number
    ]


def _size(folder: PartitionFolder) -> int:
    return sum((Path(folder.path) / name).lstat().st_size for name in folder.segments)


def _size_of_task(task: "PartitionsTask") -> int:
    return sum(map(_size, task.folders))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsTask:
    """The work of one task; `number` goes into the names of its files."""

    number: int
    folders: tuple[PartitionFolder, ...]
    out: str


def write_partitions(task: PartitionsTask) -> dict[str, int]:
    """Write the rows of some partitions. Written again by a second attempt, the files are replaced."""
    tables = {
        name: table
        for name, table in DATA_TABLES.items()
        if any(table.concerns(folder) for folder in task.folders)
    }
    damaged = 0
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(
                TableFile(Path(task.out) / name / f"part-{task.number:05d}.zstd.parquet", table.schema)
            )
            for name, table in tables.items()
        }
        waiting: dict[str, list[Row]] = {name: [] for name in tables}
        for name, rows in (each for folder in task.folders for each in rows_of(folder)):
            made = list(rows)
            damaged += sum(row["damaged_places"] for row in made) if name == "segments" else 0
            waiting[name].extend(made)
            if len(waiting[name]) >= _ROWS_A_BATCH:
                _add(files[name], name, waiting[name])
                waiting[name] = []
        for name, left in waiting.items():
            _add(files[name], name, left)
    return {name: file.rows for name, file in files.items()} | {_DAMAGED: damaged}


def rows_of(folder: PartitionFolder) -> Iterable[tuple[str, Iterable[Row]]]:
    """The rows of each table by its name, in the order of the log."""
    collectors = {
        name: table.collector(folder)
        for name, table in DATA_TABLES.items()
        if table.collector is not None and table.concerns(folder)
    }
    for file in folder.segments:
        path = Path(folder.path) / file
        size = path.lstat().st_size
        yield from ((name, each.begin_segment(file, size)) for name, each in collectors.items())
        for found in read_segment(str(path), file, int(file.removesuffix(".log"))):
            if isinstance(found, DataBatch):
                yield from ((name, each.batch(found)) for name, each in collectors.items())
            else:
                yield from ((name, each.unreadable(found)) for name, each in collectors.items())
        yield from ((name, each.end_segment()) for name, each in collectors.items())
    yield from ((name, each.end()) for name, each in collectors.items())


def _add(file: TableFile, name: str, rows: Iterable[Row]) -> None:
    listed = list(rows)
    if listed:
        file.add(pa.RecordBatch.from_pylist(listed, schema=arrow_schema(DATA_TABLES[name].schema)))
