"""A folder for sockets that only this user may enter, with a path short enough for them.

It goes when its process ends in order. One that a killed process has left is removed by the next process that makes
one: its owner would hold a lock on it.
"""

import fcntl
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "kquorum-grpc-"
# What the owner makes there once it has the lock; before, the folder could be of a process that is about to take it.
SOCKET_NAME: Final = "server"
# Linux takes 107 bytes for a socket's path, macOS 103. Names of at most 20 come behind the folder.
_LONGEST: Final = 80
_RANDOM: Final = 8


class PrivateFolder:
    def __init__(self) -> None:
        """Raises OSError, also where a path for sockets would be too long."""
        wanted = tempfile.gettempdir()
        fits = len(os.fsencode(wanted)) + 1 + len(PREFIX) + _RANDOM <= _LONGEST
        parent = Path(wanted if fits else "/tmp")  # noqa: S108 - the folder in it is made for this user alone
        _remove_left_over(parent)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Once or more often."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def _remove_left_over(parent: Path) -> None:
    for found in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another process removes it too, or it is not ours
            lock = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                is_ours = os.fstat(lock).st_uid == os.geteuid()
                if is_ours and stat.S_ISSOCK((found / SOCKET_NAME).lstat().st_mode):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(found)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    """Nothing but sockets, and not what is in other folders."""
    with suppress(OSError):
        for each in folder.iterdir():
            with suppress(OSError):
                each.unlink()
        folder.rmdir()
