"""The tables, column by column. Every column carries its meaning as a comment, which Parquet and Spark keep.

Offsets are log offsets and inclusive unless a column says exclusive; `*_ms` are milliseconds since the epoch; uuids are
in Kafka's text form. Every table begins with `source`, the log it came from. `docs/audit-tables.md` is made from here.
"""

from kquorum.spark_replay.cluster_schemas import (
    BROKERS,
    BROKERS_HISTORY,
    ENDPOINTS,
    FEATURES,
    QUORUM_EPOCHS,
    VOTERS,
    VOTERS_HISTORY,
)
from kquorum.spark_replay.scanned_schemas import BATCHES, DAMAGE, RECORDS, SOURCE_ROWS
from kquorum.spark_replay.setting_schemas import ACLS_HISTORY, AUDIT_NOTES, CONFIGS_HISTORY, FEATURES_HISTORY
from kquorum.spark_replay.topic_schemas import (
    ISR_CHANGES,
    LEADER_CHANGES,
    PARTITION_HISTORY,
    TOPICS,
    TOPICS_HISTORY,
)

__all__ = [
    "ACLS_HISTORY",
    "AUDIT_NOTES",
    "BATCHES",
    "BROKERS",
    "BROKERS_HISTORY",
    "CONFIGS_HISTORY",
    "DAMAGE",
    "ENDPOINTS",
    "FEATURES",
    "FEATURES_HISTORY",
    "ISR_CHANGES",
    "LEADER_CHANGES",
    "PARTITION_HISTORY",
    "QUORUM_EPOCHS",
    "RECORDS",
    "SOURCE_ROWS",
    "TABLES",
    "TABLE_COMMENTS",
    "TOPICS",
    "TOPICS_HISTORY",
    "VOTERS",
    "VOTERS_HISTORY",
]

TABLES = {
    "records": RECORDS,
    "batches": BATCHES,
    "damage": DAMAGE,
    "quorum_epochs": QUORUM_EPOCHS,
    "voters_history": VOTERS_HISTORY,
    "brokers": BROKERS,
    "brokers_history": BROKERS_HISTORY,
    "topics": TOPICS,
    "topics_history": TOPICS_HISTORY,
    "partition_history": PARTITION_HISTORY,
    "leader_changes": LEADER_CHANGES,
    "isr_changes": ISR_CHANGES,
    "configs_history": CONFIGS_HISTORY,
    "features_history": FEATURES_HISTORY,
    "acls_history": ACLS_HISTORY,
    "audit_notes": AUDIT_NOTES,
}

TABLE_COMMENTS = {
    "records": "Every record of every file, snapshots included, decoded or not. "
    "What cannot be read is kept raw, unless it may be secret.",
    "batches": "Every whole batch with a good checksum.",
    "damage": "Every place that could not be read, and every gap between batches.",
    "quorum_epochs": "Who led the quorum when: one row for each epoch that has a record in the log.",
    "voters_history": "Who could vote when: one row for each set of voters.",
    "brokers": "Each broker that ever registered, as it stands at the end of the log.",
    "brokers_history": "Each broker between any two records about it: registered, fenced, unfenced, shutting down.",
    "topics": "Each topic that existed. One made again under the same name is another topic with another id.",
    "topics_history": "Each topic between any two changes of the number of its partitions.",
    "partition_history": "Each partition between any two changes: leader, replicas, in-sync replicas, epochs.",
    "leader_changes": (
        "Each moment at which a partition's leader became another, and why. A partition's creation is no change: it "
        "is its first row in `partition_history`."
    ),
    "isr_changes": "Each moment at which brokers left or joined the in-sync replicas of a partition.",
    "configs_history": "Each value that a config had. Secrets are not in it.",
    "features_history": "Each level that a feature was finalised at, kraft.version among them.",
    "acls_history": "Each access control entry, from its creation to its removal.",
    "audit_notes": "Who asked for which records, from where and why. Kafka's own logs have none.",
}
assert TABLE_COMMENTS.keys() == TABLES.keys()
