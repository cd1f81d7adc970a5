"""Files as buffers: mapped, so that the memory needed does not grow with the length of a log.

The folder of a log may come from another user: what was found by listing it is opened here, and links are not
followed.
"""

import errno
import mmap
import os
import stat
from pathlib import Path
from typing import BinaryIO


class NotRegular(OSError):
    """A symbolic link, a pipe, a device or a socket has the name of a file."""


def open_listed(path: Path) -> BinaryIO:
    """To read a file that was found in a folder. Raises NotRegular: the writer of the folder chose where a
    link leads, and a pipe may never end; and OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotRegular(errno.ELOOP, "it is a symbolic link, which is not followed", str(path)) from None
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise NotRegular(errno.EINVAL, "it is no regular file", str(path)) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NotRegular(errno.EINVAL, "it is no regular file", str(path))


def is_regular(path: Path) -> bool:
    """Whether it is a regular file and no link; False for a missing one. Raises OSError where the folder is closed."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def read_listed(path: Path) -> bytes:
    """The whole content of a small one."""
    with open_listed(path) as file:
        return file.read()


def map_file(path: str | Path) -> memoryview:
    """The file's bytes as of now, read-only; what is appended later is not seen. Raises OSError.

    The mapping goes away with the last view of it, so no caller has to close it while rows are still being made.
    """
    with open_listed(Path(path)) as file:
        size = file.seek(0, 2)
        if size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
