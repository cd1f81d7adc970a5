"""What the gathering of facts shares: the tables of one log, and the stretch of time that is asked about."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_folder import AuditTables
from kquorum.spark_replay.report.window import Window, window_of


@dataclass(frozen=True, slots=True)
class Asked:
    """One log of an audit, and a window of time in it."""

    tables: AuditTables
    source: str
    window: Window

    def table(self, name: str) -> DataFrame:
        """The rows of the log, whatever their time."""
        return self.tables.table(name).where(F.col("source") == self.source)

    def during(self, name: str, time: str = "timestamp_ms") -> DataFrame:
        """The rows whose moment lies in the window, with the `bucket` that it falls into."""
        rows = self.table(name).where(F.col(time).between(self.window.start_ms, self.window.end_ms))
        return rows.withColumn("bucket", self.bucket(F.col(time)))

    def overlapping(self, name: str) -> DataFrame:
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

    def at_end(self, name: str) -> DataFrame:
        """The rows of a history that hold at the end of the window."""
        return self.overlapping(name).where("is_open")

    def bucket(self, time: Column) -> Column:
        window = self.window
        return F.floor((time - window.origin_ms) / window.bucket_ms).cast("int")


def window_in(
    tables: AuditTables, source: str, since_ms: int | None = None, until_ms: int | None = None
) -> Window | None:
    """The time between two moments, both inclusive, as far as the log reaches; None where it does not reach at all.

    What was asked for is shown whole, not only up to the records in it: the silence at its edge may be the point.
    """
    batches = tables.table("batches").where((F.col("source") == source) & (F.col("file_kind") == "log"))
    (log,) = batches.agg(F.min("timestamp_ms").alias("start"), F.max("timestamp_ms").alias("end")).collect()
    if log["start"] is None:
        return None
    start = log["start"] if since_ms is None else max(since_ms, log["start"])
    end = log["end"] if until_ms is None else min(until_ms, log["end"])
    return window_of(start, end) if start <= end else None
