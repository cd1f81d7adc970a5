"""A copy of a file for one pass from its begin to its end: what was read is given back to the system on the way."""

import mmap
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from spark_replay.files import open_resolved

_RELEASE_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


class MappedFile:
    """`view` is the content as of the opening; `release_to` keeps the resident part of a large file small.

    It is no mapping of the file itself: a node may cut that short meanwhile, or the disk may fail to deliver a page,
    and either would end the process with SIGBUS. A large file is copied into one of ours that has no name, where there
    is room for it in the folder for temporary files.
    """

    def __init__(self, path: Path) -> None:
        """`path` was resolved before. Raises OSError. `view` is what was left of a file that is cut meanwhile."""
        self._mapped: mmap.mmap | None = None
        self._released = 0
        self.view = memoryview(b"")
        try:
            with os.fdopen(open_resolved(path), "rb", buffering=0) as file:
                self._copy(file.fileno(), os.fstat(file.fileno()).st_size)
        except OSError as error:
            # Only the failed open names its file.
            raise OSError(error.errno, error.strerror, str(path)) from error

    def _copy(self, descriptor: int, size: int) -> None:
        if size > _RELEASE_BYTES:
            self._mapped = _space_on_disk(size)
        space = self._mapped
        if space is None and size:
            space = mmap.mmap(-1, size)
        if space is not None:
            copied = _fill(memoryview(space), descriptor)
            self.view = memoryview(space).toreadonly()[:copied]

    def release_to(self, position: int) -> None:
        """Bytes below `position` are not needed for now; they can be read again all the same."""
        if self._mapped is not None and position - self._released >= _RELEASE_BYTES:
            length = (position - self._released) // mmap.PAGESIZE * mmap.PAGESIZE
            self._mapped.madvise(mmap.MADV_DONTNEED, self._released, length)
            self._released += length


def _space_on_disk(size: int) -> mmap.mmap | None:
    """A mapped file without a name, all its blocks allocated; None where there is no room for it."""
    with suppress(OSError), tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), size)
    return None


def _fill(space: memoryview, descriptor: int) -> int:
    """Copy a file from its begin; how many bytes of it there were, `space` at most."""
    position = 0
    while position < len(space):
        count = os.preadv(descriptor, [space[position : position + _PIECE_BYTES]], position)
        if count == 0:
            break
        position += count
    return position
