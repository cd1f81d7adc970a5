"""The log directories of brokers, and the partitions in them.

A folder is the log directory of one broker, or holds several, up to two levels deep. Links are not followed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquorum.spark_replay.decode.files import scan_resolved

METADATA_FOLDER: Final = "__cluster_metadata-0"
_DEPTH: Final = 2
_PARTITION: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]{1,10})")
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")


class NoLogDir(Exception):
    """There is no partition at the paths; the message names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFolder:
    """One replica of a partition. `source` names the log directory: its path from the folder that was asked for."""

    source: str
    log_dir: str
    topic: str
    partition: int
    path: str
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    source: str
    path: str
    partitions: tuple[PartitionFolder, ...]


def find_log_dirs(roots: Sequence[Path]) -> tuple[LogDir, ...]:
    """Raises NoLogDir where a root holds no partition, and OSError for a folder that cannot be read."""
    found: dict[str, LogDir] = {}
    for root in roots:
        resolved = root.resolve()
        dirs = list(_below(resolved, resolved.name, _DEPTH))
        if not dirs:
            raise NoLogDir(
                f"{root} is no log directory of a broker: there is no folder TOPIC-PARTITION with segments in it"
            )
        for each in dirs:
            if other := found.get(each.source):
                raise NoLogDir(f"{each.path} and {other.path} have the same name; name the folder above them")
            found[each.source] = each
    return tuple(found[name] for name in sorted(found))


def _below(path: Path, source: str, depth: int) -> Iterator[LogDir]:
    with scan_resolved(path) as entries:
        folders = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    partitions = tuple(
        partition
        for name in folders
        if (partition := _partition(path, name, source)) is not None and partition.segments
    )
    if partitions:
        yield LogDir(source=source, path=str(path), partitions=partitions)
    elif depth:
        for name in folders:
            yield from _below(path / name, name if depth == _DEPTH else f"{source}/{name}", depth - 1)


def _partition(log_dir: Path, name: str, source: str) -> PartitionFolder | None:
    """None for another folder, also one whose log was removed or is being moved (`-delete`, `-future`, `-stray`)."""
    parsed = _PARTITION.fullmatch(name)
    if parsed is None or name == METADATA_FOLDER:
        return None
    path = log_dir / name
    with scan_resolved(path) as entries:
        names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
    segments = sorted(name for name in names if _SEGMENT.fullmatch(name))
    return PartitionFolder(
        source=source,
        log_dir=str(log_dir),
        topic=parsed["topic"],
        partition=int(parsed["partition"]),
        path=str(path),
        segments=tuple(segments),
    )
