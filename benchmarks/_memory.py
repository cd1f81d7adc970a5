"""What a process and all below it took: the most memory at once, and processor time, as the kernel tells it (Linux)."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

_EVERY_S = 0.25
# utime, stime, cutime, cstime: fields 14 to 17 of proc(5), counted from behind the name of the program.
_USER_TICKS = 11


class PeakMemory:
    """Within `with`, looks every quarter of a second; `peak_mb` by the name of the program.

    Pages which processes share are counted by parts (PSS): Spark's workers are forks of one process.
    """

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_mb: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            now: dict[str, float] = {}
            for process_id in _family(self._process_id):
                try:
                    name = Path(f"/proc/{process_id}/comm").read_text().strip()
                    now[name] = now.get(name, 0.0) + _pss_mb(process_id)
                except OSError:
                    continue  # it ended meanwhile
            for name, size_mb in now.items():
                self.peak_mb[name] = max(self.peak_mb.get(name, 0.0), size_mb)


def cpu_seconds(process_id: int) -> float:
    """Of the processor, used by a process and all below it, those included that have ended."""
    ticks = 0
    for each in _family(process_id):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        ticks += sum(map(int, fields[_USER_TICKS : _USER_TICKS + 4]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(process_id: int) -> Iterator[int]:
    yield process_id
    for children in Path(f"/proc/{process_id}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in found:
            yield from _family(int(child))


def _pss_mb(process_id: int) -> float:
    lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
