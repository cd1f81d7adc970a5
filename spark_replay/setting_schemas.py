"""Tables about what was set, and by whom: configs, features, access control, audit notes."""

from pyspark.sql.types import StructType

from kquorum.spark_replay.schema_columns import (
    BOOLEAN,
    CONTROLLER_ID,
    EVENT_MS,
    EVENT_OFFSET,
    INT,
    LONG,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    TIMESTAMP_COLUMN,
    column,
    validity,
)

CONFIGS_HISTORY = StructType(
    [
        SOURCE,
        column("resource_type", STRING, "topic, broker, broker_logger, client_metrics, group, or a number"),
        column("resource_name", STRING, "topic name, broker id, ...; empty for the default of all brokers"),
        column("name", STRING, "config key"),
        column("value", STRING, "the value set; [redacted] where the key may hold a secret"),
        column("is_redacted", BOOLEAN, "the value is held back"),
        QUORUM_EPOCH,
        column("ended_by", STRING, "replaced, deleted or topic_removed; null while it holds"),
        *validity("what replaced or took it away"),
    ]
)

FEATURES_HISTORY = StructType(
    [
        SOURCE,
        column("feature", STRING, "metadata.version, kraft.version, ..."),
        column("level", INT, "finalised level"),
        column("previous_level", INT, "level before; null where it had none"),
        column("change", STRING, "set, upgraded or downgraded"),
        column("record_type", STRING, "FeatureLevelRecord, or KRaftVersion for kraft.version"),
        QUORUM_EPOCH,
        *validity("the next level, or of the feature's removal"),
    ]
)

ACLS_HISTORY = StructType(
    [
        SOURCE,
        column("acl_id", STRING, "id of the entry"),
        column("principal", STRING, "whom it is for, as in User:alice"),
        column("host", STRING, "from which address; * for any"),
        column("permission", STRING, "ALLOW or DENY"),
        column("operation", STRING, "READ, WRITE, ALTER_CONFIGS, ...; UNKNOWN(number) if Kafka 4.3 has none"),
        column("resource_type", STRING, "TOPIC, GROUP, CLUSTER, ..."),
        column("resource_name", STRING, "name or prefix of the resource"),
        column("pattern_type", STRING, "LITERAL or PREFIXED"),
        QUORUM_EPOCH,
        column("ended_by", STRING, "removed, or replaced by another of its id; null while it holds"),
        *validity("its removal"),
    ]
)

AUDIT_NOTES = StructType(
    [
        SOURCE,
        EVENT_OFFSET,
        EVENT_MS,
        TIMESTAMP_COLUMN,
        column("principal", STRING, "who asked, as in User:alice"),
        column("client_id", STRING, "client.id of the request"),
        column("client_address", STRING, "address it came from"),
        column("api", STRING, "which request it was, by Kafka's name"),
        column("correlation_id", INT, "correlation id of the request"),
        column("reason", STRING, "what was asked for, in the controller's words"),
        column("operator_reason", STRING, "why, in the words of whoever asked; empty when nothing was said"),
        column("covered_records", LONG, "how many records behind the note carry the request out"),
        column("covered_from_offset", LONG, "offset of the first of them"),
        column("covered_to_offset", LONG, "offset of the last of them, inclusive"),
        column("forwarding_id", STRING, "of the envelope that brought it, in hex; null if it came directly"),
        column("is_whole", BOOLEAN, "of a forwarded request: all that it does stands behind this note"),
        column("note_hash", STRING, "SHA-256 of the note, in hex"),
        column(
            "previous_note_hash", STRING, "what the note says that of the note before is; empty in the first"
        ),
        column(
            "chain",
            STRING,
            "first, linked (it names the note before), broken (notes are missing or changed), unknown (the note "
            "before is older than the log); null if not committed",
        ),
        column("committed", BOOLEAN, "false in a metadata transaction that was aborted or is still open"),
        QUORUM_EPOCH,
        CONTROLLER_ID,
    ]
)
