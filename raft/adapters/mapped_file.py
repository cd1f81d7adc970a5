"""A file's bytes without a copy of them all, for what reads segments and snapshots from end to end."""

import mmap
import os
from pathlib import Path

from raft.adapters.errors import StorageFailed

Content = mmap.mmap | bytes


def map_file(path: Path) -> Content:
    """Raises StorageFailed."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise StorageFailed("read", path, error) from error
