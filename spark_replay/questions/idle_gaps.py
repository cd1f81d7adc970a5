"""When nothing was written: whether the quorum may have been without a leader, as far as the log tells.

An active controller of Kafka 3.3 and later writes a NoOpRecord when it had nothing else to write for
metadata.max.idle.interval.ms (500 ms if not configured). A longer gap before a new epoch means that there was no
leader which could write, or that all controllers were down; a gap within an epoch, that the leader stood still.
Followers get the very batches that the leader stamped, so it does not matter whose copy of the log is read.
"""

from collections.abc import Sequence
from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Window
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions.moments import time_text

NAMED: Final = 3
BUCKET: Final = 200_000
NEW_EPOCH, SAME_EPOCH = "new epoch", "same epoch"


# Elections that take less are no reason for a note.
_NOTED_MS = 2_000


def idle_gaps(tables: Tables, source: str, *, min_ms: int) -> Frame:
    """(kind, from_ms, to_ms, duration_ms, from_offset, to_offset, from_epoch, to_epoch, from_leader, to_leader,
    epochs_without_records) of each time that no batch was written for `min_ms` or longer; not sorted.

    `from_offset` is the last record before, `to_offset` the first after. `epochs_without_records` counts the epochs in
    between: elections without a winner, or whose winner wrote nothing that lasted.
    """
    batches = tables.frame("batches").where((F.col("source") == source) & (F.col("file_kind") == "log"))
    placed = batches.select(
        "base_offset",
        "last_offset",
        "timestamp_ms",
        "leader_epoch",
        F.floor(F.col("base_offset") / BUCKET).alias("bucket"),
    )
    state = F.struct("last_offset", "timestamp_ms", "leader_epoch")
    inside = Window.partitionBy("bucket").orderBy("base_offset")
    edges = placed.groupBy("bucket").agg(F.max_by(state, "base_offset").alias("last"))
    across = Window.orderBy("bucket")
    carried = edges.select("bucket", F.lag("last").over(across).alias("before_bucket"))
    pairs = placed.withColumn("before_inside", F.lag(state).over(inside)).join(carried.broadcast(), "bucket")
    before = F.coalesce("before_inside", "before_bucket")
    gaps = pairs.withColumn("before", before).where(
        F.col("timestamp_ms") - F.col("before.timestamp_ms") >= min_ms
    )
    return _with_leaders(gaps, tables, source)


def _with_leaders(gaps: Frame, tables: Tables, source: str) -> Frame:
    epochs = tables.frame("quorum_epochs").where(F.col("source") == source)
    from_leader, to_leader = (
        epochs.select(F.col("epoch").alias(f"{side}_epoch"), F.col("leader_id").alias(f"{side}_leader"))
        for side in ("from", "to")
    )
    found = gaps.select(
        F.col("before.timestamp_ms").alias("from_ms"),
        F.col("timestamp_ms").alias("to_ms"),
        (F.col("timestamp_ms") - F.col("before.timestamp_ms")).alias("duration_ms"),
        F.col("before.last_offset").alias("from_offset"),
        F.col("base_offset").alias("to_offset"),
        F.col("before.leader_epoch").alias("from_epoch"),
        F.col("leader_epoch").alias("to_epoch"),
    )
    is_new = F.col("to_epoch") > F.col("from_epoch")
    return (
        found.withColumn("kind", F.when(is_new, NEW_EPOCH).otherwise(SAME_EPOCH))
        .withColumn(
            "epochs_without_records", F.greatest(F.col("to_epoch") - F.col("from_epoch") - 1, F.lit(0))
        )
        .join(from_leader.broadcast(), "from_epoch", "left")
        .join(to_leader.broadcast(), "to_epoch", "left")
    )


def has_idle_records(tables: Tables, source: str) -> bool:
    """Whether the log has NoOpRecords at all: without them a gap says nothing."""
    records = tables.frame("records").where(
        (F.col("source") == source) & (F.col("file_kind") == "log") & (F.col("record_type") == "NoOpRecord")
    )
    return bool(records.select("offset").limit(1).collect())


def idle_gap_notes(
    tables: Tables,
    source: str,
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> tuple[str, ...]:
    """A sentence if no controller wrote for a while before a new epoch: none fenced a killed broker then."""
    found = idle_gaps(tables, source, min_ms=_NOTED_MS).where(F.col("kind") == NEW_EPOCH)
    if since_ms is not None:
        found = found.where(F.col("to_ms") > since_ms)
    if until_ms is not None:
        found = found.where(F.col("from_ms") < until_ms)
    longest = F.struct("duration_ms", "from_ms", "to_ms")
    row = found.agg(
        F.count("*").alias("total"),
        F.slice(F.sort_array(F.collect_list(longest), False), 1, NAMED).alias("longest"),
    ).collect()[0]
    return text_of_idle_gaps([(each["from_ms"], each["to_ms"]) for each in row["longest"]], row["total"])


def text_of_idle_gaps(longest: Sequence[tuple[int, int]], total: int) -> tuple[str, ...]:
    if not longest:
        return ()
    spans = ", ".join(f"from {time_text(start)} to {time_text(end)}" for start, end in sorted(longest))
    more = "" if total == len(longest) else f", and {total - len(longest):,} times more for a shorter time"
    return (
        f"no controller wrote {spans}{more}, until a new epoch began: what brokers did then is not in the log, and a "
        "leader on record may have been down; see `audit unavailable --quorum`",
    )
