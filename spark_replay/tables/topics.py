"""`topics`: every topic that existed, with the time it was created and removed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.schemas import TOPICS
from kquorum.spark_replay.tables.common import of_types, shaped, state_order, with_validity_times
from kquorum.spark_replay.tables.partition_payload import CREATED, with_partition_payload


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
