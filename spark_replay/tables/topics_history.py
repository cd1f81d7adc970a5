"""`topics_history`: how many partitions each topic had when, from its creation to its removal."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BATCH_BASE_OFFSET,
    BOOLEAN,
    INT,
    LONG,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    TOPIC_ID,
    TOPIC_NAME,
    column,
    validity,
)
from kquorum.spark_replay.tables.building.frames import (
    event_columns,
    of_types,
    ordered_by_state,
    shaped,
    state_order,
    up_to_here,
    with_validity_times,
)
from kquorum.spark_replay.tables.partition_replay.columns import CREATED as PARTITION_CREATED
from kquorum.spark_replay.tables.partition_replay.columns import with_partition_payload
from kquorum.spark_replay.tables.topics import removals, topic_names

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

CREATED, ADDED, REMOVED = "created", "partitions_added", "removed"


def topics_history(state: DataFrame) -> DataFrame:
    """One row for the creation of each topic id, and one for each time that partitions were added to it."""
    order = Window.partitionBy("source", "topic_id").orderBy("step")
    steps = _steps(state).withColumns(
        {
            "partitions": F.sum("added_partitions").over(up_to_here(order)),
            "change": F.when(F.lag("step").over(order).isNull(), CREATED).otherwise(ADDED),
            "next_offset": F.lead("valid_from_offset").over(order),
            "next_ms": F.lead("valid_from_ms").over(order),
        }
    )
    named = steps.join(topic_names(state), ["source", "topic_id"], "left")
    return shaped(with_validity_times(_with_end(named, state)), TOPICS_HISTORY)


def _steps(state: DataFrame) -> DataFrame:
    """One row for each operation that made a topic or added to it; `step` numbers them from 1.

    The records of one operation share a batch, or follow each other at the same time across batches, as those of a
    transaction do; those of a snapshot are one step.
    """
    order = ordered_by_state("source", "topic_id")
    before, ms_before, batch_before = (
        F.lag(name).over(order) for name in ("state_offset", "state_timestamp_ms", "batch_base_offset")
    )
    follows = (before == F.col("offset") - 1) & (ms_before == F.col("state_timestamp_ms"))
    goes_on = (
        (before == F.col("state_offset"))
        | (batch_before == F.col("batch_base_offset"))
        | (batch_before.isNotNull() & follows)
    )
    events = _events(state).withColumn("begins", F.when(F.coalesce(goes_on, F.lit(False)), 0).otherwise(1))
    numbered = events.withColumn("step", F.sum("begins").over(up_to_here(order)))
    first = state_order()
    return numbered.groupBy("source", "topic_id", "step").agg(
        F.min("state_offset").alias("valid_from_offset"),
        *(
            F.min_by(name, first).alias(alias)
            for name, alias in (
                ("state_timestamp_ms", "valid_from_ms"),
                ("quorum_epoch", "quorum_epoch"),
                ("batch_base_offset", "batch_base_offset"),
                ("from_snapshot", "from_snapshot"),
            )
        ),
        F.count("partition_id").alias("added_partitions"),
        F.min_by("replication_factor", "partition_id").alias("replication_factor"),
    )


def _events(state: DataFrame) -> DataFrame:
    """The first record of each topic and of each partition; `partition_id` is null in a topic's."""
    created = of_types(state, "TopicRecord")
    partitions = with_partition_payload(of_types(state, PARTITION_CREATED))
    return _first(created, F.lit(None), F.lit(None), "topic_id").unionByName(
        _first(partitions, F.col("partition_id"), F.size("p.replicas"), "topic_id", "partition_id")
    )


def _first(records: DataFrame, partition_id: Column, replication_factor: Column, *keys: str) -> DataFrame:
    columns = [
        *event_columns(),
        F.col("topic_id"),
        partition_id.cast("int").alias("partition_id"),
        replication_factor.cast("int").alias("replication_factor"),
        (F.col("file_kind") == "snapshot").alias("from_snapshot"),
    ]
    order = ordered_by_state("source", *keys)
    chosen = records.select(*columns).withColumn("place", F.row_number().over(order))
    return chosen.where(F.col("place") == 1).drop("place")


def _with_end(steps: DataFrame, state: DataFrame) -> DataFrame:
    removed = removals(state).withColumnsRenamed(
        {"valid_to_offset": "removed_offset", "valid_to_ms": "removed_ms"}
    )
    joined = steps.join(removed, ["source", "topic_id"], "left").where(
        F.col("removed_offset").isNull() | (F.col("valid_from_offset") < F.col("removed_offset"))
    )
    # What was written for a topic after its removal, which only a damaged log holds, does not end anything.
    by_removal = F.col("removed_offset") < F.coalesce("next_offset", F.col("removed_offset") + 1)
    return joined.withColumns(
        {
            "valid_to_offset": F.when(by_removal, F.col("removed_offset")).otherwise(F.col("next_offset")),
            "valid_to_ms": F.when(by_removal, F.col("removed_ms")).otherwise(F.col("next_ms")),
            "ended_by": F.when(by_removal, REMOVED).when(F.col("next_offset").isNotNull(), ADDED),
        }
    )


TABLE = AuditTable(
    place=90,
    schema=TOPICS_HISTORY,
    description="Each topic between any two changes of the number of its partitions.",
    reads_partitions=True,
    build=lambda inputs: topics_history(inputs.partition_state),
)
