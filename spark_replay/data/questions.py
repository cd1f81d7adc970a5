"""Questions to the partitions' logs: hanging transactions, replicas that differ, lag of groups, and who led.

The tables are those of `audit data`, of the replicas of one cluster. Who led, and which replicas were in sync, is in
the tables of that cluster's metadata log in the same audit.
"""

from typing import Final

from kquorum.spark_replay.data.words import CLEANER, COMMITTED, HIGH_WATERMARK, OPEN
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Window
from kquorum.spark_replay.engine.frame import Frame, Tables

_PARTITION: Final = ("topic_name", "partition_id")
# States in which the coordinator still has to end the transaction.
_UNDER_WAY: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


def hanging_transactions(tables: Tables) -> Frame:
    """(topic_name, partition_id, producer_id, producer_epoch, first_offset, first_ms, duration_ms, replicas,
    transactional_id, state, is_hanging) of each transaction that no marker has ended.

    It hangs where its coordinator does not know it as under way in this partition: then nothing will end it, and
    consumers with read_committed wait at its first offset (KIP-664). Where no log of a coordinator was read, `state` is
    null and so is `is_hanging`.
    """
    unended = tables.frame("transactions").where(F.col("outcome") == OPEN)
    replicas = unended.groupBy(*_PARTITION, "producer_id", "producer_epoch", "first_offset").agg(
        F.min("first_ms").alias("first_ms"),
        F.max("duration_ms").alias("duration_ms"),
        F.count_distinct("source").alias("replicas"),
    )
    states = tables.frame("transaction_states").where(F.col("producer_id").isNotNull())
    newest = states.groupBy("producer_id").agg(
        F.max_by(F.struct("transactional_id", "state", "partitions"), "offset").alias("known")
    )
    here = F.concat(F.col("topic_name"), F.lit("-"), F.col("partition_id").cast("string"))
    is_known = F.col("known.state").isin(*_UNDER_WAY) & F.array_contains("known.partitions", here)
    return replicas.join(newest, ["producer_id"], "left").select(
        *_PARTITION,
        *("producer_id", "producer_epoch", "first_offset", "first_ms", "duration_ms", "replicas"),
        F.col("known.transactional_id").alias("transactional_id"),
        F.col("known.state").alias("state"),
        F.when(F.col("known").isNotNull(), ~F.coalesce(is_known, F.lit(False))).alias("is_hanging"),
    )


def differing_replicas(tables: Tables) -> Frame:
    """(topic_name, partition_id, replicas, from_offset, to_offset, batches, first_offset, held) of each partition whose
    replicas do not hold the same batches.

    Compared are the offsets that all replicas reach: from the latest beginning, and from where the cleaner of each is
    done, up to the lowest high watermark (exclusive `to_offset`). `batches` counts the base offsets at which replicas
    differ, `first_offset` is the first of them, and `held` what each replica has there: source, last_offset, crc.
    """
    batches = tables.frame("data_batches")
    reach = batches.groupBy("source", *_PARTITION).agg(
        F.min("base_offset").alias("start"), (F.max("last_offset") + 1).alias("end")
    )
    marks = tables.frame("checkpoints").where(F.col("kind").isin(HIGH_WATERMARK, CLEANER))
    known = marks.groupBy("source", *_PARTITION).agg(
        F.max(F.when(F.col("kind") == HIGH_WATERMARK, F.col("offset"))).alias("high_watermark"),
        F.max(F.when(F.col("kind") == CLEANER, F.col("offset"))).alias("cleaned"),
    )
    bounded = reach.join(known, ["source", *_PARTITION], "left").select(
        "source",
        *_PARTITION,
        F.greatest("start", "cleaned").alias("start"),
        F.least("end", "high_watermark").alias("end"),
    )
    common = bounded.groupBy(*_PARTITION).agg(
        F.count("*").alias("replicas"), F.max("start").alias("from_offset"), F.min("end").alias("to_offset")
    )
    compared = batches.join(common.where(F.col("replicas") > 1), list(_PARTITION)).where(
        (F.col("base_offset") >= F.col("from_offset")) & (F.col("last_offset") < F.col("to_offset"))
    )
    at_offset = compared.groupBy(*_PARTITION, "replicas", "from_offset", "to_offset", "base_offset").agg(
        F.count_distinct("source").alias("holders"),
        F.count_distinct("last_offset", "crc").alias("versions"),
        F.sort_array(F.collect_list(F.struct("source", "last_offset", "crc"))).alias("held"),
    )
    differing = at_offset.where((F.col("holders") < F.col("replicas")) | (F.col("versions") > 1))
    return differing.groupBy(*_PARTITION, "replicas", "from_offset", "to_offset").agg(
        F.count("*").alias("batches"),
        F.min("base_offset").alias("first_offset"),
        F.min_by("held", "base_offset").alias("held"),
    )


def lag_over_time(tables: Tables, group_id: str) -> Frame:
    """(topic_name, partition_id, commit_ms, committed_offset, end_offset, lag) of each commit of the group that
    counted.

    `end_offset` is behind the last record that was written up to then, by the records' times; null where the log has
    none as old.
    """
    offsets = tables.frame("group_offsets_history")
    counted = offsets.where(
        (F.col("group_id") == group_id)
        & F.col("committed_offset").isNotNull()
        & F.coalesce(F.col("outcome") == COMMITTED, F.lit(True))
    )
    # Each replica of the group's partition has the same record.
    commits = counted.select(*_PARTITION, "commit_ms", "committed_offset", "offset").distinct()
    marked = commits.select(
        *_PARTITION,
        F.col("commit_ms").alias("time_ms"),
        "committed_offset",
        "offset",
        F.lit(1).alias("is_commit"),
    )
    ends = tables.frame("data_batches").select(
        *_PARTITION,
        F.col("max_timestamp_ms").alias("time_ms"),
        (F.col("last_offset") + 1).alias("end"),
        F.lit(0).alias("is_commit"),
    )
    order = Window.partitionBy(*_PARTITION).orderBy("time_ms", "is_commit", "offset").up_to_here()
    found = marked.unionByName(ends).withColumn("end_offset", F.max("end").over(order))
    behind = F.greatest(F.col("end_offset") - F.col("committed_offset"), F.lit(0))
    return found.where(F.col("is_commit") == 1).select(
        *_PARTITION,
        F.col("time_ms").alias("commit_ms"),
        "committed_offset",
        "end_offset",
        F.when(F.col("end_offset").isNotNull(), behind).alias("lag"),
    )


def written_by(tables: Tables, metadata_source: str | None) -> Frame:
    """(topic_name, partition_id, leader_epoch, first_offset, last_offset, first_ms, last_ms, batches, leader) of each
    leader epoch that left batches: the leader is that of the metadata log `metadata_source`, null without one."""
    batches = _batches_once(tables)
    epochs = batches.groupBy(*_PARTITION, "leader_epoch").agg(
        F.min("base_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.min("max_timestamp_ms").alias("first_ms"),
        F.max("max_timestamp_ms").alias("last_ms"),
        F.count("*").alias("batches"),
    )
    if metadata_source is None:
        return epochs.withColumn("leader", F.lit(None).cast("int"))
    history = tables.frame("partition_history").where(
        (F.col("source") == metadata_source) & (F.col("leader") >= 0)
    )
    leaders = history.groupBy(*_PARTITION, "leader_epoch").agg(F.max("leader").alias("leader"))
    return epochs.join(leaders, [*_PARTITION, "leader_epoch"], "left")


def on_one_replica(tables: Tables, metadata_source: str) -> Frame:
    """(topic_name, partition_id, leader_epoch, leader, replicas, since_ms, first_offset, last_offset, batches) of the
    batches that were written while the leader alone was in sync: acks=all then means this one replica.

    By the batches' times and the leader epochs, so the edges are as exact as the clocks of producers and controllers.
    """
    history = tables.frame("partition_history").where(
        (F.col("source") == metadata_source) & (F.size("isr") == 1) & (F.size("replicas") > 1)
    )
    alone = history.select(
        *_PARTITION,
        "leader_epoch",
        "leader",
        F.size("replicas").alias("replicas"),
        "valid_from_ms",
        "valid_to_ms",
    )
    time_ms = F.col("max_timestamp_ms")
    within = (time_ms >= F.col("valid_from_ms")) & F.coalesce(time_ms < F.col("valid_to_ms"), F.lit(True))
    written = _batches_once(tables).join(alone, [*_PARTITION, "leader_epoch"]).where(within)
    return written.groupBy(
        *_PARTITION, "leader_epoch", "leader", "replicas", F.col("valid_from_ms").alias("since_ms")
    ).agg(
        F.min("base_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.count("*").alias("batches"),
    )


def _batches_once(tables: Tables) -> Frame:
    """Of all replicas together."""
    columns = (*_PARTITION, "leader_epoch", "base_offset", "last_offset", "max_timestamp_ms", "crc")
    return tables.frame("data_batches").select(*columns).distinct()
