"""One flush of the log at a time; what was written meanwhile is the next one.

A voter's flush is waited for: it acknowledges what is durable. Nobody waits for that of a replica which never votes,
and what it loses with the power it fetches again, so it rests between flushes: many brokers on few disks would
otherwise hold up the voters' flushes with theirs (Kafka's observers do not flush at all).
"""

from collections.abc import Callable
from typing import Protocol

from raft.adapters.driver_ports import Receive
from raft.inputs import LogFlushed


class OnDisk(Protocol):
    """Runs a job in the disk's thread and the rest in the loop; `RaftDriver`'s."""

    def __call__(self, job: Callable[[], int], then: Callable[[int], None]) -> None: ...


class Rest(Protocol):
    """Calls back in the loop, after so many milliseconds."""

    def __call__(self, delay_ms: int, then: Callable[[], None]) -> object: ...


class LogFlusher:
    """Belongs to the loop. A flush that began before a cut says nothing of what was written after it, so each one is
    told with the number of cuts before it (`raft.inputs.LogFlushed`). With `rest`, one begins at most every
    `interval_ms`."""

    def __init__(
        self,
        flush: Callable[[], int],
        on_disk: OnDisk,
        receive: Receive,
        *,
        interval_ms: int = 0,
        rest: Rest | None = None,
    ) -> None:
        self._flush = flush
        self._on_disk = on_disk
        self._receive = receive
        self._interval_ms = interval_ms
        self._rest = rest if interval_ms else None
        self._is_resting = False
        self._is_flushing = False
        self._is_needed = False
        self._truncations = 0

    def log_was_cut(self) -> None:
        """To be said before anything is written behind the cut."""
        self._truncations += 1

    def flush_soon(self) -> None:
        """Something was written, or what was written may have been on its way in a flush that counts no more."""
        self._is_needed = True

    def maybe_begin(self) -> None:
        if self._is_needed and not self._is_flushing and not self._is_resting:
            self._is_needed = False
            self._is_flushing = True
            truncations = self._truncations
            if self._rest is not None:
                self._is_resting = True
                self._rest(self._interval_ms, self._rested)
            self._on_disk(self._flush, lambda end_offset: self._flushed(end_offset, truncations))

    def _rested(self) -> None:
        self._is_resting = False
        self.maybe_begin()

    def _flushed(self, end_offset: int, truncations: int) -> None:
        self._is_flushing = False
        self.maybe_begin()
        self._receive(LogFlushed(end_offset, truncations))
