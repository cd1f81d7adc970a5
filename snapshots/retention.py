"""Which snapshots are deleted, and where the log begins then, as with Kafka's cleaner; without I/O.

The new start of the log is always the end of a snapshot, and the newest snapshot always stays. Oldest first, a snapshot
is deleted if log and snapshots together are too large, or if it is too old, and if the log can begin at the end of the
next snapshot (rule R10.3).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kquorum.snapshots.naming import SnapshotId

NO_LIMIT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """`metadata.max.retention.bytes` of log and snapshots together, `metadata.max.retention.ms` of the oldest snapshot;
    below 0 there is no such limit."""

    max_bytes: int = NO_LIMIT
    max_age_ms: int = NO_LIMIT


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """`timestamp_ms` is that of the last record in it, from its header; None where it cannot be read."""

    snapshot_id: SnapshotId
    size_in_bytes: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class KeptSegment:
    """The last segment is never given up, so where it ends does not matter."""

    base_offset: int
    size_in_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is in the folder. `bound` is the highest offset at which the log may begin: nothing above the high watermark
    is committed."""

    log_start_offset: int
    bound: int
    segments: tuple[KeptSegment, ...]
    snapshots: tuple[KeptSnapshot, ...]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """One snapshot, the new beginning of the log, and why."""

    snapshot_id: SnapshotId
    log_start_offset: int
    reason: str


def given_up(kept: Kept, limits: RetentionLimits, now_ms: int) -> tuple[GivenUp, ...]:
    """The snapshots to delete, oldest first, each with the start of the log after its deletion. The last one has the
    final start."""
    cleaner = _Cleaner(kept)
    if limits.max_bytes >= 0:
        cleaner.clean(lambda _: _too_much(cleaner.size_in_bytes, limits.max_bytes))
    if limits.max_age_ms >= 0:
        cleaner.clean(lambda oldest: _too_old(oldest, limits.max_age_ms, now_ms))
    return tuple(cleaner.given_up)


def _too_much(size_in_bytes: int, max_bytes: int) -> str | None:
    if size_in_bytes <= max_bytes:
        return None
    return f"log and snapshots have {size_in_bytes} bytes, more than the {max_bytes} to keep"


def _too_old(oldest: KeptSnapshot, max_age_ms: int, now_ms: int) -> str | None:
    """Why the snapshot is too old, or None. A snapshot whose age cannot be read stays."""
    if oldest.timestamp_ms is None or now_ms - oldest.timestamp_ms <= max_age_ms:
        return None
    return f"its last record is {now_ms - oldest.timestamp_ms} ms old, more than the {max_age_ms} to keep"


class _Cleaner:
    """The folder as it would be after each step. What lies below the log's start is on its way out already."""

    def __init__(self, kept: Kept) -> None:
        self._start = kept.log_start_offset
        self._bound = kept.bound
        self._segments = sorted(kept.segments, key=lambda each: each.base_offset)
        usable = (each for each in kept.snapshots if each.snapshot_id.end_offset >= self._start)
        self._snapshots = sorted(usable, key=lambda each: each.snapshot_id.order)
        self.given_up: list[GivenUp] = []
        self._drop_segments_below(self._start)

    @property
    def size_in_bytes(self) -> int:
        parts: Sequence[KeptSegment | KeptSnapshot] = (*self._segments, *self._snapshots)
        return sum(part.size_in_bytes for part in parts)

    def clean(self, reason_for: Callable[[KeptSnapshot], str | None]) -> None:
        """Delete the oldest snapshot, again and again, until `reason_for` lets it stay, only one is left, or the log
        cannot begin at the end of the next one."""
        while len(self._snapshots) >= 2:
            oldest, successor = self._snapshots[:2]
            reason = reason_for(oldest)
            if reason is None or not self._can_begin_at(successor.snapshot_id):
                return
            self._begin_at(oldest.snapshot_id, successor.snapshot_id.end_offset, reason)

    def _can_begin_at(self, successor: SnapshotId) -> bool:
        newest = self._snapshots[-1].snapshot_id
        return self._start < successor.end_offset <= min(newest.end_offset, self._bound)

    def _begin_at(self, oldest: SnapshotId, offset: int, reason: str) -> None:
        self._start = offset
        del self._snapshots[0]
        self._drop_segments_below(offset)
        self.given_up.append(GivenUp(oldest, offset, reason))

    def _drop_segments_below(self, offset: int) -> None:
        while len(self._segments) >= 2 and self._segments[1].base_offset <= offset:
            del self._segments[0]
