"""The disk and the clock of one node: slow, failing, full, without power, or wrong about the time, on command."""

import os
from pathlib import Path
from random import Random
from typing import Any

from tests.jepsen.disk import power_cut
from tests.jepsen.disk.control import FOR_EVER, PAGE_BYTES, Control

_US_PER_MS = 1000


class FaultyDisk:
    """A process that is started with `environment()` feels it in `data_folder`, and its children do too.

    Faults begin and end with the call, whatever the process is doing. What was not flushed outlives a killed process
    and its successors until it is flushed or the power is cut. The folder must be there before the process, and
    after a change from outside, call `forget()`.
    """

    def __init__(self, shim: Path, data_folder: Path, state_folder: Path) -> None:
        """`state_folder` is this disk's own, outside of `data_folder` and on its file system. All there is durable."""
        self._shim = shim.resolve()
        self._data = data_folder.resolve()
        state_folder.mkdir(parents=True, exist_ok=True)
        self._state = state_folder.resolve()
        assert not self._state.is_relative_to(self._data), "journals are no data"
        assert self._state.stat().st_dev == self._data.stat().st_dev, "files are kept by hard links"
        self._control = Control(self._state / "control")
        (self._state / "lock").write_bytes(bytes(PAGE_BYTES))
        self.forget()

    def environment(self) -> dict[str, str]:
        """To be added to the process's own."""
        preloaded = [str(self._shim), *os.environ.get("LD_PRELOAD", "").split()]
        return {
            "LD_PRELOAD": " ".join(preloaded),
            "JEPSEN_DISK_FOLDER": str(self._data),
            "JEPSEN_DISK_STATE": str(self._state),
        }

    # Faults

    def slow_fsync(self, ms: int, seed: int | None = None) -> None:
        """Each flush takes so much longer; with a seed, anything up to it."""
        assert seed is None or seed > 0
        self._control["slow_fsync_seed"] = seed or 0
        self._control["slow_fsync_us"] = ms * _US_PER_MS

    def fail_fsync(self, count: int | None = None) -> None:
        """The next flushes, or all, end with EIO; what they should have kept is read, and gone after a power cut."""
        self._control["fail_fsync"] = FOR_EVER if count is None else count

    def fail_writes(self, count: int | None = None) -> None:
        """The next writes, or all, end with EIO."""
        self._control["fail_writes"] = FOR_EVER if count is None else count

    def fill(self, free_bytes: int = 0) -> None:
        """Files may grow by so much, and by what is removed; the rest of a write is refused with ENOSPC."""
        self._control["free_bytes"] = free_bytes
        self._control["space_is_limited"] = 1

    def jump_clock(self, ms: int) -> None:
        """The wall clock is so far from the true one; the monotonic clock never is."""
        self._control["clock_offset_ms"] = ms

    def heal(self) -> None:
        """All as it should be. What is not durable stays so."""
        self._control.heal()

    # After the process was killed

    def cut_power(self, random_source: Random, tear: bool) -> dict[str, Any]:
        """Take away what was not durable: all of it, or with `tear` a random part. Tells what is gone."""
        counters = self.counters()
        for name in ("unseen_changes", "journal_failures"):
            assert counters[name] == 0, f"{counters[name]} {name}: what was durable is not known"
        before = self._taken_bytes()
        lost = power_cut.cut_power(self._data, self._state, random_source, tear=tear)
        self._control.add("free_bytes", before - self._taken_bytes())
        return lost

    def forget(self) -> None:
        """Take all that is there for durable."""
        power_cut.forget(self._state)

    # Looking on

    def counters(self) -> dict[str, int]:
        """What the process has felt so far: see `control.COUNTERS`."""
        return self._control.counters()

    def journal_bytes(self) -> int:
        """How much is kept of what is not durable."""
        return sum(path.stat().st_size for path in (self._state / power_cut.JOURNALS).iterdir())

    def _taken_bytes(self) -> int:
        return sum(path.lstat().st_size for path in self._data.rglob("*") if path.is_file())
