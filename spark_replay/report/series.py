"""How many of something there were over time, counted in Spark: the peak in each bucket of the window."""

from collections import defaultdict

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.report.asked import Asked
from kquorum.spark_replay.report.partition_values import Series


def series_of(intervals: DataFrame, kinds: dict[str, Column], asked: Asked) -> dict[str, Series]:
    """For each kind how many of the `intervals` (`Asked.overlapping`) that are of it hold at a time.

    Exact whatever the number of intervals: only sums within buckets, whose number is bounded, come to the driver.
    """
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
