"""Intervals in which a partition could not serve: without a leader, or short of in-sync replicas."""

from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column, Window
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions.causes import partition_steps, with_cause
from kquorum.spark_replay.questions.entities import is_topic
from kquorum.spark_replay.questions.min_isr import with_min_isr

NO_LEADER, UNDER_MIN_ISR = "no_leader", "under_min_isr"
KINDS: Final = (NO_LEADER, UNDER_MIN_ISR)
BY_CONFIG: Final = "min_isr_config"
OPEN, REMOVED, OVER = "open", "topic removed", "over"
_PARTITION = ("source", "topic_id", "topic_name", "partition_id")


def unavailable(
    tables: Tables, source: str, end_ms: int | None, *, topic: str | None = None, kind: str | None = None
) -> Frame:
    """One row for each interval, not sorted: `kind` is no_leader, or under_min_isr (fewer in sync than
    min.insync.replicas asked for, see `min_isr`), which may lie within one another.

    `from_offset`, `from_ms`, `to_offset` and `to_ms` (exclusive; null while it is open at `end_ms`, where the log
    ends), `duration_ms`, `ended` (over, topic removed or open), the `leader` and `isr` it came to at its beginning,
    `fewest_in_sync` and the largest `min_isr` within it, and `cause` and `cause_broker` of its beginning (see `causes`;
    min_isr_config where a config was changed), `end_cause` and `end_cause_broker` of its end.
    """
    history = tables.frame("partition_history").where(F.col("source") == source)
    if topic is not None:
        history = history.where(is_topic(topic))
    steps = with_next(with_cause(partition_steps(history), tables, source)).shared()
    # A snapshot that tells of a partition twice makes a state that never held.
    lasted = F.coalesce(F.col("valid_to_offset") > F.col("valid_from_offset"), F.lit(True))
    short = steps.where(lasted & ((F.col("leader") < 0) | (F.size("isr") < F.size("replicas"))))
    wanted = [each for each in KINDS if kind in (None, each)]
    frames = []
    if NO_LEADER in wanted:
        leaderless = short.where(F.col("leader") < 0)
        frames.append(
            _joined(
                leaderless.withColumns(
                    {
                        "min_isr": F.lit(None).cast("int"),
                        "is_first_piece": F.lit(True),
                        "is_last_piece": F.lit(True),
                    }
                ),
                NO_LEADER,
            )
        )
    if UNDER_MIN_ISR in wanted:
        configs = tables.frame("configs_history").where(F.col("source") == source)
        cut = with_min_isr(short.where(F.size("isr") < F.size("replicas")), configs)
        frames.append(_joined(cut.where(F.size("isr") < F.col("min_isr")), UNDER_MIN_ISR))
    both = frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])
    return both.withColumn("duration_ms", _duration(end_ms))


def with_next(steps: Frame) -> Frame:
    """Adds `has_next`, and `next_cause` and `next_cause_broker` of the step behind each; null in the last."""
    order = Window.partitionBy("source", "topic_id", "partition_id").orderBy(
        "valid_from_offset", "partition_epoch"
    )
    following = {f"next_{name}": F.lead(name).over(order) for name in ("cause", "cause_broker")}
    return steps.withColumns({**following, "has_next": F.lead(F.lit(True), 1, False).over(order)})


def _joined(pieces: Frame, kind: str) -> Frame:
    """Pieces that follow each other without a gap are one interval."""
    order = Window.partitionBy("source", "topic_id", "partition_id").orderBy(
        "valid_from_offset", "partition_epoch"
    )
    goes_on = F.lag("valid_to_offset").over(order) == F.col("valid_from_offset")
    begins = F.when(F.coalesce(goes_on, F.lit(False)), 0).otherwise(1)
    so_far = order.up_to_here()
    numbered = pieces.withColumn("begins", begins).withColumn("interval", F.sum("begins").over(so_far))
    first = F.col("valid_from_offset")
    cause = F.when(F.col("is_first_piece"), F.coalesce("cause", F.lit("other"))).otherwise(BY_CONFIG)
    end_cause = F.when(~F.col("is_last_piece"), BY_CONFIG).when(
        F.col("has_next"), F.coalesce("next_cause", F.lit("other"))
    )
    grouped = (
        numbered.withColumns({"cause": cause, "end_cause": end_cause})
        .groupBy(*_PARTITION, "interval")
        .agg(
            F.lit(kind).alias("kind"),
            F.min(first).alias("from_offset"),
            F.min_by("valid_from_ms", first).alias("from_ms"),
            F.max_by("valid_to_offset", first).alias("to_offset"),
            F.max_by("valid_to_ms", first).alias("to_ms"),
            F.min_by("leader", first).alias("leader"),
            F.min_by("isr", first).alias("isr"),
            F.min_by("replicas", first).alias("replicas"),
            F.min(F.size("isr")).alias("fewest_in_sync"),
            F.max("min_isr").alias("min_isr"),
            F.min_by("cause", first).alias("cause"),
            F.min_by("cause_broker", first).alias("cause_broker"),
            F.max_by("end_cause", first).alias("end_cause"),
            F.max_by("next_cause_broker", first).alias("end_cause_broker"),
        )
    )
    ended = (
        F.when(F.col("to_offset").isNull(), OPEN).when(F.col("end_cause").isNull(), REMOVED).otherwise(OVER)
    )
    return grouped.withColumn("ended", ended).drop("interval")


def _duration(end_ms: int | None) -> Column:
    """Up to the end of the log while it is open; never less than nothing, though clocks may go back."""
    end = F.coalesce("to_ms", F.lit(end_ms).cast("long"))
    return F.greatest(end - F.col("from_ms"), F.lit(0))


def alike(intervals: Frame) -> Frame:
    """Intervals that several partitions had from the same to the same moment and for the same cause, as one row.

    `partitions` and `topics` count them; offset, name and number are the first one's.
    """
    same = (
        *("kind", "from_ms", "to_ms", "duration_ms", "ended", "cause", "cause_broker", "end_cause"),
        *("end_cause_broker", "fewest_in_sync", "min_isr"),
    )
    one = F.struct("from_offset", "topic_name", "topic_id", "partition_id")
    return (
        intervals.groupBy(*same)
        .agg(
            F.min(one).alias("one"),
            F.count_distinct("topic_id", "partition_id").alias("partitions"),
            F.count_distinct("topic_id").alias("topics"),
        )
        .select(*same, "one.*", "partitions", "topics")
    )


def with_sizes(intervals: Frame) -> Frame:
    """As `alike`, but each by itself."""
    return intervals.withColumns({"partitions": F.lit(1), "topics": F.lit(1)})
