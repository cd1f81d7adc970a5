"""Writing a file into a folder that another user may have made.

The author of a folder knows the names that a program writes there, and can put a symbolic link by each of them. So a
file is written under another name, as a new file that only its owner can read, and then takes its place: a link by its
name is replaced, and what it leads to stays as it was.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_OWN_FILE = 0o600
# Their files lead to devices and to what the process has open (/dev/stdout): nothing there can be replaced.
_KERNELS = (Path("/dev"), Path("/proc"))


@contextmanager
def replacing(path: Path, mode: int = _OWN_FILE) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the context ends without an error. Raises OSError.

    Spark passes over its name until then, which begins with a dot.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    with suppress(FileNotFoundError):
        unfinished.unlink()
    # O_EXCL follows no link: if the folder's author has put one there since, this fails.
    descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def replace_whole(path: Path, content: bytes, mode: int = _OWN_FILE) -> None:
    """Raises OSError; then the old content is there."""
    with replacing(path, mode) as file:
        file.write(content)


@contextmanager
def writing_named(path: Path) -> Iterator[BinaryIO]:
    """As `replacing`, for a path that an operator named: a pipe, a terminal and /dev/stdout are written to as they are.
    Raises OSError."""
    if _is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    with replacing(path) as file:
        yield file


def _is_stream(path: Path) -> bool:
    parent = path.parent.resolve()
    if any(parent.is_relative_to(each) for each in _KERNELS):
        return True
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)
