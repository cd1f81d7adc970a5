"""What a process holds, which hostile inputs must not make grow."""

import resource
from pathlib import Path


def held(pid: int | str = "self") -> tuple[int, int]:
    """Resident bytes and open descriptors."""
    process = Path("/proc", str(pid))
    pages = int((process / "statm").read_text().split()[1])
    return pages * resource.getpagesize(), len(tuple((process / "fd").iterdir()))
