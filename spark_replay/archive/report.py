"""What an archive has of each log, and what a run of `archive` did."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kquorum.spark_replay.archive.manifest import ArchiveManifest, FileEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Offsets [from_offset, to_offset) which a member's archived log lacks. `others` have all of them archived; where
    there are none they are lost. `is_new`: no run before this one knew of it."""

    from_offset: int
    to_offset: int
    is_new: bool = False
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """What a run did for one log. `archived_from` and `archived_to` (exclusive) are of its segments in the archive;
    `not_archived_from` is the first offset of what the node has not closed yet."""

    folder: str
    node_id: int | None
    directory_id: str | None
    source: str
    copied: tuple[FileEntry, ...]
    unchanged: int
    gone_at_source: int
    archived_from: int | None
    archived_to: int | None
    snapshots: int
    not_archived_from: int | None
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """`head` is the hash of the manifest's last line."""

    folder: str
    cluster_id: str | None
    head: str
    members: tuple[MemberReport, ...]

    @property
    def is_troubled(self) -> bool:
        """Whether this run found a gap or damage that no run before it had."""
        return any(
            any(gap.is_new for gap in member.gaps) or any(entry.damaged_places for entry in member.copied)
            for member in self.members
        )


def gaps_of(manifest: ArchiveManifest, member: str) -> list[tuple[int, int]]:
    """Offsets [from, to) between the archived segments of a member."""
    ranges = [(each.base_offset or 0, each.end_offset or 0) for each in manifest.segments(member)]
    return [(end, start) for (_, end), (start, _) in pairwise(ranges) if end < start]


def others_with(manifest: ArchiveManifest, member: str, gap: tuple[int, int]) -> tuple[str, ...]:
    """The members which have all of a gap's offsets in segments that follow one another."""
    return tuple(
        other for other in manifest.members if other != member and _covers(manifest.segments(other), gap)
    )


def _covers(segments: Sequence[FileEntry], gap: tuple[int, int]) -> bool:
    reached = gap[0]
    for segment in segments:
        if (segment.base_offset or 0) <= reached < (segment.end_offset or 0):
            reached = segment.end_offset or 0
    return reached >= gap[1]
