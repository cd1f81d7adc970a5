"""What the files hold, before any of it is interpreted: records, batches and damage, and the data source's rows."""

from pyspark.sql.types import StructField, StructType

from kquorum.spark_replay.schema_columns import (
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

_RECORD_COLUMNS = [
    SOURCE,
    FILE,
    FILE_KIND,
    SEGMENT_BASE_OFFSET,
    POSITION,
    column("offset", LONG, "offset of the record; in a snapshot its ordinal in the file"),
    column("batch_base_offset", LONG, "offset of the first record of its batch"),
    BATCH_EPOCH,
    TIMESTAMP_MS,
    column("state_offset", LONG, "log offset as of which the record counts: its own, or a snapshot's last"),
    column("state_timestamp_ms", LONG, "time as of which the record counts"),
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

RECORDS = StructType([*_RECORD_COLUMNS, TIMESTAMP_COLUMN])

_BATCH_COLUMNS = [
    SOURCE,
    FILE,
    FILE_KIND,
    SEGMENT_BASE_OFFSET,
    POSITION,
    column("base_offset", LONG, "offset of the first record"),
    column("last_offset", LONG, "offset of the last record"),
    BATCH_EPOCH,
    TIMESTAMP_MS,
    column("record_count", INT, "records in the batch"),
    column("size_in_bytes", LONG, "size in the file, header included"),
    IS_CONTROL,
    column("codec", STRING, "none, gzip, snappy, lz4 or zstd; unknown for an id that means nothing"),
    column("crc", LONG, "the batch's CRC-32C, which was found right"),
]

BATCHES = StructType([*_BATCH_COLUMNS, TIMESTAMP_COLUMN])

DAMAGE = StructType(
    [
        SOURCE,
        FILE,
        FILE_KIND,
        SEGMENT_BASE_OFFSET,
        POSITION,
        column("offset", LONG, "offset at which records are missing, where it can be told"),
        column("kind", STRING, "torn, corrupt, undecodable, or gap (offsets missing between whole batches)"),
        column("reason", STRING, "what was found there"),
    ]
)


def _union(*tables: list[StructField]) -> StructType:
    fields: dict[str, StructField] = {}
    for table in tables:
        for field in table:
            assert fields.setdefault(field.name, field).dataType == field.dataType, field.name
    return StructType(list(fields.values()))


ROW_KIND = column("row_kind", STRING, "record, batch or damage")
SOURCE_ROWS = _union([ROW_KIND], _RECORD_COLUMNS, _BATCH_COLUMNS, list(DAMAGE.fields))
