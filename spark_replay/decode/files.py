"""Files as buffers: mapped, so that the memory needed does not grow with the length of a log.

The folder of a log may come from another user: what was found by listing it is opened here, and links are not
followed.
"""

import errno
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kquorum.regular_files import LARGEST_WHOLE_BYTES, NotRegular, open_regular

# Of a folder on the way to a file: Linux asks for no right to list it.
_PASSING = getattr(os, "O_PATH", os.O_RDONLY)


def open_resolved(path: Path) -> int:
    """A descriptor to read a regular file, by a path that was resolved before: neither it nor a folder on the way may
    be a link by now. Raises NotRegular and OSError.

    The writer of a folder can put a link in the place of one inside it at any moment, so a check before the opening is
    no protection. Each folder is opened in the one above it.
    """
    with opened_folder(path.parent) as folder:
        return open_regular(path, folder=folder)


@contextmanager
def opened_folder(path: Path, flags: int = _PASSING) -> Iterator[int]:
    """A descriptor of a folder, to open what is in it. `path` was resolved before: no part of it may be a link. Raises
    NotRegular for a link, and OSError."""
    descriptor = _opened_folder(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def scan_resolved(path: Path) -> "Iterator[Iterator[os.DirEntry[str]]]":
    """What is in a folder whose path was resolved before; the entries know their names, not their paths."""
    with opened_folder(path, os.O_RDONLY) as folder, os.scandir(folder) as entries:
        yield entries


def _opened_folder(path: Path, flags: int) -> int:
    names = path.parts[1:] if path.is_absolute() else path.parts
    above = os.open(path.anchor or ".", (flags if not names else _PASSING) | os.O_DIRECTORY | os.O_CLOEXEC)
    for index, name in enumerate(names, 1):
        wanted = (flags if index == len(names) else _PASSING) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        place = Path(*path.parts[: len(path.parts) - len(names) + index])
        try:
            descriptor = os.open(name, wanted, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, above):
                raise NotRegular(
                    errno.ELOOP, "it is a symbolic link, which is not followed", str(place)
                ) from None
            raise OSError(error.errno, error.strerror, str(place)) from None
        finally:
            os.close(above)
        above = descriptor
    return above


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_listed(path: Path) -> BinaryIO:
    """To read a file that was found in a folder, by a path that was resolved before. Raises NotRegular and OSError."""
    return os.fdopen(open_resolved(path), "rb")


def is_regular(path: Path) -> bool:
    """Whether it is a regular file and no link; False for a missing one. Raises OSError where the folder is closed."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def read_listed(path: Path) -> bytes:
    """The whole content of a small one. Raises NotRegular and OSError, EFBIG for one of more than LARGEST_WHOLE_BYTES:
    a sparse file takes no room on the disk, and would fill the memory."""
    with open_listed(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_WHOLE_BYTES:
            reason = f"it has {size:,} bytes, and a file of this kind has at most {LARGEST_WHOLE_BYTES:,}"
            raise OSError(errno.EFBIG, reason, str(path))
        return file.read(LARGEST_WHOLE_BYTES)


def map_listed(path: str | Path) -> memoryview:
    """The bytes of such a file as of now, read-only; what is appended later is not seen. Raises NotRegular and OSError.

    `storage.mapped_file` reads all of a file first, as a bad sector must not end a node. A log of any length is only
    mapped here.

    The mapping goes away with the last view of it, so no caller has to close it while rows are still being made.
    """
    with open_listed(Path(path)) as file:
        size = file.seek(0, 2)
        if size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
