"""What the gathering of facts shares: the tables of one log, and the stretch of time that is asked about."""

from collections import defaultdict
from dataclasses import dataclass

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.column import Window as SparkWindow
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.report.facts import Series
from kquorum.spark_replay.report.times import Window, window_of


@dataclass(frozen=True, slots=True)
class Asked:
    """One log of an audit, and a window of time in it."""

    tables: Tables
    source: str
    window: Window

    def table(self, name: str) -> Frame:
        """The rows of the log, whatever their time."""
        return self.tables.frame(name).where(F.col("source") == self.source)

    def during(self, name: str, time: str = "timestamp_ms") -> Frame:
        """The rows whose moment lies in the window, with the `bucket` that it falls into."""
        rows = self.table(name).where(F.col(time).between(self.window.start_ms, self.window.end_ms))
        return rows.withColumn("bucket", self.bucket(F.col(time)))

    def overlapping(self, name: str) -> Frame:
        """The intervals of a history that reach into the window, with `from_ms`, `to_ms` cut to it and `is_open` for
        what still holds at its end."""
        start, end = self.window.start_ms, self.window.end_ms
        held = self.table(name).where(
            (F.col("valid_from_ms") <= end)
            & F.coalesce(F.col("valid_to_ms") > start, F.lit(True))
            & F.coalesce(F.col("valid_to_ms") > F.col("valid_from_ms"), F.lit(True))
        )
        return held.withColumns(
            {
                "is_open": F.coalesce(F.col("valid_to_ms") > end, F.lit(True)),
                "from_ms": F.greatest(F.col("valid_from_ms"), F.lit(start)),
                "to_ms": F.least(F.coalesce(F.col("valid_to_ms"), F.lit(end)), F.lit(end)),
            }
        )

    def at_end(self, name: str) -> Frame:
        """The rows of a history that hold at the end of the window."""
        return self.overlapping(name).where("is_open")

    def bucket(self, time: Column) -> Column:
        window = self.window
        return F.floor((time - window.origin_ms) / window.bucket_ms).cast("int")


def window_in(
    tables: Tables, source: str, since_ms: int | None = None, until_ms: int | None = None
) -> Window | None:
    """The time between two moments, both inclusive, as far as the log reaches; None outside the log. The requested time
    is shown whole, not only up to the records in it: a gap at its edge may matter."""
    batches = tables.frame("batches").where((F.col("source") == source) & (F.col("file_kind") == "log"))
    (log,) = batches.agg(F.min("timestamp_ms").alias("start"), F.max("timestamp_ms").alias("end")).collect()
    if log["start"] is None:
        return None
    start = log["start"] if since_ms is None else max(since_ms, log["start"])
    end = log["end"] if until_ms is None else min(until_ms, log["end"])
    return window_of(start, end) if start <= end else None


# How many of something there were over time, counted in Spark: the peak in each bucket of the window.


def series_of(intervals: Frame, kinds: dict[str, Column], asked: Asked) -> dict[str, Series]:
    """For each kind, how many of its `intervals` (`Asked.overlapping`) hold at a time. Exact for any number of
    intervals: only sums within a bounded number of buckets reach the driver."""
    each = [step for kind, holds in kinds.items() for step in _steps(kind, holds)]
    steps = intervals.select(F.explode(F.array(*each)).alias("of")).select("of.*").where("holds")
    # Where one interval ends and the next begins at the same moment, nothing changes.
    moments = steps.groupBy("kind", "at_ms").agg(F.sum("step").alias("step"), F.sum("length").alias("length"))
    bucketed = moments.withColumn("bucket", asked.bucket(F.col("at_ms")))
    order = SparkWindow.partitionBy("kind", "bucket").orderBy("at_ms")
    rows = (
        bucketed.withColumn("level", F.sum("step").over(order))
        .groupBy("kind", "bucket")
        .agg(
            F.sum("step").alias("step"),
            F.max("level").alias("level"),
            F.sum("length").alias("length"),
            F.min("at_ms").alias("first_ms"),
        )
        .collect()
    )
    found: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    summed: dict[str, int] = defaultdict(int)
    for row in rows:
        # What ends at the very beginning of a bucket is not in it.
        goes_on = row["first_ms"] > asked.window.bucket_start(row["bucket"])
        highest = max(row["level"], 0) if goes_on else row["level"]
        found[row["kind"]][row["bucket"]] = (row["step"], highest)
        summed[row["kind"]] += row["length"]
    return {
        kind: Series(peaks=_peaks(found[kind], asked.window.buckets), summed_ms=summed[kind])
        for kind in kinds
    }


def _steps(kind: str, holds: Column) -> tuple[Column, Column]:
    """One up where an interval begins, and one down where it ends, if it does."""
    name, length = F.lit(kind).alias("kind"), (F.col("to_ms") - F.col("from_ms")).alias("length")
    up = F.struct(name, holds.alias("holds"), F.col("from_ms").alias("at_ms"), F.lit(1).alias("step"), length)
    ends = (holds & ~F.col("is_open")).alias("holds")
    no_length = F.lit(0).cast("long").alias("length")
    down = F.struct(name, ends, F.col("to_ms").alias("at_ms"), F.lit(-1).alias("step"), no_length)
    return up, down


def _peaks(by_bucket: dict[int, tuple[int, int]], buckets: int) -> tuple[int, ...]:
    """From each bucket's sum of steps and highest level within, both counted from the level before it."""
    peaks, level = [], 0
    for bucket in range(buckets):
        step, highest = by_bucket.get(bucket, (0, 0))
        peaks.append(level + highest)
        level += step
    return tuple(peaks)
