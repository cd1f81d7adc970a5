"""Tables about topics and their partitions."""

from pyspark.sql.types import StructType

from kquorum.spark_replay.schema_columns import (
    BATCH_BASE_OFFSET,
    BOOLEAN,
    CONTROLLER_ID,
    EVENT_MS,
    EVENT_OFFSET,
    INT,
    INTS,
    LONG,
    PARTITION_ID,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    STRINGS,
    TIMESTAMP_COLUMN,
    TOPIC_ID,
    TOPIC_NAME,
    column,
    validity,
)

FROM_SNAPSHOT = column(
    "from_snapshot", BOOLEAN, "created before the log begins: known from the snapshot only"
)

TOPICS = StructType(
    [
        SOURCE,
        TOPIC_ID,
        TOPIC_NAME,
        column("partitions", LONG, "partitions it has, or had when it was removed"),
        column("replication_factor", INT, "replicas of its first partition when that was created"),
        FROM_SNAPSHOT,
        *validity("its removal"),
    ]
)

TOPICS_HISTORY = StructType(
    [
        SOURCE,
        TOPIC_ID,
        TOPIC_NAME,
        column("change", STRING, "created, or partitions_added"),
        column("partitions", LONG, "partitions it has from then on"),
        column("added_partitions", LONG, "those that are new with this change"),
        column("replication_factor", INT, "replicas of the first of the new partitions"),
        column(
            "from_snapshot", BOOLEAN, "known from the snapshot only, so it was done before the log begins"
        ),
        QUORUM_EPOCH,
        BATCH_BASE_OFFSET,
        column("ended_by", STRING, "partitions_added or removed; null while it holds"),
        *validity("the next partitions or of the topic's removal"),
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
        QUORUM_EPOCH,
        BATCH_BASE_OFFSET,
        *validity("the next change or of the topic's removal"),
    ]
)

LEADER_CHANGES = StructType(
    [
        SOURCE,
        EVENT_OFFSET,
        EVENT_MS,
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
        column(
            "cause",
            STRING,
            "why, as far as the log tells: unclean (out of ISR and ELR); of the old leader fencing, shutdown, "
            "unregistration, restart, directory_failure; reassignment; preferred (back to the first replica); "
            "of a partition without a leader unfencing (of its new leader) or recovery; other",
        ),
        column(
            "cause_offset",
            LONG,
            "offset of the broker's record that explains it; null where none does, or none is needed",
        ),
        QUORUM_EPOCH,
        CONTROLLER_ID,
        BATCH_BASE_OFFSET,
    ]
)

ISR_CHANGES = StructType(
    [
        SOURCE,
        EVENT_OFFSET,
        EVENT_MS,
        TIMESTAMP_COLUMN,
        TOPIC_ID,
        TOPIC_NAME,
        PARTITION_ID,
        column("kind", STRING, "shrink, expand, or replace where brokers left and others came"),
        column("left_isr", INTS, "brokers no longer in sync, ascending"),
        column("joined_isr", INTS, "brokers newly in sync, ascending"),
        column("old_isr", INTS, "in-sync replicas before"),
        column("new_isr", INTS, "in-sync replicas after"),
        column("leader", INT, "leader after; -1 for none"),
        column("leader_epoch", INT, "partition's leader epoch after"),
        column("partition_epoch", INT, "partition's epoch after"),
        column("replicas", INTS, "assigned brokers after"),
        column("under_replicated", BOOLEAN, "an assigned broker is not in sync after it"),
        QUORUM_EPOCH,
        CONTROLLER_ID,
        BATCH_BASE_OFFSET,
    ]
)
