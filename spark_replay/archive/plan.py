"""What a run of the archive has to copy, and whether what it sees can be the log that is archived already."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kquorum.spark_replay.archive.files import digest, sound_bytes
from kquorum.spark_replay.archive.manifest import ArchiveManifest, FileEntry, MemberEntry
from kquorum.spark_replay.archive.pending import Pending
from kquorum.spark_replay.decode.files import is_regular, map_listed, scan_resolved
from kquorum.spark_replay.decode.members import Member, member_of
from kquorum.spark_replay.decode.sources import (
    METADATA_FOLDER,
    FileKind,
    LogFile,
    files_of_folder,
    log_file,
    printable,
)
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches

# Segments that share offsets with archived ones of another base offset: read together, they would tell the same
# records twice, or different ones for one offset.


@dataclass(frozen=True, slots=True)
class _Range:
    """Offsets of one segment, [start, end); `end` is None of the active one."""

    start: int
    end: int | None
    path: Path


def overlaps(
    folder: Path,
    segments: Sequence[LogFile],
    archived: Mapping[str, FileEntry],
    leftovers: Sequence[LogFile] = (),
) -> Iterator[str]:
    """Yields the conflicts of the segments of a source (the last one is active) with those archived in `folder`, and of
    `leftovers` (segments in `folder` that have no manifest entry yet) with both."""
    ends = [segment.base_offset for segment in segments[1:]]
    names = {segment.name for segment in segments}
    every = [
        _Range(entry.base_offset or 0, entry.end_offset, folder / entry.name)
        for entry in archived.values()
        if entry.file_kind is FileKind.LOG
    ]
    for file in leftovers:
        here = _Range(file.base_offset or 0, _end_of(file), Path(file.path))
        others = [other for other in every if other.path.name != file.name]
        yield from (_overlap(here, other) for other in others if _meet(here, other))
        every = [*others, here]
    kept = [other for other in every if other.path.name not in names]
    for segment, end in zip(segments, [*ends, None], strict=True):
        if segment.name in archived:
            continue
        here = _Range(segment.base_offset or 0, end, Path(segment.path))
        yield from (_overlap(here, other) for other in kept if _meet(here, other))


def _end_of(file: LogFile) -> int:
    """Of the last batch that can be read."""
    ends = [item.header.next_offset for item in _batches(Path(file.path))]
    return ends[-1] if ends else file.base_offset or 0


def _meet(left: _Range, right: _Range) -> bool:
    return (right.end is None or left.start < right.end) and (left.end is None or right.start < left.end)


def _overlap(here: _Range, other: _Range) -> str:
    differing = _first_difference(here.path, other.path)
    paths = (printable(str(each.path)) for each in (here, other))
    text = "{} and the archived {} have offsets from {} on in common".format(
        *paths, max(here.start, other.start)
    )
    if differing is None:
        return f"{text}, the same records in segments that are cut otherwise: archive this log into another folder"
    return f"{text}, and differ from offset {differing} on"


def _first_difference(left: Path, right: Path) -> int | None:
    """The first offset at which both have a batch, and not the same one."""
    known = {item.header.base_offset: item for item in _batches(left)}
    for item in _batches(right):
        other = known.get(item.header.base_offset)
        if other is not None and other.data != item.data:
            return item.header.base_offset
    return None


def _batches(path: Path) -> Iterable[ScannedBatch]:
    return (item for item in scan_batches(map_listed(path)) if not isinstance(item, Damage))


# Segments that a node is about to remove: renamed to `*.log.deleted`, they stay for a minute or so.
#
# The last chance to archive them. A log also renames what it cuts off its end, never to be committed, so a segment
# counts only where it joins the log without a gap or an overlap.

DELETED_SUFFIX: Final = ".deleted"
_DELETED_SEGMENT: Final = re.compile(r"(\d{20})\.log\.deleted")


def joining_segments(
    log_folder: Path, source: str, known: Iterable[tuple[int, int | None]]
) -> tuple[LogFile, ...]:
    """The removed segments in `log_folder` that extend the `known` ranges of offsets ([start, end), None for a segment
    that is being written), under the names that they had. Ascending. Raises OSError."""
    ranges = list(known)
    candidates = {start: (end, file) for start, end, file in _candidates(log_folder, source)}
    found = dict[int, LogFile]()
    while joining := [start for start, (end, _) in candidates.items() if _joins(start, end, ranges)]:
        for start in joining:
            end, found[start] = candidates.pop(start)
            ranges.append((start, end))
    return tuple(found[start] for start in sorted(found))


def has_removed_segments(log_folder: Path) -> bool:
    return bool(_names(log_folder))


def _names(log_folder: Path) -> list[str]:
    with scan_resolved(log_folder) as entries:
        names = sorted(entry.name for entry in entries if _DELETED_SEGMENT.fullmatch(entry.name))
    return [name for name in names if is_regular(log_folder / name)]


def _candidates(log_folder: Path, source: str) -> Iterator[tuple[int, int, LogFile]]:
    for name in _names(log_folder):
        with suppress(FileNotFoundError):
            file = log_file(log_folder / name, source=source)
            start = int(name[:20])
            if (end := sound_end(log_folder / name, start)) is not None:
                yield start, end, replace(file, name=name.removesuffix(DELETED_SUFFIX), base_offset=start)


def sound_end(path: Path, start: int) -> int | None:
    """Where a sound segment ends; None of an empty or damaged one, which nothing can be joined to. Raises OSError."""
    end: int | None = None
    for item in scan_batches(map_listed(path), base_offset=start):
        if isinstance(item, Damage):
            return None
        end = item.header.next_offset
    return end


def _joins(start: int, end: int, ranges: Iterable[tuple[int, int | None]]) -> bool:
    overlaps = any((other_end is None or start < other_end) and other < end for other, other_end in ranges)
    return not overlaps and any(end == other or start == other_end for other, other_end in ranges)


class AnotherCluster(Exception):
    """A log of another cluster than the archive's; the message names both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCopy:
    """A file to copy, up to `limit` bytes where the node is still writing it."""

    file: LogFile
    is_open: bool = False
    limit: int | None = None


@dataclass(slots=True, kw_only=True)
class MemberPlan:
    """The pending work for one log. `contradictions` are reasons to do nothing at all. `leftovers` are in the archive
    already, written by a run that was stopped before it could enter them in the manifest. `gone` are archived and no
    longer at the source."""

    entry: MemberEntry
    member: Member
    files: tuple[LogFile, ...]
    copies: list[PlannedCopy] = field(default_factory=list)
    leftovers: list[PlannedCopy] = field(default_factory=list)
    unchanged: int = 0
    gone: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)

    @property
    def segments(self) -> list[LogFile]:
        """Of the source, ascending; the last one is the active one."""
        found = [file for file in self.files if file.kind is FileKind.LOG and file.base_offset is not None]
        return sorted(found, key=lambda file: file.base_offset or 0)


def log_folder_of(files: Iterable[LogFile]) -> Path:
    """Where the segments and snapshots of one source lie."""
    inside = [file for file in files if file.kind is not FileKind.BOOTSTRAP]
    return Path(inside[0].path).parent


def plan_member(
    archive: Path,
    manifest: ArchiveManifest,
    pending: Pending,
    files: Sequence[LogFile],
    *,
    include_active: bool,
) -> MemberPlan:
    """The plan for a log, whose files are `files`. Raises AnotherCluster and OSError."""
    log_folder = log_folder_of(files)
    member = member_of(log_folder)
    entry = _entry(manifest, member, files[0].source, log_folder)
    plan = MemberPlan(entry=entry, member=member, files=tuple(files))
    archived = manifest.files(entry.folder)
    segments = plan.segments
    for file in files:
        is_active = bool(segments) and file is segments[-1]
        _plan_file(plan, file, archived.get(file.name), is_active=is_active, include_active=include_active)
    plan.gone += sorted(archived.keys() - {file.name for file in files})
    _plan_leftovers(archive, plan, pending, archived)
    leftovers = [copy.file for copy in plan.leftovers if copy.file.kind is FileKind.LOG]
    folder = archive / entry.folder / METADATA_FOLDER
    plan.contradictions += overlaps(folder, plan.segments, archived, leftovers)
    _plan_removed(plan, log_folder, archived)
    return plan


def _entry(manifest: ArchiveManifest, member: Member, source: str, log_folder: Path) -> MemberEntry:
    known = manifest.cluster_id
    if known is not None and member.cluster_id is not None and known != member.cluster_id:
        raise AnotherCluster(
            f"{printable(str(log_folder))} is of cluster {member.cluster_id}, and what is archived here "
            f"is of cluster {known}: give each cluster an archive of its own"
        )
    origin = printable(str(log_folder))
    wanted = f"node-{member.node_id}" if member.node_id is not None else _safe(source)
    same = [
        each for each in manifest.members.values() if _is_same(each, member, wanted=wanted, origin=origin)
    ]
    before = same[-1] if same else None
    return MemberEntry(
        folder=_free(wanted, manifest) if before is None else before.folder,
        cluster_id=member.cluster_id or (None if before is None else before.cluster_id),
        node_id=member.node_id,
        directory_id=member.directory_id or (None if before is None else before.directory_id),
        origin=origin if before is None else before.origin,
    )


def _is_same(entry: MemberEntry, member: Member, *, wanted: str, origin: str) -> bool:
    """Whether an archived log is this member's. Of a log without meta.properties only its place is known, under
    whatever root it was found."""
    if member.node_id is None and entry.node_id is None and entry.origin == origin:
        return True
    ids = (entry.directory_id, member.directory_id)
    is_named_so = re.fullmatch(rf"{re.escape(wanted)}(\.\d+)?", entry.folder) is not None
    return is_named_so and (ids[0] == ids[1] or None in ids)


def _safe(source: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", source).strip("-") or "log"


def _free(wanted: str, manifest: ArchiveManifest) -> str:
    """A disk that was lost and replaced begins another folder: its segments need not be cut as the old ones were."""
    folder, number = wanted, 1
    while folder in manifest.members:
        number += 1
        folder = f"{wanted}.{number}"
    return folder


def _plan_file(
    plan: MemberPlan, file: LogFile, entry: FileEntry | None, *, is_active: bool, include_active: bool
) -> None:
    try:
        if entry is None:
            is_wanted, prefix = not is_active or include_active, False
        else:
            is_wanted, prefix = _compare(plan, file, entry, is_active=is_active)
            is_wanted = is_wanted and (not is_active or include_active)
        if not is_wanted:
            return
        limit = sound_bytes(Path(file.path), file.base_offset) if is_active else None
        if is_active and entry is not None and prefix and limit == entry.size_in_bytes:
            plan.unchanged += 1
        elif limit != 0:
            plan.copies.append(PlannedCopy(file=file, is_open=is_active, limit=limit))
    except FileNotFoundError:
        plan.notes.append(f"{file.name} was removed by the node meanwhile")


def _plan_removed(plan: MemberPlan, log_folder: Path, archived: dict[str, FileEntry]) -> None:
    """What the node has marked as removed and the archive does not have, or only its beginning."""
    if not has_removed_segments(log_folder):
        return
    segments = plan.segments
    known: list[tuple[int, int | None]] = [(file.base_offset or 0, None) for file in segments[-1:]]
    known += [_extent(file, archived.get(file.name)) for file in segments[:-1]]
    known += [
        (entry.base_offset or 0, entry.end_offset)
        for entry in archived.values()
        if entry.file_kind is FileKind.LOG
        and not (entry.is_open and (log_folder / f"{entry.name}{DELETED_SUFFIX}").exists())
    ]
    removed = joining_segments(log_folder, plan.entry.folder, known)
    plan.copies = [PlannedCopy(file=file) for file in removed] + plan.copies
    if removed:
        plan.notes.append(
            f"segments that the node is about to remove, taken from {removed[0].name}.deleted"
            + (f" to {removed[-1].name}.deleted" if len(removed) > 1 else "")
        )


def _extent(file: LogFile, entry: FileEntry | None) -> tuple[int, int | None]:
    """The offsets that a closed segment has, which need not reach to the next one."""
    start = file.base_offset or 0
    end = entry.end_offset if entry is not None and not entry.is_open else sound_end(Path(file.path), start)
    return start, start if end is None else end


def _compare(plan: MemberPlan, file: LogFile, entry: FileEntry, *, is_active: bool) -> tuple[bool, bool]:
    """Whether the source has something else to copy, and whether what is archived is the beginning of it."""
    found = digest(Path(file.path), entry.size_in_bytes)
    if found.sha256 == entry.sha256 and entry.is_open == is_active:
        plan.unchanged += 1
        return False, True
    if found.size_in_bytes >= entry.size_in_bytes and found.prefix_sha256 == entry.sha256:
        return True, True
    if entry.is_open:
        plan.notes.append(
            f"{file.name}: the end of what was archived of it while it was open is no longer in the log (its records "
            "were not committed); it is replaced"
        )
        return True, False
    if file.kind is FileKind.BOOTSTRAP:
        plan.notes.append(f"{file.name} was rewritten since it was archived; the archive keeps the first")
        plan.unchanged += 1
        return False, False
    plan.contradictions.append(
        f"{printable(file.path)} is not the file that was archived as {entry.member}/{METADATA_FOLDER}/{entry.name}: "
        f"{found.size_in_bytes:,} bytes, SHA-256 {found.sha256[:12]}..., archived {entry.size_in_bytes:,} bytes, "
        f"{entry.sha256[:12]}..."
    )
    return False, False


def _plan_leftovers(
    archive: Path, plan: MemberPlan, pending: Pending, archived: dict[str, FileEntry]
) -> None:
    """Files that a stopped run has noted as copied are entered; files without a note are not the archive's."""
    folder = archive / plan.entry.folder / METADATA_FOLDER
    replaced = {copy.file.name for copy in plan.copies}
    for file in files_of_folder(folder, plan.entry.folder) if folder.is_dir() else ():
        entry = archived.get(file.name)
        if file.name in replaced or (entry is not None and not entry.is_open):
            continue
        copy = pending.find(plan.entry.folder, Path(file.path))
        if copy is not None and (entry is None or entry.sha256 != copy.sha256):
            plan.leftovers.append(PlannedCopy(file=file, is_open=copy.is_open))
        elif entry is None or (copy is None and file.size_in_bytes > entry.size_in_bytes):
            plan.contradictions.append(
                f"{printable(file.path)} is unlisted: it lies in the archive, but neither does the manifest tell of it "
                "as it is nor did a run that was stopped leave it; move it out of the archive (--verify names all such "
                "files)"
            )
