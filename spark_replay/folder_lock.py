"""A lock on a folder, for as long as the process lives."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kquorum.regular_files import open_regular


class FolderTaken(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file `path`, `shared` with other readers or alone. The file stays; a reader does not create it.

    Raises FolderTaken, NotRegular for a link or another thing of this name, and OSError.
    """
    descriptor = open_regular(path, os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderTaken(str(path)) from None
        yield
    finally:
        os.close(descriptor)
