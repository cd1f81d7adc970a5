"""Which part of a compacted log can be cleaned, which log is due first, and which segments become one.

A log has a clean part up to its first dirty offset, where the last cleaning ended; a dirty part; and what cannot be
cleaned yet: the last segment, all from the last stable offset on, and segments with records younger than
`min.compaction.lag.ms` (KIP-58). Whole segments are cleaned.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from kquorum.broker.log.log_config import LogConfig

_OFFSET_SPAN_MAX: Final = 2**31 - 1
# The files of a group are renamed in one turn of the event loop, some ten calls of the system for each segment. Kafka
# has no such bound; the next round joins what this one made.
MOST_IN_A_GROUP: Final = 64


class CleanableSegment(Protocol):
    """What the choice needs to know of a segment."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def retention_timestamp_ms(self) -> int:
        """The greatest of its records, or the file's where they have none."""
        ...

    @property
    def first_timestamp_ms(self) -> int:
        """The greatest of its first batch, -1 where there is none."""
        ...


class GroupableSegment(Protocol):
    @property
    def base_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def index_bytes(self) -> tuple[int, int]:
        """Of the offset index and of the time index."""
        ...


_Groupable = TypeVar("_Groupable", bound=GroupableSegment)


@dataclass(frozen=True, slots=True)
class Cleanable:
    """Of one log. `resets_checkpoint`: what the checkpoint said cannot be right any more, and is replaced by
    `first_dirty_offset` even if nothing is cleaned."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    resets_checkpoint: bool
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """How long records wait beyond `max.compaction.lag.ms` (KIP-354)."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        if not self.cleanable_bytes:
            return False
        return self.overdue_ms > 0 or self.dirty_ratio > min_dirty_ratio


def cleanable(
    segments: Sequence[CleanableSegment],
    *,
    checkpoint: int | None,
    log_start_offset: int,
    log_end_offset: int,
    last_stable_offset: int,
    now_ms: int,
    config: LogConfig,
) -> Cleanable:
    """`segments` are all of the log, the one that is written last; `checkpoint` is where the last cleaning ended."""
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    resets = not log_start_offset <= first_dirty <= log_end_offset
    if resets:
        # The log was cut, or records were deleted from its beginning.
        first_dirty = log_start_offset
    bases = [each.base_offset for each in segments]
    closed = len(segments) - 1
    dirty = segments[_floor(bases, first_dirty) : closed]
    uncleanable = min(last_stable_offset, bases[closed])
    if config.min_compaction_lag_ms > 0:
        for segment in dirty:
            if segment.retention_timestamp_ms > now_ms - config.min_compaction_lag_ms:
                uncleanable = min(uncleanable, segment.base_offset)
                break
    end = _floor(bases, max(first_dirty, uncleanable))
    return Cleanable(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=bases[end],
        resets_checkpoint=resets,
        clean_bytes=sum(each.size for each in segments[: bisect_left(bases, first_dirty)]),
        cleanable_bytes=sum(each.size for each in segments[_floor(bases, first_dirty) : end]),
        overdue_ms=_overdue_ms(dirty, config.max_compaction_lag_ms, now_ms),
    )


def _floor(bases: Sequence[int], offset: int) -> int:
    """The segment that holds the offset, or the first one."""
    return max(0, bisect_right(bases, offset) - 1)


def _overdue_ms(dirty: Sequence[CleanableSegment], max_lag_ms: int, now_ms: int) -> int:
    due_ms = now_ms - max_lag_ms
    if due_ms <= 0:
        return 0
    first_ms = min((ms for each in dirty if (ms := each.first_timestamp_ms) > 0), default=due_ms)
    return max(0, due_ms - first_ms)


def groups(
    segments: Iterable[_Groupable], *, segment_bytes: int, index_bytes: int, end_offset: int
) -> list[list[_Groupable]]:
    """Which segments become one, in order: together they are no longer than one may be, and so are their indexes; and
    they are MOST_IN_A_GROUP at most.

    `end_offset` is the first offset behind the last of them.
    """
    rest = list(segments)
    found: list[list[_Groupable]] = []
    while rest:
        group = [rest.pop(0)]
        sizes = _sizes(group[0])
        while rest and len(group) < MOST_IN_A_GROUP:
            last_offset = (rest[1].base_offset if len(rest) > 1 else end_offset) - 1
            is_far = last_offset - group[0].base_offset > _OFFSET_SPAN_MAX
            added = [had + more for had, more in zip(sizes, _sizes(rest[0]), strict=True)]
            limits = (segment_bytes, index_bytes, index_bytes)
            if any(size > limit for size, limit in zip(added, limits, strict=True)) or (
                is_far and rest[0].size
            ):
                break
            group.append(rest.pop(0))
            sizes = added
        found.append(group)
    return found


def _sizes(segment: GroupableSegment) -> list[int]:
    return [segment.size, *segment.index_bytes]
