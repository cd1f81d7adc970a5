"""The tables, column by column. Every column carries its meaning as a comment, which Parquet and Spark keep.

Offsets are log offsets and inclusive unless a column says exclusive; `*_ms` are milliseconds since the epoch; uuids are
in Kafka's text form. Every table begins with `source`, the log it came from.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
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

ENDPOINTS = ArrayType(
    StructType(
        [
            column("name", STRING, "listener name"),
            column("host", STRING, "advertised host"),
            column("port", INT, "advertised port"),
            column("security_protocol", INT, "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL"),
        ]
    )
)
FEATURES = ArrayType(
    StructType(
        [
            column("name", STRING, "feature name"),
            column("min_supported_version", INT, "lowest level the broker supports"),
            column("max_supported_version", INT, "highest level the broker supports"),
        ]
    )
)

BROKERS = StructType(
    [
        SOURCE,
        column("broker_id", INT, "node.id of the broker"),
        column("registered", BOOLEAN, "false once it was unregistered"),
        column("broker_epoch", LONG, "epoch of its last registration"),
        column("incarnation_id", STRING, "uuid of the process that registered last"),
        column("fenced", BOOLEAN, "whether it is fenced at the end of the log"),
        column("in_controlled_shutdown", BOOLEAN, "whether it is shutting down at the end of the log"),
        column("rack", STRING, "broker.rack"),
        column("end_points", ENDPOINTS, "advertised listeners"),
        column("features", FEATURES, "supported feature levels"),
        column("log_dirs", STRINGS, "ids of its log directories that are online"),
        column("registrations", LONG, "how often it registered within the log"),
        column("fencings", LONG, "how often a record fenced it, the fence of its registration not counted"),
        column("first_registered_offset", LONG, "offset of the first registration known"),
        column("first_registered_ms", LONG, "time of that registration"),
        column("last_registered_offset", LONG, "offset of the last registration"),
        column("last_registered_ms", LONG, "time of the last registration"),
        column("last_change_offset", LONG, "offset of the last record about it"),
        column("last_change_ms", LONG, "time of the last record about it"),
    ]
)

TOPICS = StructType(
    [
        SOURCE,
        TOPIC_ID,
        TOPIC_NAME,
        column("partitions", LONG, "partitions it has, or had when it was removed"),
        column("replication_factor", INT, "replicas of its first partition when that was created"),
        column("from_snapshot", BOOLEAN, "created before the log begins: known from the snapshot only"),
        *validity("its removal"),
    ]
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
        column("quorum_epoch", INT, "quorum epoch of the controller that decided it"),
        *validity("the next change or of the topic's removal"),
    ]
)

LEADER_CHANGES = StructType(
    [
        SOURCE,
        column("offset", LONG, "offset of the record"),
        column("timestamp_ms", LONG, "time of the record"),
        TIMESTAMP_COLUMN,
        TOPIC_ID,
        TOPIC_NAME,
        PARTITION_ID,
        column("old_leader", INT, "leader before; -1 for none"),
        column("new_leader", INT, "leader after; -1 for none"),
        column("leader_epoch", INT, "partition's leader epoch after"),
        column("old_isr", INTS, "in-sync replicas before"),
        column("new_isr", INTS, "in-sync replicas after"),
        column(
            "unclean", BOOLEAN, "the new leader was neither in sync nor eligible before: records may be lost"
        ),
        column("quorum_epoch", INT, "quorum epoch of the controller that decided it"),
        column("controller_id", INT, "that controller, where the log holds its election"),
    ]
)

QUORUM_EPOCHS = StructType(
    [
        SOURCE,
        column("epoch", INT, "quorum epoch"),
        column("leader_id", INT, "controller elected, by the leader change record"),
        column("voters", INTS, "voters at the election"),
        column("granting_voters", INTS, "voters whose vote it had"),
        column("start_offset", LONG, "offset of the first record of the epoch"),
        column("start_ms", LONG, "time of that record"),
        column("start", TIMESTAMP, "start_ms as a timestamp"),
        column("end_offset", LONG, "first offset of the next epoch in the log, exclusive; null for the last"),
        column("end_ms", LONG, "time of the first record of the next epoch; null for the last"),
        column("records", LONG, "records written in the epoch"),
        column("last_record_ms", LONG, "time of the last of them"),
    ]
)

TABLES = {
    "records": RECORDS,
    "batches": BATCHES,
    "damage": DAMAGE,
    "brokers": BROKERS,
    "topics": TOPICS,
    "partition_history": PARTITION_HISTORY,
    "leader_changes": LEADER_CHANGES,
    "quorum_epochs": QUORUM_EPOCHS,
}
