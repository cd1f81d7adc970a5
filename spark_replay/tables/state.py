"""Which records make the state: the snapshot that a log begins with, the log after it, no aborted transactions."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_replay.bases import StateBase

LAST_OFFSET = 2**63 - 1
MARKERS = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")


def state_records(records: DataFrame, bases: Iterable[StateBase]) -> DataFrame:
    """The records of `records` to be replayed, in the order of (state_offset, offset)."""
    counted = counted_records(records, bases)
    return without_uncommitted(counted, uncommitted_transactions(counted))


def counted_records(records: DataFrame, bases: Iterable[StateBase]) -> DataFrame:
    """As `state_records`, with those of aborted transactions: the quorum's own records count within them too."""
    return records.where(_counts(bases))


def _counts(bases: Iterable[StateBase]) -> Column:
    counts = F.lit(False)
    for base in bases:
        in_log = (F.col("file_kind") == "log") & (F.col("offset") >= base.from_offset)
        in_snapshot = (F.col("file_kind") == "snapshot") & (F.col("file") == F.lit(base.snapshot))
        counts = counts | ((F.col("source") == base.source) & (in_log | in_snapshot))
    return counts


def without_uncommitted(records: DataFrame, intervals: DataFrame) -> DataFrame:
    """Drops the records of metadata transactions which were aborted, or were still open where the log ends.

    `intervals` are these (`uncommitted_transactions`): few, and so broadcast to the records.
    """
    inside = (
        (F.col("record.source") == F.col("gone.source"))
        & (F.col("record.file_kind") == "log")
        & F.col("record.offset").between(F.col("gone.begin_offset"), F.col("gone.end_offset"))
    )
    return records.alias("record").join(F.broadcast(intervals.alias("gone")), inside, "left_anti")


def uncommitted_transactions(records: DataFrame) -> DataFrame:
    """(source, begin_offset, end_offset), both inclusive, of each transaction that did not end well.

    A Begin that another Begin follows can only come from a damaged log; what lies between was never committed.
    """
    order = Window.partitionBy("source").orderBy("offset")
    markers = records.where((F.col("file_kind") == "log") & F.col("record_type").isin(*MARKERS))
    followed = markers.select(
        "source",
        "record_type",
        F.col("offset").alias("begin_offset"),
        F.lead("record_type").over(order).alias("next_type"),
        F.lead("offset").over(order).alias("next_offset"),
    )
    ended_by_next = F.col("next_offset") - F.when(F.col("next_type") == MARKERS[0], 1).otherwise(0)
    return followed.where(
        (F.col("record_type") == MARKERS[0])
        & (F.col("next_type").isNull() | (F.col("next_type") != MARKERS[1]))
    ).select("source", "begin_offset", F.coalesce(ended_by_next, F.lit(LAST_OFFSET)).alias("end_offset"))
