"""What happened to partitions, as `partition_kernel` replays it: records, clearings, and what became of topics."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.tables.building.frames import in_log, of_types, shaped, state_order
from kquorum.spark_replay.tables.partition_replay.columns import (
    CHANGED,
    CLEARED,
    CREATED,
    ELR,
    EVENTS,
    INTS,
    NO_PARTITION,
    PARTITION_PAYLOAD,
    TOPIC,
    with_partition_payload,
)
from kquorum.spark_replay.tables.topics import topic_names

_TOPIC_TYPES = ("TopicRecord", "RemoveTopicRecord")
_OF_RECORD = (
    *("state_offset", "offset", "state_timestamp_ms", "record_type", "quorum_epoch"),
    "batch_base_offset",
)


def partition_events(state: DataFrame, stateful: DataFrame, *, has_clearings: bool = True) -> DataFrame:
    """The columns of `EVENTS`, in no order. `stateful` is the state, which may lack the records of partitions.

    Without `has_clearings` there is no ClearElrRecord, and the query does not look for what one would clear.
    """
    parsed = with_partition_payload(of_types(state, CREATED, CHANGED))
    events = parsed.select(*_keys(), *(F.col(f"p.{name}") for name in PARTITION_PAYLOAD.fieldNames()))
    if has_clearings:
        events = events.unionByName(_clearings(state, stateful))
    return shaped(events.unionByName(_topics(stateful), allowMissingColumns=True), EVENTS)


def _keys() -> list[Column]:
    return [
        *map(F.col, ("source", "topic_id", "partition_id", "state_offset", "offset", "state_timestamp_ms")),
        F.col("record_type"),
        F.col("leader_epoch").alias("quorum_epoch"),
        in_log(F.col("batch_base_offset")).alias("batch_base_offset"),
    ]


def _topics(stateful: DataFrame) -> DataFrame:
    """One row for each topic with a name or a removal."""
    is_created, is_removed = (F.col("record_type") == name for name in _TOPIC_TYPES)
    removal = F.when(is_removed, F.col("state_offset"))
    by_topic = (
        of_types(stateful, *_TOPIC_TYPES)
        .groupBy("source", "topic_id")
        .agg(
            F.min_by("topic_name", F.when(is_created, state_order())).alias("topic_name"),
            F.min(removal).alias("removed_offset"),
            F.min_by("state_timestamp_ms", removal).alias("removed_ms"),
        )
    )
    return by_topic.withColumns({"partition_id": F.lit(NO_PARTITION), "record_type": F.lit(TOPIC)})


def _clearings(state: DataFrame, stateful: DataFrame) -> DataFrame:
    """A change with empty ELRs of every partition that a ClearElrRecord names; an empty name means every topic."""
    clears = of_types(stateful, CLEARED).select(*_keys(), F.col("topic_name").alias("cleared_name"))
    partitions = (
        of_types(state, CREATED)
        .select("source", "topic_id", "partition_id", "state_offset")
        .join(topic_names(stateful), ["source", "topic_id"])
        .alias("partition")
    )
    hit = (
        (F.col("clear.source") == F.col("partition.source"))
        & (F.col("clear.state_offset") > F.col("partition.state_offset"))
        & F.coalesce(F.col("cleared_name") == F.col("partition.topic_name"), F.lit(True))
    )
    joined = F.broadcast(clears.alias("clear")).join(partitions, hit)
    keys = [
        F.col(f"{'partition' if name in ('topic_id', 'partition_id') else 'clear'}.{name}").alias(name)
        for name in ("source", "topic_id", "partition_id", *_OF_RECORD)
    ]
    empty = {name: F.array().cast(INTS) for name in ELR}
    return joined.select(
        *keys,
        *(
            empty.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name)
            for field in PARTITION_PAYLOAD.fields
        ),
    )
