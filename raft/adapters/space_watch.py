"""A disk that runs full: the reserve of the log, and the space that is kept for the election state alone.

Every write of a replica goes through `SpaceWatch.with_space`. The first write that finds no space gets the space of the
reserve, so that nothing which was promised is left half done; from then on the core takes no records
(`raft.full_disk`). Meanwhile the disk's thread looks once a second whether it can hold the reserve again. That is also
the sign that writes may go on. A write that finds no space although the reserve was given away is fatal, and so is a
flush that fails.

The reserve is given away once, and the process that fills the disk may have taken all of it by the time a vote has to
be written. So `SparingStateStore` keeps a little space for that beside the reserve: replacing a file needs room for a
second copy, gives back the room of the first one, and the rest is held again.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from kquorum.raft.adapters.driver_ports import Receive
from kquorum.raft.inputs import WritesPaused
from kquorum.raft.ports import QuorumStateStore
from kquorum.raft.ready import QuorumState
from kquorum.storage.errors import StorageFull
from kquorum.storage.reserved_space import ReservedSpace

POLL_INTERVAL_MS = 1_000
# A snapshot that does not fit leaves no trace, so that only time can tell whether it fits now.
SNAPSHOT_RETRY_MS = 30_000
Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class OnDisk(Protocol):
    """Runs a job in the disk's thread and the rest in the loop; `RaftDriver`'s."""

    def __call__(self, job: Callable[[], bool], then: Callable[[bool], None]) -> None: ...


class Unwatched:
    """For a log that no disk can fill, or whose filling may as well be fatal; satisfies what a driver needs."""

    def start(self, loop: asyncio.AbstractEventLoop, receive: Receive, on_disk: OnDisk) -> None:
        pass

    def close(self) -> None:
        pass

    def with_space(self, write: Callable[[], Result]) -> Result:
        return write()


class SpaceWatch:
    """`with_space` may be called in any thread, all else in the loop's. `handle_change` is called with each change."""

    def __init__(
        self,
        reserve: ReservedSpace,
        handle_change: Callable[[bool], None] = lambda _: None,
        poll_interval_ms: int = POLL_INTERVAL_MS,
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        """`make_room` runs in the disk's thread before each look: it removes what is there only to be kind."""
        self._reserve = reserve
        self._handle_change = handle_change
        self._poll_interval_ms = poll_interval_ms
        self._make_room = make_room
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_paused = False

    def start(self, loop: asyncio.AbstractEventLoop, receive: Receive, on_disk: OnDisk) -> None:
        """Begin, in the running loop, in which `receive` takes the core's inputs. If there was no space for the reserve
        in the first place, writes are paused from the beginning."""
        self._loop, self._receive, self._on_disk = loop, receive, on_disk
        self._thread_id = threading.get_ident()
        self._maybe_pause()

    def close(self) -> None:
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()

    def with_space(self, write: Callable[[], Result]) -> Result:
        """Run `write`, with the reserve's space if need be. Raises what it raises; StorageFull only if even that was
        not enough, and then it is fatal."""
        result = self._reserve.with_space(write)
        if not self._reserve.is_held and self._loop is not None:
            if threading.get_ident() == self._thread_id:
                self._maybe_pause()
            else:
                self._loop.call_soon_threadsafe(self._maybe_pause)
        return result

    def handle_full_snapshot(self, _: StorageFull) -> None:
        """A snapshot that comes in does not fit. Its bytes are gone again, so it is not the reserve that is needed:
        take nothing for a while, rather than fill the disk over and over."""
        if not self.is_paused and self._loop is not None:
            self._pause(SNAPSHOT_RETRY_MS)

    def _maybe_pause(self) -> None:
        if not self.is_paused and not self._reserve.is_held and self._loop is not None:
            self._pause(self._poll_interval_ms)

    def _pause(self, wait_ms: int) -> None:
        self.is_paused = True
        logger.warning("no space is left: this node takes no records until there is")
        self._handle_change(True)
        self._receive(WritesPaused(True))
        self._poll_after(wait_ms)

    def _poll_after(self, wait_ms: int) -> None:
        if self._loop is not None:
            self._timer = self._loop.call_later(wait_ms / 1000, self._poll)

    def _poll(self) -> None:
        self._on_disk(self._look, self._polled)

    def _look(self) -> bool:
        self._make_room()
        return self._reserve.maybe_take_back()

    def _polled(self, _: bool) -> None:
        """The reserve may have been given away once more meanwhile."""
        if not self._reserve.is_held:
            self._poll_after(self._poll_interval_ms)
            return
        self.is_paused = False
        logger.info("there is space again")
        self._handle_change(False)
        self._receive(WritesPaused(False))


FILE_NAME = "reserved.state"
SPARE_BYTES = 64 * 1024


class SparingStateStore:
    """The given store, for a full disk; satisfies raft.ports.QuorumStateStore. Its methods belong to one thread."""

    def __init__(self, inner: QuorumStateStore, spare: ReservedSpace) -> None:
        self._inner = inner
        self._spare = spare

    def read(self) -> QuorumState | None:
        return self._inner.read()

    def write(self, state: QuorumState) -> None:
        """Raises StorageFull when there is no spare space any more, StorageFailed or FsyncFailed."""
        try:
            self._inner.write(state)
        except StorageFull:
            if not self._spare.is_held:
                raise
            self._spare.release()
            self._inner.write(state)
        self._spare.take_back()
