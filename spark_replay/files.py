"""Files as buffers: mapped, so that the memory needed does not grow with the length of a log.

The folder of a log may come from another user: what was found by listing it is opened here, and links are not
followed.
"""

import mmap
import os
import stat
from pathlib import Path
from typing import BinaryIO

from storage.file_system import open_resolved


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
