"""The input and output of the replay of partitions: the columns of events, and of changes."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kquorum.spark_replay.tables.building.frames import PARSED, with_payload

# The fields of the records of partitions, which are most of what changes in a cluster.

CREATED, CHANGED = "PartitionRecord", "PartitionChangeRecord"
PARTITION_TYPES = (CREATED, CHANGED)

INTS = ArrayType(IntegerType())
ELR = ("eligible_leader_replicas", "last_known_elr")
ARRAYS = ("replicas", "isr", "removing_replicas", "adding_replicas")
PARTITION_PAYLOAD = StructType(
    [
        *(StructField(name, INTS) for name in (*ARRAYS, *ELR)),
        *(
            StructField(name, IntegerType())
            for name in ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
        ),
        StructField("directories", ArrayType(StringType())),
    ]
)


def with_partition_payload(records: DataFrame) -> DataFrame:
    """Records of partitions with their fields in a struct column `p`, which may have been parsed already."""
    if PARSED in records.columns:
        return records.withColumnRenamed(PARSED, "p")
    return with_payload(records, PARTITION_PAYLOAD)


CLEARED: Final = "ClearElrRecord"
# An event of this type is no record: it goes before all events of its topic, with what they need to know of it.
TOPIC: Final = "topic"
NO_PARTITION: Final = -1

# The order of events in which a partition's are side by side, after the row about their topic.
EVENT_ORDER: Final = ("source", "topic_id", "partition_id", "state_offset", "offset")
EVENTS: Final = StructType(
    [
        StructField("source", StringType()),
        StructField("topic_id", StringType()),
        StructField("partition_id", IntegerType()),
        StructField("state_offset", LongType()),
        StructField("offset", LongType()),
        StructField("state_timestamp_ms", LongType()),
        StructField("record_type", StringType()),
        StructField("quorum_epoch", IntegerType()),
        StructField("batch_base_offset", LongType()),
        *PARTITION_PAYLOAD.fields,
        StructField("topic_name", StringType()),
        StructField("removed_offset", LongType()),
        StructField("removed_ms", LongType()),
    ]
)

# Columns of a change that tell what the partition was before it.
BEFORE: Final = {
    "old_leader": "leader",
    "old_isr": "isr",
    "old_elr": "eligible_leader_replicas",
    "old_replicas": "replicas",
    "old_removing": "removing_replicas",
    "old_adding": "adding_replicas",
}
_TEXTS: Final = ("source", "topic_id", "topic_name")
_NUMBERS: Final = ("leader", "leader_epoch", "partition_epoch")
# Columns of a change that have another name in `partition_history`.
MOMENT: Final = {
    "offset": "valid_from_offset",
    "timestamp_ms": "valid_from_ms",
    "timestamp": "valid_from",
}
CHANGES: Final = StructType(
    [
        *(StructField(name, StringType()) for name in _TEXTS),
        *(StructField(name, IntegerType()) for name in ("partition_id", *_NUMBERS)),
        *(StructField(name, INTS) for name in ARRAYS),
        StructField("leader_recovery_state", IntegerType()),
        StructField("quorum_epoch", IntegerType()),
        StructField("batch_base_offset", LongType()),
        StructField("offset", LongType()),
        StructField("timestamp_ms", LongType()),
        StructField("timestamp", TimestampType()),
        *(StructField(name, IntegerType() if name == "old_leader" else INTS) for name in BEFORE),
    ]
)
