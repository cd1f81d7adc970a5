"""`topics`: every topic that existed, with the time it was created and removed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BOOLEAN,
    INT,
    LONG,
    SOURCE,
    TOPIC_ID,
    TOPIC_NAME,
    column,
    validity,
)
from kquorum.spark_replay.tables.building.frames import of_types, shaped, state_order, with_validity_times
from kquorum.spark_replay.tables.partition_replay.columns import CREATED, with_partition_payload

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


def topics(state: DataFrame) -> DataFrame:
    """One row for each topic id. A topic made again under the same name is another topic."""
    named = _created(state).join(removals(state), ["source", "topic_id"], "left")
    sized = named.join(_sizes(state), ["source", "topic_id"], "left").fillna({"partitions": 0})
    return shaped(with_validity_times(sized), TOPICS)


def removals(state: DataFrame) -> DataFrame:
    """(source, topic_id, valid_to_offset, valid_to_ms) of the topics that were removed."""
    return (
        of_types(state, "RemoveTopicRecord")
        .groupBy("source", "topic_id")
        .agg(
            F.min("state_offset").alias("valid_to_offset"),
            F.min_by("state_timestamp_ms", "state_offset").alias("valid_to_ms"),
        )
    )


def topic_names(state: DataFrame) -> DataFrame:
    """(source, topic_id, topic_name)."""
    created = of_types(state, "TopicRecord")
    return created.groupBy("source", "topic_id").agg(
        F.min_by("topic_name", state_order()).alias("topic_name")
    )


def _created(state: DataFrame) -> DataFrame:
    order = state_order()
    return (
        of_types(state, "TopicRecord")
        .groupBy("source", "topic_id")
        .agg(
            F.min_by("topic_name", order).alias("topic_name"),
            F.min("state_offset").alias("valid_from_offset"),
            F.min_by("state_timestamp_ms", order).alias("valid_from_ms"),
            F.min_by(F.col("file_kind") == "snapshot", order).alias("from_snapshot"),
        )
    )


def _sizes(state: DataFrame) -> DataFrame:
    partitions = with_partition_payload(of_types(state, CREATED))
    first = F.struct("partition_id", *("state_offset", "offset"))
    return partitions.groupBy("source", "topic_id").agg(
        F.count_distinct("partition_id").alias("partitions"),
        F.min_by(F.size("p.replicas"), first).alias("replication_factor"),
    )


TABLE = AuditTable(
    place=80,
    schema=TOPICS,
    description="Each topic that existed. One made again under the same name is another topic with another id.",
    reads_partitions=True,
    build=lambda inputs: topics(inputs.partition_state),
)
