"""Opening a regular file, and nothing else that has its name.

The rooms below `node` may not import each other's file code: `storage` keeps logs, `spark_replay` reads them offline,
`network` reads key stores. So this stands beside the rooms, and imports none of them.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final


class NotRegular(OSError):
    """A symbolic link, a pipe, a device or a socket has the name of a file."""


def open_regular(
    path: Path,
    flags: int = os.O_RDONLY,
    mode: int = 0o600,
    *,
    folder: int | None = None,
    follows_links: bool = False,
) -> int:
    """A descriptor of a file that was found in a folder, to read it unless `flags` say otherwise. Raises NotRegular for
    a symbolic link and for what is no file (the writer of the folder chose where the link leads, and a pipe may never
    end), and OSError.

    With `folder`, a descriptor, the last name of `path` is opened in that folder. `follows_links` is for a path that
    the operator chose.
    """
    no_links = 0 if follows_links else os.O_NOFOLLOW
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | no_links  # a pipe without a writer would block the opening
    try:
        descriptor = os.open(path if folder is None else path.name, flags, mode, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP and not follows_links:
            raise NotRegular(errno.ELOOP, "it is a symbolic link, which is not followed", str(path)) from None
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise NotRegular(errno.EINVAL, "it is no regular file", str(path)) from None
        raise OSError(error.errno, error.strerror, str(path)) from None
    # Asked of the descriptor, not of the name: the name may lead elsewhere by now.
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NotRegular(errno.EINVAL, "it is no regular file", str(path))


LARGEST_WHOLE_BYTES: Final = 64 * 1024 * 1024
"""A file of state, a manifest or an index is much smaller. A sparse file may say that it has terabytes."""


def read_regular(path: Path, most_bytes: int = LARGEST_WHOLE_BYTES) -> bytes:
    """The whole content of such a file. Raises OSError, EFBIG for a file of more than `most_bytes`."""
    with os.fdopen(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            reason = f"it has {size:,} bytes, and a file of this kind has at most {most_bytes:,}"
            raise OSError(errno.EFBIG, reason, str(path))
        return file.read(most_bytes)
