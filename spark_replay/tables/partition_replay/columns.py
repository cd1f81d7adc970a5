"""What goes into the replay of partitions and what comes out: the columns of events, and of changes."""

from typing import Final

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from kquorum.spark_replay.schemas import ISR_CHANGES, PARTITION_HISTORY
from kquorum.spark_replay.tables.partition_payload import INTS, PARTITION_PAYLOAD

CLEARED: Final = "ClearElrRecord"
# An event of this type is no record: it goes before all events of its topic, with what they need to know of it.
TOPIC: Final = "topic"
NO_PARTITION: Final = -1

# The order of events in which a partition's are side by side, after what is told of their topic.
EVENT_ORDER: Final = ("source", "topic_id", "partition_id", "state_offset", "offset")
OF_TOPIC: Final = ("topic_name", "removed_offset", "removed_ms")
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
_AS_THEY_ARE: Final = (
    *("source", "topic_id", "topic_name", "partition_id", "leader", "leader_epoch", "partition_epoch"),
    *("replicas", "isr", "removing_replicas", "adding_replicas", "leader_recovery_state"),
    *("quorum_epoch", "batch_base_offset"),
)
# Columns of a change that have another name in `partition_history`.
MOMENT: Final = {
    "offset": "valid_from_offset",
    "timestamp_ms": "valid_from_ms",
    "timestamp": "valid_from",
}
CHANGES: Final = StructType(
    [
        *(StructField(name, PARTITION_HISTORY[name].dataType) for name in _AS_THEY_ARE),
        *(StructField(name, ISR_CHANGES[name].dataType) for name in MOMENT),
        *(StructField(name, IntegerType() if name == "old_leader" else INTS) for name in BEFORE),
    ]
)
