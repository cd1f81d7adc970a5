"""Facts about partitions: leaders that changed and why, and the times in which there was none."""

from typing import Any

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame
from kquorum.spark_replay.questions.unavailable import NO_LEADER, UNDER_MIN_ISR, unavailable
from kquorum.spark_replay.report.asked import Asked, series_of
from kquorum.spark_replay.report.facts import (
    ClusterState,
    Interval,
    LeaderChanges,
    Outage,
    Series,
    UncleanElection,
)

TOPICS_LISTED = 10
UNCLEAN_LISTED = 20
INTERVALS_LISTED = 25
OUTAGES_LISTED = 20
OUTAGES_MERGED = 300
# A fence of very many partitions fills several batches; they are one decision.
SAME_DECISION_MS = 2_000


def leader_changes(asked: Asked) -> tuple[LeaderChanges, dict[int, int]]:
    """The changes of leaders in the window, and how many partitions each broker lost by them."""
    changes = asked.during("leader_changes")
    by_bucket = {
        (row["bucket"], row["cause"]): row["count"]
        for row in changes.groupBy("bucket", "cause").count().collect()
    }
    by_cause: dict[str, int] = {}
    for (_, cause), count in by_bucket.items():
        by_cause[cause] = by_cause.get(cause, 0) + count
    topics = changes.groupBy("topic_name").count()
    listed = topics.orderBy(F.desc("count"), "topic_name").limit(TOPICS_LISTED).collect()
    unclean = _unclean(changes)
    first = unclean.orderBy("offset").limit(UNCLEAN_LISTED).collect()
    lost = changes.where(F.col("old_leader") >= 0).groupBy("old_leader").count().collect()
    return LeaderChanges(
        by_bucket=by_bucket,
        by_cause=dict(sorted(by_cause.items(), key=lambda item: (-item[1], item[0]))),
        by_topic=tuple((row["topic_name"] or "?", row["count"]) for row in listed),
        topics=topics.count() if len(listed) == TOPICS_LISTED else len(listed),
        unclean=tuple(UncleanElection(**row.asDict()) for row in first),
        unclean_total=changes.where("unclean").count() if first else 0,
        unclean_groups=len(first) if len(first) < UNCLEAN_LISTED else unclean.count(),
    ), {row["old_leader"]: row["count"] for row in lost}


def _unclean(changes: Frame) -> Frame:
    """The unclean elections with the columns of `UncleanElection`."""
    topic = F.coalesce("topic_name", F.lit("?")).alias("topic")
    grouped = changes.where("unclean").groupBy("timestamp_ms", topic, "new_leader", "controller_id")
    return grouped.agg(F.min("offset").alias("offset"), F.count("*").alias("partitions"))


def partition_series(asked: Asked, short: Frame) -> dict[str, Series]:
    """leaderless, under_min_isr, under_replicated and reassigning partitions over time; `short` as of `shortages`."""
    history = asked.overlapping("partition_history").select(
        *("from_ms", "to_ms", "is_open"),
        _under_replicated().alias("under_replicated"),
        ((F.size("adding_replicas") > 0) | (F.size("removing_replicas") > 0)).alias("reassigning"),
    )
    kinds = {name: F.col(name) for name in ("under_replicated", "reassigning")}
    lacking = {"leaderless": F.col("kind") == NO_LEADER, "under_min_isr": F.col("kind") == UNDER_MIN_ISR}
    intervals = short.select("kind", "from_ms", "to_ms", "is_open")
    return series_of(history, kinds, asked) | series_of(intervals, lacking, asked)


def _under_replicated() -> Column:
    return F.size("isr") < F.size("replicas")


def shortages(asked: Asked) -> Frame:
    """The intervals of `unavailable` in the window, cut to it, with `is_open` and where they begin (`offset`)."""
    start, end = asked.window.start_ms, asked.window.end_ms
    found = unavailable(asked.tables, asked.source, end).where(
        (F.col("from_ms") <= end)
        & F.coalesce(F.col("to_ms") > F.greatest(F.col("from_ms"), F.lit(start)), F.lit(True))
    )
    to_end = F.coalesce(F.col("to_ms"), F.lit(end))
    return found.select(
        *(
            "kind",
            "topic_id",
            "topic_name",
            "partition_id",
            "cause",
            "cause_broker",
            "fewest_in_sync",
            "min_isr",
        ),
        F.col("from_offset").alias("offset"),
        F.greatest(F.col("from_ms"), F.lit(start)).alias("from_ms"),
        F.least(to_end, F.lit(end)).alias("to_ms"),
        F.coalesce(F.col("to_ms") > end, F.lit(True)).alias("is_open"),
    )


def state_at_end(asked: Asked) -> ClusterState:
    (row,) = (
        asked.at_end("partition_history")
        .agg(
            F.count_distinct("topic_id").alias("topics"),
            F.count("*").alias("partitions"),
            F.count_if(F.col("leader") < 0).alias("leaderless"),
            F.count_if(_under_replicated()).alias("under_replicated"),
        )
        .collect()
    )
    return ClusterState(**row.asDict())


def longest_intervals(short: Frame, kind: str) -> tuple[tuple[Interval, ...], int]:
    """The longest shortages of one kind, and how many there are."""
    intervals = short.where(F.col("kind") == kind)
    length = F.col("to_ms") - F.col("from_ms")
    rows = intervals.orderBy(F.desc(length), "offset", "topic_name", "partition_id")
    listed = rows.limit(INTERVALS_LISTED).collect()
    found = tuple(
        Interval(
            topic=row["topic_name"] or "?",
            partition_id=row["partition_id"],
            start_ms=row["from_ms"],
            end_ms=row["to_ms"],
            is_open=row["is_open"],
            start_offset=row["offset"],
            detail="" if kind == NO_LEADER else f"{row['fewest_in_sync']} of {row['min_isr']} in sync",
        )
        for row in listed
    )
    return found, len(found) if len(found) < INTERVALS_LISTED else intervals.count()


def outages(asked: Asked, short: Frame) -> tuple[tuple[Outage, ...], int]:
    """What lost its leader at once, those with the most partitions for the longest time, in order of time."""
    grouped = (
        short.where(F.col("kind") == NO_LEADER)
        .groupBy("from_ms")
        .agg(
            F.max("to_ms").alias("end_ms"),
            F.min("offset").alias("start_offset"),
            F.count("*").alias("partitions"),
            F.count_distinct("topic_id").alias("topics"),
            F.min("topic_name").alias("example_topic"),
            F.count_if("is_open").alias("still_open"),
            F.sum(F.col("to_ms") - F.col("from_ms")).alias("partition_ms"),
            F.mode("cause").alias("cause"),
            F.sort_array(F.collect_set("cause_broker")).alias("old_leaders"),
        )
        .withColumnRenamed("from_ms", "start_ms")
    )
    rows = grouped.orderBy(F.desc("partition_ms"), "start_offset").limit(OUTAGES_MERGED).collect()
    total = len(rows) if len(rows) < OUTAGES_MERGED else grouped.count()
    controllers = _controllers_at(asked, [row["start_offset"] for row in rows])
    merged = _merged([_outage(row, controllers) for row in rows])
    worst = sorted(merged, key=lambda each: (-each.partition_ms, each.start_offset))[:OUTAGES_LISTED]
    return tuple(sorted(worst, key=lambda each: each.start_offset)), total - len(rows) + len(merged)


def _controllers_at(asked: Asked, offsets: list[int]) -> dict[int, int | None]:
    """Who led the quorum at each of the offsets."""
    if not offsets:
        return {}
    epochs = asked.table("quorum_epochs").withColumn("offset", F.explode(F.array(*map(F.lit, offsets))))
    held = epochs.where(
        (F.col("offset") >= F.col("start_offset"))
        & F.coalesce(F.col("offset") < F.col("end_offset"), F.lit(True))
    )
    return {row["offset"]: row["leader_id"] for row in held.select("offset", "leader_id").collect()}


def _outage(row: Any, controllers: dict[int, int | None]) -> Outage:
    values = row.asDict()
    values["old_leaders"] = tuple(values["old_leaders"])
    values["example_topic"] = values["example_topic"] or "?"
    return Outage(**values, controller_id=controllers.get(values["start_offset"]))


def _merged(found: list[Outage]) -> list[Outage]:
    """Batches right after each other, for the same reason, are one outage."""
    merged: list[Outage] = []
    for outage in sorted(found, key=lambda each: each.start_offset):
        before = merged[-1] if merged else None
        if before and _belongs(before, outage):
            merged[-1] = _joined(before, outage)
        else:
            merged.append(outage)
    return merged


def _belongs(before: Outage, outage: Outage) -> bool:
    return (
        0 <= outage.start_ms - before.start_ms <= SAME_DECISION_MS
        and (outage.cause, outage.old_leaders) == (before.cause, before.old_leaders)
        and outage.controller_id == before.controller_id
    )


def _joined(one: Outage, other: Outage) -> Outage:
    return Outage(
        start_ms=one.start_ms,
        end_ms=max(one.end_ms, other.end_ms),
        start_offset=one.start_offset,
        partitions=one.partitions + other.partitions,
        # One topic may be in both; without its partitions at hand the larger number is what is certain.
        topics=max(one.topics, other.topics),
        example_topic=min(one.example_topic, other.example_topic),
        still_open=one.still_open + other.still_open,
        partition_ms=one.partition_ms + other.partition_ms,
        cause=one.cause,
        old_leaders=one.old_leaders,
        controller_id=one.controller_id,
    )
