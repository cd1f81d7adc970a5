"""`partition_history`: the state of each partition between any two changes, rebuilt from the records of the changes.

Spark groups and sorts the events of each partition, and writes them to files. The executors replay these
(`partition_kernel`) and write the rows themselves, so that no row goes back through the JVM, and beside them the input
of the tables of changes.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.table_files import TableFile, hadoop_path, write_empty
from kquorum.spark_replay.tables.building.audit_table import AuditTable, TableInputs
from kquorum.spark_replay.tables.building.columns import (
    BATCH_BASE_OFFSET,
    INT,
    INTS,
    PARTITION_ID,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    STRINGS,
    TOPIC_ID,
    TOPIC_NAME,
    column,
    validity,
)
from kquorum.spark_replay.tables.partition_replay.columns import CHANGES, CLEARED, EVENT_ORDER
from kquorum.spark_replay.tables.partition_replay.events import partition_events
from kquorum.spark_replay.tables.partition_replay.kernel import (
    ROWS_AT_ONCE,
    changes_of,
    partition_kernel,
    whole_partitions,
)

PARTITION_HISTORY = StructType(
    [
        SOURCE,
        TOPIC_ID,
        TOPIC_NAME,
        PARTITION_ID,
        column("leader", INT, "broker that leads; -1 for none"),
        column("leader_epoch", INT, "partition's leader epoch; null if its creation is not in the log"),
        column("partition_epoch", INT, "grows with every change; null if its creation is not in the log"),
        column("replicas", INTS, "assigned brokers, preferred leader first"),
        column("isr", INTS, "in-sync replicas"),
        column("removing_replicas", INTS, "leaving by a reassignment"),
        column("adding_replicas", INTS, "joining by a reassignment"),
        column("eligible_leader_replicas", INTS, "out of the ISR but complete: may lead without loss"),
        column("last_known_elr", INTS, "last known eligible leader replicas"),
        column("leader_recovery_state", INT, "0 recovered, 1 recovering from an unclean election"),
        column("directories", STRINGS, "log directory of each replica, in order of replicas"),
        column("record_type", STRING, "PartitionRecord, PartitionChangeRecord or ClearElrRecord"),
        QUORUM_EPOCH,
        BATCH_BASE_OFFSET,
        *validity("the next change or of the topic's removal"),
    ]
)

_HISTORY: Final = arrow_schema(PARTITION_HISTORY)
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


def _write(inputs: TableInputs, folder: Path) -> int:
    events = partition_events(inputs.partition_state, inputs.state, has_clearings=inputs.may_have([CLEARED]))
    return write_partition_history(
        events,
        PartitionFolders(history=folder, staging=inputs.staging),
        on_driver=inputs.partition_records <= SMALL_EVENTS,
    )


def partition_changes(inputs: TableInputs) -> DataFrame:
    """The rows of `CHANGES`, which `partition_history` leaves for the tables after it."""
    folders = PartitionFolders(history=inputs.staging, staging=inputs.staging)
    spark = inputs.state.sparkSession
    return spark.read.schema(CHANGES).parquet(hadoop_path(folders.changes))


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
            history = partition_kernel(events, _HISTORY)
            for file, rows in ((history_file, history), (changes_file, changes_of(history))):
                if rows.num_rows:
                    file.add(rows)
    return history_file.rows


TABLE = AuditTable(
    place=100,
    schema=PARTITION_HISTORY,
    description="Each partition between any two changes: leader, replicas, in-sync replicas, epochs.",
    reads_partitions=True,
    write=_write,
)
