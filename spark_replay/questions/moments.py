"""Moments of a log: the record that an offset or a time refers to, and the state of the cluster there.

A metadata transaction takes effect at its end: within a committed one the state is that before it began.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.decode.rows import MARKERS
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column, Window
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions.log_gaps import is_cut, log_gaps, source_notes

BEGIN, END, ABORT = MARKERS
IDLE_GAP_MS = 10_000


class NoSuchMoment(Exception):
    """The log does not reach there; the message says what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Right behind the record at `offset`, as the log has it; `timestamp_ms` is of its batch.

    `state_offset` is the last record that counts for the state: less than `offset` inside a metadata transaction. The
    quorum's own records (voters, kraft.version, leaders) count at once. `notes` are sentences for the user.
    `is_cut`: the log is damaged here, and nothing beyond can be read.
    """

    source: str
    offset: int
    state_offset: int
    timestamp_ms: int | None = None
    notes: tuple[str, ...] = ()
    is_cut: bool = False


def moment_at_offset(tables: Tables, source: str, offset: int) -> Moment:
    """Right behind the record at `offset`. Raises NoSuchMoment for one that the log does not reach."""
    known = tables.source(source)
    first, last = _reach(known)
    if not first <= offset <= last:
        raise NoSuchMoment(f"{source}: there is no state at offset {offset}; {_what_it_holds(known)}")
    return _moment(tables, known, offset, ())


def moment_at_time(tables: Tables, source: str, time_ms: int) -> Moment:
    """Before the first batch that is later than `time_ms`, which may be behind the end of the log.

    Raises NoSuchMoment for a time before the log and the snapshot that it begins with.
    """
    known = tables.source(source)
    first, last = _reach(known)
    stamps = F.col("timestamp_ms")
    later = stamps > time_ms
    row = (
        log_batches(tables, source)
        .agg(
            F.min(F.when(later, F.col("base_offset"))).alias("following"),
            F.max(F.when(~later, F.col("last_offset"))).alias("newest"),
            F.min_by(stamps, F.when(later, F.col("base_offset"))).alias("following_ms"),
            F.max_by(stamps, F.when(~later, F.col("last_offset"))).alias("newest_ms"),
            F.min(stamps).alias("first_ms"),
            F.max_by("timestamp_ms", "last_offset").alias("last_ms"),
        )
        .collect()[0]
    )
    if row["following"] is None:
        at_end = _moment(tables, known, last, ())
        return replace(at_end, notes=(*_behind_the_end(at_end, time_ms, row["last_ms"]), *at_end.notes))
    offset = row["following"] - 1
    if offset < first or (offset < (known.start_offset or 0) and not _base_is_as_old(tables, known, time_ms)):
        raise NoSuchMoment(
            f"{source}: nothing is known of {time_text(time_ms)}; the log begins at offset {known.start_offset}, "
            f"{time_text(row['first_ms'])}"
        )
    notes: tuple[str, ...] = ()
    if row["newest"] is not None and row["newest"] > offset:
        notes = (
            f"the clocks of the controllers went back: records up to offset {row['newest']} are stamped no later "
            f"than {time_text(time_ms)}; this is the state before the first one that is stamped later",
        )
    elif row["newest_ms"] is not None and row["following_ms"] - row["newest_ms"] > IDLE_GAP_MS:
        notes = (
            f"nothing was written from {time_text(row['newest_ms'])} to {time_text(row['following_ms'])}: the "
            "state did not change in that time; `audit unavailable --quorum` lists such idle gaps",
        )
    return _moment(tables, known, offset, notes)


def last_moment(tables: Tables, source: str) -> Moment:
    """The end of the log."""
    known = tables.source(source)
    return _moment(tables, known, _reach(known)[1], ())


def first_moment(tables: Tables, source: str) -> Moment:
    """The oldest state that is known: that of the snapshot which the log begins with, or at its first record."""
    known = tables.source(source)
    return _moment(tables, known, _reach(known)[0], ())


def committed_transactions(records: Frame) -> Frame:
    """(source, begin_offset, end_offset) of each metadata transaction that ended well; both are its markers'."""
    order = Window.partitionBy("source").orderBy("offset")
    markers = records.where((F.col("file_kind") == "log") & F.col("record_type").isin(*MARKERS))
    followed = markers.select(
        "source",
        "record_type",
        F.col("offset").alias("begin_offset"),
        F.lead("record_type").over(order).alias("next_type"),
        F.lead("offset").over(order).alias("end_offset"),
    )
    return followed.where((F.col("record_type") == BEGIN) & (F.col("next_type") == END)).select(
        "source", "begin_offset", "end_offset"
    )


def with_state_offsets(moments: Frame, records: Frame) -> Frame:
    """Adds `state_offset` to a frame with `source` and `offset`: see `Moment`."""
    transactions = committed_transactions(records).withColumnRenamed("source", "of_source")
    inside = (
        (F.col("source") == F.col("of_source"))
        & (F.col("offset") >= F.col("begin_offset"))
        & (F.col("offset") < F.col("end_offset"))
    )
    joined = moments.join(transactions.broadcast(), inside, "left")
    before = F.coalesce(F.col("begin_offset") - 1, F.col("offset"))
    return joined.withColumn("state_offset", before).drop("of_source", "begin_offset", "end_offset")


def log_batches(tables: Tables, source: str) -> Frame:
    """The batches of one log's segments."""
    return tables.frame("batches").where((F.col("source") == source) & (F.col("file_kind") == "log"))


def holds_at(offset: Column) -> Column:
    """Whether a row of an interval table holds right behind the record at `offset`."""
    ends = F.col("valid_to_offset")
    return (F.col("valid_from_offset") <= offset) & (ends.isNull() | (ends > offset))


def time_text(time_ms: int) -> str:
    """ISO 8601 in UTC, or the number of milliseconds where no calendar has such a time."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03d}Z"


def _moment(tables: Tables, known: AuditedSource, offset: int, notes: tuple[str, ...]) -> Moment:
    stamp, transaction = _place(tables, known.source, offset)
    state_offset = offset
    if transaction is not None:
        begin, end = transaction
        state_offset = begin - 1
        notes += (
            f"offset {offset} is inside the metadata transaction of offsets {begin} to {end}, which counts from its "
            "end on",
        )
    found, total = log_gaps(tables, known.source)
    return Moment(
        source=known.source,
        offset=offset,
        state_offset=state_offset,
        timestamp_ms=stamp,
        notes=(*notes, *source_notes(known, found, total, offset)),
        is_cut=is_cut(found, offset),
    )


def _place(tables: Tables, source: str, offset: int) -> tuple[int | None, tuple[int, int] | None]:
    """The time of the batch at `offset`, and the committed transaction that is under way there; by one job."""
    records = tables.frame("records").where((F.col("source") == source) & (F.col("file_kind") == "log"))
    place, kind = F.col("offset"), F.col("record_type")
    before, after = place <= offset, place > offset
    markers = records.where(kind.isin(*MARKERS)).agg(
        F.max_by(kind, F.when(before, place)).alias("last"),
        F.max(F.when(before, place)).alias("begin"),
        F.min_by(kind, F.when(after, place)).alias("next"),
        F.min(F.when(after, place)).alias("end"),
    )
    stamps = log_batches(tables, source).where(F.col("base_offset") <= offset)
    stamp = stamps.agg(F.max_by("timestamp_ms", "base_offset").alias("ms"))
    row = markers.crossJoin(stamp).collect()[0]
    is_inside = row["last"] == BEGIN and row["next"] == END
    return row["ms"], (row["begin"], row["end"]) if is_inside else None


def _reach(known: AuditedSource) -> tuple[int, int]:
    """The first and the last offset that have a state."""
    base = known.base
    first = base.from_offset if base.snapshot is None else base.from_offset - 1
    last = max(first, (known.end_offset or 0) - 1)
    return first, last


def _what_it_holds(known: AuditedSource) -> str:
    first, last = _reach(known)
    if known.end_offset is None:
        return f"there is only the snapshot {known.base.snapshot}, which ends at offset {last}"
    return f"the log tells of offsets {first} to {last}"


def _behind_the_end(end: Moment, time_ms: int, last_ms: int | None) -> tuple[str, ...]:
    if last_ms is None:
        return (f"there is no log, only a snapshot; its state is that at offset {end.offset}",)
    if time_ms == last_ms:
        return ()
    place = f"offset {end.offset}, {time_text(last_ms)}"
    if end.is_cut:
        return (
            f"{end.source} cannot be read beyond {place}: what was so at the time asked for is not known",
        )
    return (f"{end.source} ends at {place}: this is the state at its end",)


def _base_is_as_old(tables: Tables, known: AuditedSource, time_ms: int) -> bool:
    """Whether the snapshot that the log begins with was there at that time."""
    if known.base.snapshot is None:
        return False
    of_base = (F.col("source") == known.source) & (F.col("file") == known.base.snapshot)
    stamp = tables.frame("records").where(of_base).agg(F.max("state_timestamp_ms").alias("ms")).collect()
    return stamp[0]["ms"] is not None and stamp[0]["ms"] <= time_ms
