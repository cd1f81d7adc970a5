"""Segments that share offsets with archived ones of another base offset: read together, they would tell the same
records twice, or different ones for one offset."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquorum.spark_replay.archive.manifest import FileEntry
from kquorum.spark_replay.decode.files import map_file
from kquorum.spark_replay.decode.sources import FileKind, LogFile, printable
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches


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
    """What is wrong with the segments of a source, of which the last one is active, beside those that are archived in
    `folder`; and with `leftovers`, segments in it that are yet to be entered, beside both."""
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
    told = "{} and the archived {} have offsets from {} on in common".format(
        *paths, max(here.start, other.start)
    )
    if differing is None:
        return f"{told}, the same records in segments that are cut otherwise: archive this log into another folder"
    return f"{told}, and differ from offset {differing} on"


def _first_difference(left: Path, right: Path) -> int | None:
    """The first offset at which both have a batch, and not the same one."""
    known = {item.header.base_offset: item for item in _batches(left)}
    for item in _batches(right):
        other = known.get(item.header.base_offset)
        if other is not None and other.data != item.data:
            return item.header.base_offset
    return None


def _batches(path: Path) -> Iterable[ScannedBatch]:
    return (item for item in scan_batches(map_file(path)) if not isinstance(item, Damage))
