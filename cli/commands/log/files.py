"""Where a log ends, for what must not lie behind that: a snapshot is of records that the log had."""

import fcntl
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cli.log_check.folder import MetadataLogFiles
from cli.log_check.mapped import MappedFile
from spark_replay.files import is_regular
from storage.file_system import open_regular
from storage.folder_lock import FILE_NAME as LOCK
from storage.segment import UNPUBLISHED_SUFFIX
from wire.batch_walk import walk_batches
from wire.log_scan import Damage

_SETTLES_WITHIN_S = 2.0
_LOOK_AGAIN_AFTER_S = 0.05
# struct flock of 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")


def within_its_end(
    log: MetadataLogFiles, warn: Callable[[str], None], *, keeps_newest: bool = False
) -> MetadataLogFiles:
    """The log without the snapshots that end behind its records; `warn` is told of each.

    All stay where no segment holds records, or where what was at the end cannot be read. With `keeps_newest` the newest
    one stays in any case: a node that starts on the folder drops its log for it, so that is the state it has.
    """
    if not any(segment.size_in_bytes for segment in log.segments):
        return log
    last = log.segments[-1]
    if all(each.end_offset <= (last.base_offset or 0) for each in log.snapshots):
        return log
    end = end_of_segment(Path(last.path), last.base_offset or 0)
    if end is None:
        return log
    newest = max(log.snapshots, key=lambda each: each.order, default=None) if keeps_newest else None
    for snapshot_id in log.snapshots:
        if snapshot_id.end_offset > end and snapshot_id == newest:
            warn(
                f"{snapshot_id.file_name}: the log ends before it, at offset {end}: a node that starts here begins "
                "with it, and that is the newest state; `kquorum log verify` says more"
            )
        elif snapshot_id.end_offset > end:
            warn(
                f"{snapshot_id.file_name} is passed over: the log ends before it, at offset {end}; "
                "`kquorum log verify` says more"
            )
    kept = {each: path for each, path in log.snapshots.items() if each.end_offset <= end or each == newest}
    return replace(log, snapshots=kept)


def end_of_segment(path: Path, base_offset: int) -> int | None:
    """The offset behind the last batch; None where bytes that cannot be read follow it, other than a torn write."""
    end: int | None = base_offset
    content = MappedFile(path)
    for found in walk_batches(content.view):
        content.release_to(found.position)
        if not isinstance(found, Damage):
            end = found.header.next_offset
        elif found.kind != "torn":
            end = None
    return end


def has_come_up_to(folder: Path, offset: int) -> bool:
    """Whether the log reaches an offset by now, or holds no records any more: a node may be writing it, or may just be
    dropping it for a snapshot that it fetched. A node at work is given a moment."""
    is_in_use = is_folder_in_use(folder.parent)
    deadline_s = time.monotonic() + (_SETTLES_WITHIN_S if is_in_use else 0)
    while True:
        # Segments are renamed and removed meanwhile; then it is looked for them again.
        with suppress(FileNotFoundError):
            end = _end_now(folder, (".log", f".log{UNPUBLISHED_SUFFIX}") if is_in_use else (".log",))
            if end is None or end >= offset:
                return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_LOOK_AGAIN_AFTER_S)  # noqa: TID251 - another process brings the condition about


def _end_now(folder: Path, suffixes: tuple[str, ...]) -> int | None:
    """None where no segment holds records. The last one has a name of its own until it is durable; what a node left of
    that when it was killed is no part of the log."""
    segments = {
        int(path.name.split(".")[0]): path
        for path in folder.iterdir()
        if path.name.endswith(suffixes) and path.name.split(".")[0].isdecimal() and is_regular(path)
    }
    if not any(path.stat().st_size for path in segments.values()):
        return None
    base_offset = max(segments)
    return end_of_segment(segments[base_offset], base_offset) or 0


def is_folder_in_use(data_folder: Path) -> bool:
    """Whether a node runs on the folder; its lock is asked about and not taken."""
    try:
        descriptor = open_regular(data_folder / LOCK)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
