"""A file's bytes without a copy of them all, for what reads a file from end to end."""

from pathlib import Path

from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import POSIX, Content, FileSystem


def map_file(path: Path, fs: FileSystem = POSIX) -> Content:
    """Raises StorageFailed."""
    try:
        return fs.map(path)
    except OSError as error:
        raise StorageFailed("read", path, error) from error
