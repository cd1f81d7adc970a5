"""Facts about a whole log, gathered split by split: its extent, gaps, epochs, and counts of its records.

A split returns a few numbers, however many records it has, so no second pass over all rows is needed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile

GAP: Final = "gap"
Numbers = NDArray[np.int64]
# The kind of the rows that are staged as stateful records. It is also the name of their folder, so a new name would
# orphan the files of streams that exist.
STATEFUL: Final = "stateful"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """Of the records in the segments: how many, from where to where (inclusive), by offset and by time."""

    records: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int

    def with_others(self, other: Self | None) -> "LogBounds":
        if other is None:
            return self
        return LogBounds(
            records=self.records + other.records,
            first_offset=min(self.first_offset, other.first_offset),
            last_offset=max(self.last_offset, other.last_offset),
            first_ms=min(self.first_ms, other.first_ms),
            last_ms=max(self.last_ms, other.last_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnds:
    """The first and the last batch of a split of a segment, and the offsets that its batches span (inclusive).

    `damaged_before`: there is damage up to the first batch; `damaged_after`: behind the position of the last.
    """

    first_position: int
    first_offset: int
    last_position: int
    last_offset: int
    lowest_offset: int
    highest_offset: int
    damaged_before: bool
    damaged_after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFacts:
    """`rows` counts what was written, by kind; `types` the records by type, and `stateful_types` those of them that are
    staged as stateful records (`spark_replay.staging`). `ends` is None without a batch of a log."""

    file: LogFile
    start: int
    rows: dict[str, int]
    types: dict[str, int]
    stateful_types: dict[str, int]
    unknown_records: int
    bounds: LogBounds | None
    ends: BatchEnds | None


@dataclass(slots=True)
class EpochSpan:
    """The records of one epoch in one split."""

    start_offset: int
    start_ms: int
    records: int
    last_record_ms: int


@dataclass(slots=True)
class FactsOfSplit:
    """Looks at the Arrow batches of one split as they are written."""

    file: LogFile
    start: int
    epochs: dict[int, EpochSpan] = field(default_factory=dict)
    _types: Counter[str] = field(default_factory=Counter)
    _stateful: Counter[str] = field(default_factory=Counter)
    _unknown: int = 0
    _bounds: LogBounds | None = None
    _batches: list[tuple[Numbers, Numbers, Numbers]] = field(default_factory=list)
    _damaged: list[int] = field(default_factory=list)

    def add(self, kind: str, batch: Any) -> None:
        """Rows of a kind: record, batch, damage, or the staged STATEFUL."""
        match kind:
            case "record":
                self._add_records(batch)
            case _ if kind == STATEFUL:
                _count(self._stateful, batch)
            case "batch" if self.file.kind is FileKind.LOG:
                self._batches.append(_numbers(batch, "position", "base_offset", "last_offset"))
            case "damage":
                self._damaged += batch.column("position").to_pylist()

    def _add_records(self, batch: Any) -> None:
        _count(self._types, batch)
        self._unknown += batch.column("payload").null_count
        if self.file.kind is FileKind.LOG:
            offsets, times, epochs = _numbers(batch, "offset", "timestamp_ms", "leader_epoch")
            self._bounds = _bounds_of(offsets, times).with_others(self._bounds)
            for epoch in np.unique(epochs).tolist():
                here = epochs == epoch
                self._add_epoch(epoch, offsets[here], times[here])

    def _add_epoch(self, epoch: int, offsets: Numbers, times: Numbers) -> None:
        first = int(offsets.argmin())
        new = EpochSpan(int(offsets[first]), int(times[first]), len(offsets), int(times.max()))
        known = self.epochs.setdefault(epoch, new)
        if known is not new:
            if new.start_offset < known.start_offset:
                known.start_offset, known.start_ms = new.start_offset, new.start_ms
            known.records += new.records
            known.last_record_ms = max(known.last_record_ms, new.last_record_ms)

    def gaps(self) -> list[DamageRow]:
        """Batches that do not continue the one before, where no damage between the two explains it.

        The scan stops to expect an offset after a batch with a wrong one, so that it does not report all of these.
        """
        # Vectorised, as a log has millions of batches: `expected[i]` is the offset at which batch i+1 should begin.
        positions, firsts, lasts = self._columns()
        expected = lasts[:-1] + 1
        damaged = np.sort(np.array(self._damaged, np.int64))
        behind_last = np.searchsorted(damaged, positions[:-1], "right")
        # More damage below the next batch than below this one means that some lies between the two.
        is_explained = np.searchsorted(damaged, positions[1:], "right") > behind_last
        broken = np.flatnonzero((firsts[1:] != expected) & ~is_explained)
        return [
            gap_row(
                self.file, int(positions[place + 1]), int(firsts[place + 1]), int(expected[place]), self.file
            )
            for place in broken.tolist()
        ]

    def finished(self, rows: dict[str, int]) -> SplitFacts:
        return SplitFacts(
            file=self.file,
            start=self.start,
            rows=rows,
            types=dict(self._types),
            stateful_types=dict(self._stateful),
            unknown_records=self._unknown,
            bounds=self._bounds,
            ends=self._ends(),
        )

    def _columns(self) -> tuple[Numbers, ...]:
        if not self._batches:
            return (np.empty(0, np.int64),) * 3
        return tuple(np.concatenate(columns) for columns in zip(*self._batches, strict=True))

    def _ends(self) -> BatchEnds | None:
        positions, firsts, lasts = self._columns()
        if not len(positions):
            return None
        return BatchEnds(
            first_position=int(positions[0]),
            first_offset=int(firsts[0]),
            last_position=int(positions[-1]),
            last_offset=int(lasts[-1]),
            lowest_offset=int(firsts.min()),
            highest_offset=int(lasts.max()),
            damaged_before=any(position <= positions[0] for position in self._damaged),
            damaged_after=any(position > positions[-1] for position in self._damaged),
        )


def gaps_between(splits: Iterable[SplitFacts]) -> Iterator[tuple[LogFile, DamageRow]]:
    """Where the first batch of a split does not continue the batch before it, and no damage at either end explains it.

    Damage in a file between the two, without anything readable in it, explains nothing: the file has its own row.
    """
    # Splits arrive in the order in which Spark's tasks end.
    in_order = sorted(
        (split for split in splits if split.file.kind is FileKind.LOG),
        key=lambda split: (split.file.source, _segment(split.file), split.start),
    )
    before: SplitFacts | None = None
    damaged: set[str] = set()
    for split in in_order:
        # Each source is a log of its own: its first batch continues none.
        if before is not None and before.file.source != split.file.source:
            before, damaged = None, set()
        ends = split.ends
        if ends is None:
            if split.rows.get("damage"):
                damaged.add(split.file.path)
            continue
        if ends.damaged_before:
            damaged.add(split.file.path)
        if before is not None and before.ends is not None:
            expected = before.ends.last_offset + 1
            is_explained = before.file.path in damaged or split.file.path in damaged
            if ends.first_offset != expected and not is_explained:
                yield (
                    split.file,
                    gap_row(split.file, ends.first_position, ends.first_offset, expected, before.file),
                )
        before, damaged = split, {split.file.path} if ends.damaged_after else set()


def gap_row(file: LogFile, position: int, found: int, expected: int, before: LogFile) -> DamageRow:
    return DamageRow(
        file=file.name,
        segment_base_offset=file.base_offset,
        position=position,
        offset=expected,
        kind=GAP,
        reason=f"batch begins at offset {found}; {expected} was expected after {before.name}",
    )


def extents(splits: Iterable[SplitFacts]) -> dict[str, tuple[int, int]]:
    """First offset and end offset (exclusive) of the whole batches in each source's segments."""
    found: dict[str, tuple[int, int]] = {}
    for split in splits:
        if split.ends is not None:
            low, high = found.get(split.file.source, (split.ends.lowest_offset, 0))
            found[split.file.source] = (
                min(low, split.ends.lowest_offset),
                max(high, split.ends.highest_offset + 1),
            )
    return found


def _segment(file: LogFile) -> int:
    return -1 if file.base_offset is None else file.base_offset


def _count(types: Counter[str], records: Any) -> None:
    for each in pc.value_counts(records.column("record_type")):
        types[each["values"].as_py()] += each["counts"].as_py()


def _bounds_of(offsets: Numbers, times: Numbers) -> LogBounds:
    return LogBounds(
        records=len(offsets),
        first_offset=int(offsets.min()),
        last_offset=int(offsets.max()),
        first_ms=int(times.min()),
        last_ms=int(times.max()),
    )


def _numbers(batch: Any, *names: str) -> tuple[Any, ...]:
    return tuple(batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in names)
