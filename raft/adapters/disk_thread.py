"""The one thread in which the disk may stall, so that the loop never does; and the flush of the log in it.

One flush runs at a time, and what is written meanwhile waits for the next one. A voter's flush delays its
acknowledgement. No replica waits for the flush of a replica that never votes, and what that one loses in a power cut
it fetches again. So it pauses between flushes: many brokers on few disks would otherwise hold up the voters' flushes
with theirs (Kafka's observers do not flush at all).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from kquorum.raft.adapters.driver_ports import Receive
from kquorum.raft.inputs import LogFlushed

Result = TypeVar("Result")
_Job = tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None]]


class DiskThread:
    """Jobs one after the other, in the order given; the loop hears each one's outcome.

    A bare queue and `call_soon_threadsafe`: the futures of `run_in_executor` cost several times as much, and
    there is one such hop on the way of every commit. The thread is a daemon: a disk that never answers must not
    keep a process from ending.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str = "kquorum-disk") -> None:
        self._loop = loop
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._worker = Thread(target=self._run, name=name, daemon=True)
        self._worker.start()

    def submit(
        self, job: Callable[[], Result], then: Callable[[Result], None], failed: Callable[[Exception], None]
    ) -> None:
        """Run `job` in the thread; afterwards `then(result)` or `failed(error)` in the loop."""
        self._jobs.put((job, then, failed))

    async def close(self, timeout_ms: int) -> bool:
        """Finish the jobs given and end the thread; False if that takes longer than `timeout_ms`."""
        finished = asyncio.Event()
        self.submit(lambda: None, lambda _: finished.set(), lambda _: finished.set())
        self._jobs.put(None)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await finished.wait()
        except TimeoutError:
            return False
        return True

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, then, failed = job
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - whatever it is, the job's owner hears of it
                self._tell(failed, error)
            else:
                self._tell(then, result)

    def _tell(self, callback: Callable[[Any], None], outcome: object) -> None:
        # The loop is closed: there is no one left to report to.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, outcome)


class OnDisk(Protocol):
    """Runs a job in the disk's thread and the rest in the loop; `RaftDriver`'s."""

    def __call__(self, job: Callable[[], int], then: Callable[[int], None]) -> None: ...


class Rest(Protocol):
    """Calls back in the loop, after so many milliseconds."""

    def __call__(self, delay_ms: int, then: Callable[[], None]) -> object: ...


class LogFlusher:
    """Belongs to the loop. A flush that began before a cut says nothing of what was written after it, so each one is
    reported with the number of cuts before it (`raft.inputs.LogFlushed`). With `rest`, one begins at most every
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
            # One flush at a time: all that is written during it shares the next one.
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
        # Before the core's turn, so that the disk works during it.
        self.maybe_begin()
        self._receive(LogFlushed(end_offset, truncations))
