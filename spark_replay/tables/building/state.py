"""Which records make the state: the snapshot that a log begins with, the log after it, no aborted transactions."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.rows import MARKERS

LAST_OFFSET = 2**63 - 1
_NEW_LEADER = "LeaderChange"
_LOST = ""


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
        (F.col("record.source") == F.col("aborted.source"))
        & (F.col("record.file_kind") == "log")
        & F.col("record.offset").between(F.col("aborted.begin_offset"), F.col("aborted.end_offset"))
    )
    return records.alias("record").join(F.broadcast(intervals.alias("aborted")), inside, "left_anti")


def uncommitted_transactions(records: DataFrame, damage: DataFrame | None = None) -> DataFrame:
    """(source, begin_offset, end_offset), both inclusive, of each transaction that did not end well.

    A Begin with neither End nor Abort behind it lost its End, or is the last thing that the log tells of. What was lost
    must not take the rest of the log with it: the transaction reaches as far as the next Begin, the next leader (who
    aborts an open transaction before all else) or the next place of the table `damage`.
    """
    newest_first = Window.partitionBy("source").orderBy(F.desc("offset"), F.desc("record_type"))
    later = newest_first.rowsBetween(Window.unboundedPreceding, -1)
    kind = F.col("record_type")
    marker = F.when(kind.isin(*MARKERS), F.struct("record_type", "offset"))
    followed = _places(records, damage).select(
        "source",
        "record_type",
        F.col("offset").alias("begin_offset"),
        F.last(marker, ignorenulls=True).over(later).alias("next"),
        F.lag("offset").over(newest_first).alias("next_offset"),
    )
    is_aborted = F.col("next.record_type") == MARKERS[2]
    end_offset = F.when(is_aborted, F.col("next.offset")).otherwise(F.col("next_offset") - 1)
    return followed.where(
        (kind == MARKERS[0]) & (F.col("next").isNull() | (F.col("next.record_type") != MARKERS[1]))
    ).select("source", "begin_offset", F.coalesce(end_offset, F.lit(LAST_OFFSET)).alias("end_offset"))


def _places(records: DataFrame, damage: DataFrame | None) -> DataFrame:
    """Where in a log transactions begin and end, or come to an end that is not written: `_LOST` sorts first."""
    is_log = F.col("file_kind") == "log"
    marks = records.where(is_log & F.col("record_type").isin(*MARKERS, _NEW_LEADER))
    places = marks.select("source", "record_type", "offset")
    if damage is None:
        return places
    lost = damage.where(is_log & F.col("offset").isNotNull())
    return places.unionByName(lost.select("source", F.lit(_LOST).alias("record_type"), "offset"))
