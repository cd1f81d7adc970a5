"""`records`: every record of every file, as it was decoded. The pass over the files writes it."""

from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BATCH_EPOCH,
    BINARY,
    FILE,
    FILE_KIND,
    INT,
    IS_CONTROL,
    LONG,
    PARTITION_ID,
    POSITION,
    SEGMENT_BASE_OFFSET,
    SOURCE,
    STRING,
    TIMESTAMP_COLUMN,
    TIMESTAMP_MS,
    TOPIC_ID,
    column,
)

RECORD_COLUMNS = [
    SOURCE,
    FILE,
    FILE_KIND,
    SEGMENT_BASE_OFFSET,
    POSITION,
    column("offset", LONG, "offset of the record; in a snapshot its ordinal in the file"),
    column("batch_base_offset", LONG, "offset of the first record of its batch"),
    BATCH_EPOCH,
    TIMESTAMP_MS,
    column(
        "state_offset", LONG, "log offset at which the record takes effect: its own, or a snapshot's last"
    ),
    column("state_timestamp_ms", LONG, "time at which the record takes effect"),
    IS_CONTROL,
    column(
        "record_type", STRING, "TopicRecord, PartitionRecord, LeaderChange, ...; Unknown for an unknown key"
    ),
    column("api_key", INT, "Kafka's number of the record type (of a control record: its control type)"),
    column("version", INT, "schema version of the record"),
    column("payload", STRING, "the fields as JSON, secrets redacted; null if they cannot be read"),
    TOPIC_ID,
    column("topic_name", STRING, "topic name, where the record itself tells it"),
    PARTITION_ID,
    column("broker_id", INT, "the broker the record is about"),
    column("raw", BINARY, "the record's bytes, kept where payload is null"),
    column("problem", STRING, "why payload is null"),
]

RECORDS = StructType([*RECORD_COLUMNS, TIMESTAMP_COLUMN])


TABLE = AuditTable(
    place=10,
    schema=RECORDS,
    description=(
        "Every record of every file, snapshots included, decoded or not. "
        "What cannot be read is kept raw, unless it may be secret."
    ),
    row_kind="record",
)
