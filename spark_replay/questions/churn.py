"""How restless a cluster was: its elections, its flapping brokers, and the partitions that changed most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column, Window
from kquorum.spark_replay.engine.frame import Frame, Tables

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
UNITS: Final = {"hour": HOUR_MS, "day": DAY_MS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From `since_ms` on and before `until_ms`; None is unbounded."""

    since_ms: int | None = None
    until_ms: int | None = None

    def holds(self, time_ms: Column) -> Column:
        inside = F.lit(True)
        if self.since_ms is not None:
            inside = inside & (time_ms >= self.since_ms)
        if self.until_ms is not None:
            inside = inside & (time_ms < self.until_ms)
        return inside


def churn(tables: Tables, source: str, span: Span, *, unit: str = "hour") -> Mapping[str, Frame]:
    """Four frames, not sorted: `elections` (of the quorum, per hour or day), `leader_changes` (by cause),
    `brokers` (how often each was fenced, unfenced, registered) and `partitions` (changes of each)."""
    of_source = F.col("source") == source
    return {
        "elections": elections(tables.frame("quorum_epochs").where(of_source), span, UNITS[unit]),
        "leader_changes": causes(tables.frame("leader_changes").where(of_source), span),
        "brokers": flapping(tables.frame("brokers_history").where(of_source), span),
        "partitions": hottest(
            tables.frame("leader_changes").where(of_source),
            tables.frame("isr_changes").where(of_source),
            span,
        ),
    }


def elections(epochs: Frame, span: Span, unit_ms: int) -> Frame:
    """(from_ms, elections, epochs, leaders) of each hour or day with an election.

    `elections` counts the epochs that left records, `epochs` how far the epoch went up: more where elections were not
    won, or left nothing that lasted.
    """
    order = Window.partitionBy("source").orderBy("epoch")
    before = F.coalesce(F.lag("epoch").over(order), F.col("epoch") - 1)
    numbered = epochs.withColumn("went_up", F.col("epoch") - before)
    from_ms = F.col("start_ms") - F.pmod(F.col("start_ms"), F.lit(unit_ms))
    chosen = numbered.where(span.holds(F.col("start_ms")))
    return chosen.groupBy(from_ms.alias("from_ms")).agg(
        F.count("*").alias("elections"),
        F.sum("went_up").alias("epochs"),
        F.sort_array(F.collect_set("leader_id")).alias("leaders"),
    )


def causes(changes: Frame, span: Span) -> Frame:
    """(cause, changes, partitions, to_none) of the changes of partitions' leaders."""
    chosen = changes.where(span.holds(F.col("timestamp_ms")))
    return chosen.groupBy("cause").agg(
        F.count("*").alias("changes"),
        F.count_distinct("topic_id", "partition_id").alias("partitions"),
        F.count_if(F.col("new_leader") < 0).alias("to_none"),
    )


def flapping(states: Frame, span: Span) -> Frame:
    """(broker_id, fenced, unfenced, shutdowns, registered, fenced_ms, last_ms) of each broker with any of them.

    Only what changed counts: a fenced broker that is fenced again did not flap.
    `fenced_ms` is how long it was fenced, of the spells that begin in the time asked for and are over.
    """
    order = Window.partitionBy("source", "broker_id").orderBy("valid_from_offset")
    same = F.lag("fenced").over(order).eqNullSafe(F.col("fenced")) & F.col("change").isin(
        "fenced", "unfenced"
    )
    chosen = states.withColumn("is_same", same).where(span.holds(F.col("valid_from_ms")))
    change = F.when(~F.col("is_same"), F.col("change"))
    lasted = F.try_subtract(F.col("valid_to_ms"), F.col("valid_from_ms"))
    return chosen.groupBy("broker_id").agg(
        F.count_if(change == "fenced").alias("fenced"),
        F.count_if(change == "unfenced").alias("unfenced"),
        F.count_if(change == "controlled_shutdown").alias("shutdowns"),
        F.count_if(change == "registered").alias("registered"),
        F.sum(F.when(F.col("fenced"), lasted)).alias("fenced_ms"),
        F.max("valid_from_ms").alias("last_ms"),
    )


def hottest(leader_changes: Frame, isr_changes: Frame, span: Span) -> Frame:
    """(topic_name, topic_id, partition_id, changes, leader_changes, isr_shrinks, isr_expands, unclean, last_ms)."""
    key = ("topic_name", "topic_id", "partition_id", "timestamp_ms")
    none = F.lit(False)
    led = leader_changes.select(
        *key, F.lit(True).alias("led"), F.col("unclean"), none.alias("shrunk"), none.alias("grew")
    )
    shrunk, grew = F.size("left_isr") > 0, F.size("joined_isr") > 0
    isr = isr_changes.select(
        *key, none.alias("led"), none.alias("unclean"), shrunk.alias("shrunk"), grew.alias("grew")
    )
    both = led.unionAll(isr).where(span.holds(F.col("timestamp_ms")))
    return both.groupBy("topic_name", "topic_id", "partition_id").agg(
        F.count("*").alias("changes"),
        F.count_if(F.col("led")).alias("leader_changes"),
        F.count_if(F.col("shrunk")).alias("isr_shrinks"),
        F.count_if(F.col("grew")).alias("isr_expands"),
        F.count_if(F.col("unclean")).alias("unclean"),
        F.max("timestamp_ms").alias("last_ms"),
    )
