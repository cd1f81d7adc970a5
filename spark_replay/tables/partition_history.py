"""`partition_history`: what each partition was between any two changes, rebuilt from the records of the changes.

Spark brings the events of each partition together and in order, and leaves them in files. From these the executors
replay them (`partition_kernel`) and write the rows themselves, so that nothing goes back through the JVM, and beside
them what the tables of changes are made of.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from kquorum.spark_replay.schemas import PARTITION_HISTORY
from kquorum.spark_replay.table_files import TableFile, write_empty
from kquorum.spark_replay.tables.partition_changes import changes_of
from kquorum.spark_replay.tables.partition_columns import CHANGES, EVENT_ORDER
from kquorum.spark_replay.tables.partition_kernel import partition_kernel
from kquorum.spark_replay.tables.whole_partitions import ROWS_AT_ONCE, whole_partitions

# What one process replays sooner than a worker has started.
SMALL_EVENTS: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFolders:
    """Where the rows of `partition_history` go, and in `staging` those of `CHANGES`: folders that every executor sees.

    What is in `staging` is for the caller to remove.
    """

    history: Path
    staging: Path

    @property
    def changes(self) -> Path:
        return self.staging / "changes"

    @property
    def events(self) -> Path:
        return self.staging / "events"


def write_partition_history(events: DataFrame, folders: PartitionFolders, *, on_driver: bool) -> int:
    """Write the history of partitions by their events (`partition_events`), in place of what was there; its rows.

    `on_driver` is for few events.
    """
    schemas = {folders.history: PARTITION_HISTORY, folders.changes: CHANGES}
    for folder in schemas:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    if on_driver:
        table = events.toArrow().sort_by([(name, "ascending") for name in EVENT_ORDER])
        rows = write_part(table.to_batches(), folders, 0)
    else:
        rows = _write_on_executors(events, folders)
    for folder, schema in schemas.items():
        if not any(folder.iterdir()):
            write_empty(folder, schema)
    return rows


def _write_on_executors(events: DataFrame, folders: PartitionFolders) -> int:
    # Through files, as Spark's own ways of giving sorted rows to Python want pandas.
    placed = events.repartition("source", "topic_id").sortWithinPartitions(*EVENT_ORDER)
    placed.write.mode("overwrite").option("compression", "snappy").parquet(str(folders.events))
    parts = list(enumerate(sorted(folders.events.glob("*.parquet"))))
    pieces = events.sparkSession.sparkContext.parallelize(parts, max(1, len(parts)))
    rows: int = sum(pieces.map(partial(_write_from_file, folders=folders)).collect())
    shutil.rmtree(folders.events)
    return rows


def _write_from_file(part: tuple[int, Path], folders: PartitionFolders) -> int:
    number, path = part
    with pq.ParquetFile(path) as file:
        return write_part(file.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False), folders, number)


def write_part(batches: Iterable[Any], folders: PartitionFolders, number: int) -> int:
    """Replay sorted events, and write what becomes of them; the rows of history.

    Written again, the files are replaced: a task that Spark runs twice leaves the rows once.
    """
    name = f"part-{number:05d}.zstd.parquet"
    with (
        TableFile(folders.history / name, PARTITION_HISTORY) as history_file,
        TableFile(folders.changes / name, CHANGES) as changes_file,
    ):
        for events in whole_partitions(batches):
            history = partition_kernel(events)
            for file, rows in ((history_file, history), (changes_file, changes_of(history))):
                if rows.num_rows:
                    file.add(rows)
    return history_file.rows
