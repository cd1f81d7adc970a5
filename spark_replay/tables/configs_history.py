"""`configs_history`: every value that a config had, and how long. Secrets were taken out when the log was decoded."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BOOLEAN,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    column,
    validity,
)
from kquorum.spark_replay.tables.building.frames import (
    event_columns,
    named,
    of_types,
    ordered_by_state,
    shaped,
    with_payload,
    with_validity,
)
from kquorum.spark_replay.tables.topics import removals, topic_names
from kquorum.wire.record_json import REDACTED

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

TOPIC = 2
RESOURCE_TYPES = {TOPIC: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
_KEYS = ("source", "resource_type_number", "resource_name", "name")
_PAYLOAD = StructType(
    [
        StructField("resource_type", IntegerType()),
        StructField("resource_name", StringType()),
        StructField("name", StringType()),
        StructField("value", StringType()),
    ]
)


def configs_history(state: DataFrame) -> DataFrame:
    """One row for each value set. A topic's configs end with the topic, without records of their own."""
    settings = _settings(state)
    events = settings.unionByName(_removals(settings, state), allowMissingColumns=True)
    held = with_validity(events, ordered_by_state(*_KEYS), "ending").where(F.col("value").isNotNull())
    number = F.col("resource_type_number")
    described = held.withColumns(
        {
            "resource_type": named(number, RESOURCE_TYPES, number.cast("string")),
            "is_redacted": F.col("value") == REDACTED,
            "ended_by": F.col("next_ending"),
        }
    )
    return shaped(described, CONFIGS_HISTORY)


def _settings(state: DataFrame) -> DataFrame:
    """`ending` says how a record ends the value before it."""
    parsed = with_payload(of_types(state, "ConfigRecord"), _PAYLOAD)
    return parsed.select(
        *event_columns(),
        F.col("p.resource_type").alias("resource_type_number"),
        *(F.col(f"p.{name}").alias(name) for name in ("resource_name", "name", "value")),
        F.when(F.col("p.value").isNull(), "deleted").otherwise("replaced").alias("ending"),
    )


def _removals(settings: DataFrame, state: DataFrame) -> DataFrame:
    """For each config of a topic an end without a value, at each removal of a topic of that name."""
    keys = settings.where(F.col("resource_type_number") == TOPIC).select(*_KEYS).distinct()
    removed = removals(state).join(topic_names(state), ["source", "topic_id"])
    named_removals = removed.select(
        "source",
        F.col("topic_name").alias("resource_name"),
        F.col("valid_to_offset").alias("state_offset"),
        F.col("valid_to_offset").alias("offset"),
        F.col("valid_to_ms").alias("state_timestamp_ms"),
        F.lit("topic_removed").alias("ending"),
    )
    return keys.join(named_removals, ["source", "resource_name"])


TABLE = AuditTable(
    place=130,
    schema=CONFIGS_HISTORY,
    description="Each value that a config had. Secrets are not in it.",
    build=lambda inputs: configs_history(inputs.state),
    made_from=("ConfigRecord",),
)
