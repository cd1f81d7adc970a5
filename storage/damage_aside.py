"""Moves what is damaged out of the log's way, so that the log can grow again from what is sound. Nothing is lost by it.

A crash at any moment leaves the damage to be found again: the recovery point must be durable beyond it before.
"""

import os
from pathlib import Path

from kquorum.storage.durable_files import (
    remove_file,
    rename_durably,
    sync_descriptor,
    sync_folder,
    write_all,
)
from kquorum.storage.errors import storage_failure
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.segment import Segment

DAMAGED_SUFFIX = ".damaged"
_CHUNK_BYTES = 1024 * 1024


def set_segments_aside(paths: list[Path], fs: FileSystem = POSIX) -> None:
    """Rename whole segments, the last one first, so that what is left never has a gap. Raises StorageFailed."""
    for path in sorted(paths, reverse=True):
        for index in (path.with_suffix(".timeindex"), path.with_suffix(".index")):
            remove_file(index, fs)
        rename_durably(path, path.with_name(path.name + DAMAGED_SUFFIX), fs)


def set_tail_aside(segment: Segment, fs: FileSystem = POSIX) -> None:
    """Copy what follows the sound part of a segment into a file beside it, then cut it off, both durably.

    Raises StorageFull, StorageFailed or FsyncFailed.
    """
    target = segment.path.with_name(segment.path.name + DAMAGED_SUFFIX)
    try:
        _copy_tail(segment, target, fs)
    except OSError as error:
        raise storage_failure("write", target, error) from error
    sync_folder(target.parent, fs)
    segment.cut_unsound()
    segment.sync()


def _copy_tail(segment: Segment, target: Path, fs: FileSystem) -> None:
    position = segment.size
    descriptor = fs.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        while data := fs.pread(segment.descriptor, _CHUNK_BYTES, position):
            write_all(descriptor, data, fs)
            position += len(data)
        sync_descriptor(descriptor, target, fs)
    finally:
        fs.close(descriptor)
