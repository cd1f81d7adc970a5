"""A lock on a folder, for as long as the process lives."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kquorum.spark_replay.decode.files import NotRegular


class FolderTaken(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file `path`, `shared` with other readers or alone. The file stays; a reader does not create it.

    Raises FolderTaken, NotRegular for a link or another thing of this name, and OSError.
    """
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotRegular(errno.ELOOP, "it is a symbolic link, which is not followed", str(path)) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular(errno.EINVAL, "it is no regular file", str(path))
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderTaken(str(path)) from None
        yield
    finally:
        os.close(descriptor)
