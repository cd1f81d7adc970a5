"""The checkpoint files of the log directories and of the partitions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import LOG_DIR, PARTITION, TOPIC, DataTable, Row
from kquorum.spark_replay.data.log_dirs import LogDir
from kquorum.spark_replay.data.words import CLEANER, HIGH_WATERMARK, LOG_START, RECOVERY_POINT
from kquorum.spark_replay.decode.files import is_regular, read_listed
from kquorum.spark_replay.tables.building.columns import BOOLEAN, INT, LONG, STRING, column

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
# Of a log directory: for each partition an offset.
OFFSET_FILES: Final = {
    "replication-offset-checkpoint": HIGH_WATERMARK,
    "recovery-point-offset-checkpoint": RECOVERY_POINT,
    "log-start-offset-checkpoint": LOG_START,
    "cleaner-offset-checkpoint": CLEANER,
}
SCHEMA = StructType(
    [
        LOG_DIR,
        TOPIC,
        PARTITION,
        column("file", STRING, "name of the file"),
        column(
            "kind",
            STRING,
            "high_watermark, recovery_point (flushed up to there), log_start, cleaner (cleaned up to there), or "
            "leader_epoch",
        ),
        column("leader_epoch", INT, "of kind leader_epoch: the epoch that begins at the offset"),
        column("offset", LONG, "the offset; null in a file that is not well formed"),
        column(
            "is_well_formed", BOOLEAN, "whether the whole file is: version 0, and as many entries as it says"
        ),
    ]
)


def _of_log_dir(log_dir: LogDir) -> Iterator[Row]:
    there = {(each.topic, each.partition) for each in log_dir.partitions}
    for name, kind in OFFSET_FILES.items():
        entries = _entries(Path(log_dir.path) / name, 3)
        about = dict.fromkeys(SCHEMA.fieldNames()) | {
            "source": log_dir.source,
            "file": name,
            "kind": kind,
            "is_well_formed": entries is not None,
        }
        if entries is None:
            yield about
        for topic, partition, offset in entries or ():
            # It may name partitions that another folder has, or none any more.
            if (topic, int(partition)) in there:
                yield about | {"topic_name": topic, "partition_id": int(partition), "offset": int(offset)}
    for folder in log_dir.partitions:
        entries = _entries(Path(folder.path) / LEADER_EPOCHS, 2)
        about = dict.fromkeys(SCHEMA.fieldNames()) | {
            "source": log_dir.source,
            "topic_name": folder.topic,
            "partition_id": folder.partition,
            "file": LEADER_EPOCHS,
            "kind": "leader_epoch",
            "is_well_formed": entries is not None,
        }
        if entries is None:
            yield about
        for epoch, offset in entries or ():
            yield about | {"leader_epoch": int(epoch), "offset": int(offset)}


def _entries(path: Path, fields: int) -> list[list[str]] | None:
    """The entries of a checkpoint file: a line with the version, one with their number, one for each. Empty for a file
    that is missing or empty, None for one that is not well formed."""
    if not is_regular(path):
        return []
    content = read_listed(path)
    if not content:
        return []
    try:
        version, count, *lines = content.decode("utf-8").split("\n")
        entries = [line.rsplit(" ", fields - 1) for line in lines if line]
        is_sound = int(version) == 0 and int(count) == len(entries)
        numbers_at = 0 if fields == 2 else 1
        for entry in entries:
            is_sound &= len(entry) == fields and all(0 <= int(each) < 2**63 for each in entry[numbers_at:])
    except ValueError:
        return None
    return entries if is_sound else None


TABLE = DataTable(
    place=80,
    schema=SCHEMA,
    description="The entries of the checkpoint files: high watermarks, recovery points, log starts, leader epochs.",
    of_log_dir=_of_log_dir,
)
