"""A file mapped for one pass from its begin to its end: what was read is given back to the system on the way."""

import mmap
from pathlib import Path

_RELEASE_BYTES = 32 * 1024 * 1024


class MappedFile:
    """`view` is the content as of the opening; `release_to` keeps the resident part of a large file small."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._mapped: mmap.mmap | None = None
        self._released = 0
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size:
                self._mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        self.view = memoryview(b"" if self._mapped is None else self._mapped)

    def release_to(self, position: int) -> None:
        """Bytes below `position` are not needed for now; they can be read again all the same."""
        if self._mapped is not None and position - self._released >= _RELEASE_BYTES:
            length = (position - self._released) // mmap.PAGESIZE * mmap.PAGESIZE
            self._mapped.madvise(mmap.MADV_DONTNEED, self._released, length)
            self._released += length
