"""Columns that several tables share, and how a column is written down: name, type, meaning."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    TimestampType,
)

STRING, INT, LONG, BOOLEAN, BINARY, TIMESTAMP = (
    StringType(),
    IntegerType(),
    LongType(),
    BooleanType(),
    BinaryType(),
    TimestampType(),
)
INTS, STRINGS = ArrayType(INT), ArrayType(STRING)


def column(name: str, data_type: DataType, comment: str) -> StructField:
    return StructField(name, data_type, True, {"comment": comment})


SOURCE = column("source", STRING, "the log: its metadata folder, relative to the folder that was audited")
FILE = column("file", STRING, "name of the segment or snapshot file")
FILE_KIND = column("file_kind", STRING, "log, snapshot or bootstrap")
SEGMENT_BASE_OFFSET = column("segment_base_offset", LONG, "first offset of the segment; null in a snapshot")
POSITION = column("position", LONG, "byte position in the file of the batch")
BATCH_EPOCH = column("leader_epoch", INT, "quorum epoch of the controller that wrote the batch")
TIMESTAMP_MS = column("timestamp_ms", LONG, "when the batch was written")
TIMESTAMP_COLUMN = column("timestamp", TIMESTAMP, "timestamp_ms as a timestamp")
IS_CONTROL = column(
    "is_control", BOOLEAN, "of the quorum itself (leader change, snapshot header) or metadata"
)
TOPIC_ID = column("topic_id", STRING, "topic id")
TOPIC_NAME = column("topic_name", STRING, "topic name")
PARTITION_ID = column("partition_id", INT, "partition number")
QUORUM_EPOCH = column("quorum_epoch", INT, "quorum epoch of the controller that decided it")
CONTROLLER_ID = column("controller_id", INT, "that controller, where the log holds its election")
EVENT_OFFSET = column("offset", LONG, "offset of the record")
EVENT_MS = column("timestamp_ms", LONG, "time of the record")
BATCH_BASE_OFFSET = column(
    "batch_base_offset", LONG, "first offset of the record's batch: what was decided together shares it"
)

# The first and the last columns of a table with a row for each change of a partition.
PARTITION_EVENT = (SOURCE, EVENT_OFFSET, EVENT_MS, TIMESTAMP_COLUMN, TOPIC_ID, TOPIC_NAME, PARTITION_ID)
DECISION = (QUORUM_EPOCH, CONTROLLER_ID, BATCH_BASE_OFFSET)


def validity(closed_by: str) -> list[StructField]:
    return [
        column(
            "valid_from_offset", LONG, "offset of the record that brought this about (a snapshot: its last)"
        ),
        column("valid_from_ms", LONG, "time of that record"),
        column("valid_from", TIMESTAMP, "valid_from_ms as a timestamp"),
        column("valid_to_offset", LONG, f"offset of {closed_by}, exclusive; null while it holds"),
        column("valid_to_ms", LONG, f"time of {closed_by}; null while it holds"),
        column("valid_to", TIMESTAMP, "valid_to_ms as a timestamp"),
    ]
