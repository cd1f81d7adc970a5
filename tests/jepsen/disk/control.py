"""The page of settings and counters that the harness shares with the processes under the shim (shim.h)."""

import ctypes
import mmap
from pathlib import Path

MAGIC = 0x4B53494451424A4B
VERSION = 1
PAGE_BYTES = 4096
FOR_EVER = -1
_SETTINGS = (
    "slow_fsync_us",
    "slow_fsync_seed",
    "fail_fsync",
    "fail_writes",
    "space_is_limited",
    "free_bytes",
    "clock_offset_ms",
)
COUNTERS = (
    "fsyncs",
    "delayed_fsyncs",
    "failed_fsyncs",
    "writes",
    "failed_writes",
    "full_writes",
    "name_changes",
    "shifted_clocks",
    "unseen_changes",
    "journal_failures",
)


class _Page(ctypes.Structure):
    """Each field is read and written at once, without a lock."""

    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("version", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in _SETTINGS),
        ("graves", ctypes.c_uint64),
        *((name, ctypes.c_uint64) for name in COUNTERS),
    )


class Control:
    """Settings by the names of shim.h."""

    def __init__(self, path: Path) -> None:
        with path.open("w+b") as file:
            file.write(bytes(PAGE_BYTES))
            file.flush()
            self._page = _Page.from_buffer(mmap.mmap(file.fileno(), PAGE_BYTES))
        self._page.magic, self._page.version = MAGIC, VERSION

    def __getitem__(self, setting: str) -> int:
        return int(getattr(self._page, setting))

    def __setitem__(self, setting: str, value: int) -> None:
        assert setting in _SETTINGS, setting
        setattr(self._page, setting, value)

    def add(self, setting: str, value: int) -> None:
        """Not at once: only while no process is under the shim."""
        self[setting] += value

    def heal(self) -> None:
        """All settings as they were at first."""
        for setting in _SETTINGS:
            self[setting] = 0

    def counters(self) -> dict[str, int]:
        return {name: self[name] for name in COUNTERS}
