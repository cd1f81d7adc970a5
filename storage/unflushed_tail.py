"""Writes again, at the start, the tail of a log that can be read but is not known to be on the disk.

A flush that fails ends the process; but the kernel may keep its pages and take them for written, so that the next
process reads what the disk does not have, flushes it in vain, and acknowledges it (Rebello et al., USENIX ATC '20).
Written again, the pages are dirty again, and the flush that follows tells the truth. Above the recovery point there is
what a few milliseconds brought, and after an orderly end nothing.
"""

import os
from pathlib import Path

from kquorum.storage.durable_files import replace_file, sync_folder
from kquorum.storage.errors import StorageFull, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.segment import Segment

_CHUNK_BYTES = 1024 * 1024


def write_again(segment: Segment, recovery_point: int, fs: FileSystem = POSIX) -> None:
    """All from `recovery_point` on; durable once the segment is flushed. Raises StorageFull or StorageFailed."""
    if segment.is_empty or segment.end_offset <= recovery_point:
        return
    position = segment.position_of(max(recovery_point, segment.base_offset))
    try:
        # A descriptor of its own: that of the segment writes at the end, whatever the position.
        descriptor = fs.open(segment.path, os.O_RDWR)
        try:
            while position < segment.size:
                data = fs.pread(descriptor, min(_CHUNK_BYTES, segment.size - position), position)
                position += fs.pwrite(descriptor, data, position)
        finally:
            fs.close(descriptor)
    except OSError as error:
        raise storage_failure("write", segment.path, error) from error


def name_again(path: Path, fs: FileSystem = POSIX) -> None:
    """Make durable that a file is there by this name. A process before us renamed it, which may have ended before the
    folder was flushed, or because that failed: then flushing once more says nothing.

    A full disk has no room for the copy; then the flush has to do. Raises StorageFailed or FsyncFailed.
    """
    try:
        replace_file(path, fs.read(path), fs)
    except StorageFull:
        sync_folder(path.parent, fs)
    except OSError as error:
        raise storage_failure("read", path, error) from error
