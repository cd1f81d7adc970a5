"""Segments that a node is about to remove: renamed to `*.log.deleted`, they stay for a minute or so.

The last chance to archive them. A log also renames what it cuts off its end, never to be committed, so a segment counts
only where it joins the log without a gap or an overlap.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from kquorum.spark_replay.decode.files import is_regular, map_file, scan_resolved
from kquorum.spark_replay.decode.sources import LogFile, log_file
from kquorum.wire.log_scan import Damage, scan_batches

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
    for item in scan_batches(map_file(path), base_offset=start):
        if isinstance(item, Damage):
            return None
        end = item.header.next_offset
    return end


def _joins(start: int, end: int, ranges: Iterable[tuple[int, int | None]]) -> bool:
    overlaps = any((other_end is None or start < other_end) and other < end for other, other_end in ranges)
    return not overlaps and any(end == other or start == other_end for other, other_end in ranges)
