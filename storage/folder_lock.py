"""One process per data folder: Kafka's empty `.lock` file, held for the life of the process.

Two advisory locks are taken. The POSIX record lock is the one Java takes, so a Kafka broker and this node exclude
each other, and it tells the holder's pid. It does not exclude a second opening within one process; flock does.
"""

import fcntl
import os
import struct
from pathlib import Path

from kquorum.regular_files import open_regular
from kquorum.storage.errors import FolderLocked, StorageFailed

FILE_NAME = ".lock"
# struct flock of 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")


class FolderLock:
    """Held until `release` or until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises FolderLocked at once when it is held, StorageFailed when there is no such folder."""
        path = folder / FILE_NAME
        try:
            self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageFailed("open", path, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder_pid = _holder_pid(self._descriptor)
            os.close(self._descriptor)
            raise FolderLocked(folder, holder_pid) from error

    def release(self) -> None:
        """Give the folder back; the file stays, as Kafka's does."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_folder_in_use(folder: Path) -> bool:
    """Whether another process holds the lock; the lock is not taken. False where the lock file cannot be opened."""
    try:
        descriptor = open_regular(folder / FILE_NAME)
    except OSError:
        return False
    try:
        return _conflicting_lock(descriptor) is not None
    finally:
        os.close(descriptor)


def _holder_pid(descriptor: int) -> int | None:
    """Who holds the record lock; None when the kernel cannot tell (our own process, another machine)."""
    pid = _conflicting_lock(descriptor)
    return pid if pid is not None and pid > 0 else None


def _conflicting_lock(descriptor: int) -> int | None:
    """The pid that the kernel names for a record lock of another process; None where there is no such lock."""
    request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, request)
    except OSError:
        return None
    kind, _whence, _start, _length, pid = _FLOCK.unpack(answer)
    return int(pid) if kind != fcntl.F_UNLCK else None
