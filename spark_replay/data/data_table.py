"""How a table of the partitions' logs is declared: its schema, and what makes its rows of one partition.

One task reads one replica of a partition from its first batch to its last, and hands each batch to a collector of each
table. So every table is made in one pass over the files, and no row is shuffled: what a table knows of a partition
is in that partition's log.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.log_dirs import LogDir, PartitionFolder
from kquorum.spark_replay.data.reading import DataBatch, Unreadable
from kquorum.spark_replay.tables.building.columns import INT, LONG, SOURCE, STRING, column

Row = dict[str, Any]

LOG_DIR = column("source", STRING, "the log directory of the broker, by its folder")
TOPIC = column("topic_name", STRING, "topic name")
PARTITION = column("partition_id", INT, "partition number")
SEGMENT_FILE = column("file", STRING, "name of the segment file")
PRODUCER_ID = column("producer_id", LONG, "id of the producer; null where it is not idempotent")
PRODUCER_EPOCH = column("producer_epoch", INT, "epoch of the producer; null where it is not idempotent")
assert LOG_DIR.name == SOURCE.name


class Collector:
    """Makes the rows of one table of one partition; a subclass overrides what it needs. `at` are the columns that say
    which partition it is."""

    def __init__(self, folder: PartitionFolder) -> None:
        self.folder = folder
        self.at: Row = {
            "source": folder.source,
            "topic_name": folder.topic,
            "partition_id": folder.partition,
        }

    def begin_segment(self, file: str, size_in_bytes: int) -> Iterable[Row]:  # noqa: ARG002
        return ()

    def batch(self, batch: DataBatch) -> Iterable[Row]:  # noqa: ARG002
        return ()

    def unreadable(self, place: Unreadable) -> Iterable[Row]:  # noqa: ARG002
        return ()

    def end_segment(self) -> Iterable[Row]:
        return ()

    def end(self) -> Iterable[Row]:
        """Behind the last segment."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """A table, named after its module. `of_topic` names the only topic whose partitions have rows in it.

    `collector` makes the rows of a partition, `of_log_dir` those of a log directory beside its partitions.
    """

    place: int
    schema: StructType
    description: str
    collector: Callable[[PartitionFolder], Collector] | None = None
    of_topic: str | None = None
    of_log_dir: Callable[[LogDir], Iterable[Row]] | None = None

    def concerns(self, folder: PartitionFolder) -> bool:
        return self.collector is not None and self.of_topic in (None, folder.topic)
