"""The unreadable parts of a log, and what is unknown because of them; every answer has to state it.

A damaged place reaches from the last whole batch before it to the first whole batch after it; without a batch after it,
nothing further can be read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Tables

PLACES_READ: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGap:
    """The offsets that are missing, both inclusive; `last` is None where nothing behind it can be read."""

    first: int
    last: int | None


def log_gaps(tables: Tables, source: str) -> tuple[tuple[LogGap, ...], int]:
    """Those of the segments in order, at most `PLACES_READ`, and how many damaged places there are."""
    if tables.manifest.rows.get("damage") == 0:
        return (), 0
    damage = tables.frame("damage").where((F.col("source") == source) & (F.col("file_kind") == "log"))
    columns = ("file", "segment_base_offset", "position", "offset")
    rows = damage.select(*columns).orderBy("segment_base_offset", "position").limit(PLACES_READ + 1).collect()
    if not rows:
        return (), 0
    batches = tables.frame("batches").where((F.col("source") == source) & (F.col("file_kind") == "log"))
    places = tables.values(
        [
            (number, row["file"], row["segment_base_offset"], row["position"], row["offset"])
            for number, row in enumerate(rows[:PLACES_READ])
        ],
        {
            "number": "int",
            "at_file": "string",
            "segment": "long",
            "at_position": "long",
            "at_offset": "long",
        },
    )
    before = (F.col("file") == F.col("at_file")) & (F.col("position") < F.col("at_position"))
    # A whole batch with offsets missing before it is reported at its own position.
    behind = (F.col("file") == F.col("at_file")) & (F.col("position") >= F.col("at_position"))
    later = (F.col("file") != F.col("at_file")) & (F.col("segment_base_offset") > F.col("segment"))
    edges = (
        places.crossJoin(
            batches.select("file", "segment_base_offset", "position", "base_offset", "last_offset")
        )
        .groupBy("number")
        .agg(
            F.max(F.when(before, F.col("last_offset"))).alias("last_before"),
            F.min(F.when(behind | later, F.col("base_offset"))).alias("first_behind"),
        )
        .collect()
    )
    known = {row["number"]: (row["last_before"], row["first_behind"]) for row in edges}
    found = tuple(
        gap_at(row["offset"], row["segment_base_offset"], *known.get(number, (None, None)))
        for number, row in enumerate(rows[:PLACES_READ])
    )
    return found, len(rows) if len(rows) <= PLACES_READ else damage.count()


def gap_at(
    offset: int | None, segment_base_offset: int | None, last_before: int | None, first_behind: int | None
) -> LogGap:
    """Of a damaged place: its own offset where it is known, else by the whole batches beside it."""
    first = offset
    if first is None:
        first = (segment_base_offset or 0) if last_before is None else last_before + 1
    return LogGap(first=first, last=None if first_behind is None else max(first, first_behind - 1))


def damage_notes(found: Sequence[LogGap], total: int, upto: int | None = None) -> tuple[str, ...]:
    """In words, as far as it touches the state right behind offset `upto`; None is the whole log."""
    touching = [each for each in found if upto is None or each.first <= upto + 1]
    inner = [each for each in touching if each.last is not None and (upto is None or each.first <= upto)]
    notes = []
    if inner:
        count = (
            len(inner) if len(touching) < len(found) else max(total - len(touching) + len(inner), len(inner))
        )
        places = f"{count:,} damaged place{'' if count == 1 else 's'} of the log"
        word = "it" if count == 1 else "them"
        notes.append(f"{places}, {_range(inner)}: what was in {word} is missing here (table damage)")
    open_ended = [each.first for each in touching if each.last is None]
    if open_ended:
        first = min(open_ended)
        notes.append(
            f"the log is damaged at offset {first} and cannot be read beyond: this is only what could be read, "
            f"{'nothing' if first == 0 else f'up to offset {first - 1}'} (table damage)"
        )
    return tuple(notes)


def beginning_notes(known: AuditedSource) -> tuple[str, ...]:
    """What is missing before the first record."""
    if known.base.snapshot is None and known.base.from_offset > 0:
        return (
            f"the log begins at offset {known.base.from_offset}, and no whole snapshot has the state before it: only "
            "what later records repeat is known",
        )
    return ()


def limits(tables: Tables, source: str) -> tuple[str, ...]:
    """As `source_notes`, of the whole log."""
    return source_notes(tables.source(source), *log_gaps(tables, source))


def source_notes(
    known: AuditedSource, found: Sequence[LogGap], total: int, upto: int | None = None
) -> tuple[str, ...]:
    """Everything that an answer about this log lacks because the log does."""
    if known.end_offset is None:
        if known.base.snapshot is None:
            return (
                f"nothing could be read of the log {known.source}: it is empty or damaged (table damage)",
            )
        return (
            f"{known.source} is only the snapshot {known.base.snapshot}, without a log: there is a state, and no "
            "history",
        )
    return (*beginning_notes(known), *damage_notes(found, total, upto))


def is_cut(found: Iterable[LogGap], offset: int) -> bool:
    """Whether nothing can be read behind `offset`."""
    return any(each.last is None and each.first <= offset + 1 for each in found)


def unknown_before(known: AuditedSource, found: Iterable[LogGap]) -> str:
    """Why something that is not in the log may have been there all the same; empty where it cannot have been."""
    if known.end_offset is None and known.base.snapshot is None:
        return "nothing of this log could be read"
    if known.base.snapshot is None and known.base.from_offset > 0:
        return (
            f"the log begins at offset {known.base.from_offset}, and no whole snapshot tells what was before"
        )
    if places := list(found):
        return f"the log is damaged, {_range(places)}"
    return ""


def _range(places: Sequence[LogGap]) -> str:
    first = min(each.first for each in places)
    lasts = [each.last for each in places if each.last is not None]
    if len(lasts) < len(places):
        return f"from offset {first} on"
    last = max(lasts)
    if first == last:
        return f"at offset {first}"
    return f"offsets {first} to {last}" if len(places) == 1 else f"between offsets {first} and {last}"
