"""Files as buffers: mapped, so that the memory needed does not grow with the length of a log."""

import mmap
from pathlib import Path


def map_file(path: str | Path) -> memoryview:
    """The file's bytes as of now, read-only; what is appended later is not seen. Raises OSError.

    The mapping goes away with the last view of it, so nobody has to close it while rows are still being made.
    """
    with Path(path).open("rb") as file:
        size = file.seek(0, 2)
        if size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
