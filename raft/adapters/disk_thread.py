"""The one thread in which the disk may stall, so that the loop never does."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")
_Job = tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None]]


class DiskThread:
    """Jobs one after the other, in the order given; each one's outcome is told in the loop.

    A bare queue and `call_soon_threadsafe`: the futures of `run_in_executor` cost several times as much, and
    there is one such hop on the way of every commit. The thread is a daemon: a disk that never answers must not
    keep a process from ending.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str = "kquorum-disk") -> None:
        self._loop = loop
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

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
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told where the job came from
                self._tell(failed, error)
            else:
                self._tell(then, result)

    def _tell(self, callback: Callable[[Any], None], outcome: object) -> None:
        # A closed loop has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, outcome)
