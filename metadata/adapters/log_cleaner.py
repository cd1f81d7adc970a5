"""Cuts a running node's log below its snapshots, as `snapshots.retention` decides on the files in the folder; and the
ports by which a node's snapshots reach its replica and its log."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.raft.inputs import Input
from kquorum.raft.ports import QuorumAt
from kquorum.snapshots.adapters.inventory import list_files
from kquorum.snapshots.retention import GivenUp, Kept, KeptSegment, KeptSnapshot, RetentionLimits, given_up
from kquorum.storage.file_system import FileSystem

log = logging.getLogger("metadata.snapshots")


class Replica(Protocol):
    """`raft.adapters.driver.RaftDriver`."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def applied_offset(self) -> int: ...

    def quorum_at(self, end_offset: int) -> QuorumAt: ...

    def receive(self, event: Input) -> None: ...

    def advance_log_start(self, offset: int) -> None:
        """Begin the log there, where a snapshot ends, as soon as that can be done."""
        ...


class LogWithStart(Protocol):
    """`raft.adapters.file_log.FileLog`."""

    @property
    def log_start_offset(self) -> int: ...


class LogCleaner:
    """Runs on request, and once an interval, because snapshots age while nothing else happens.

    The disk thread reads the folder. The listing may be out of date at the decision. Only this log deletes files, so it
    is enough to read the log's own start and the replica's bounds at that time.
    """

    def __init__(
        self,
        folder: Path,
        limits: RetentionLimits,
        replica: Replica,
        metadata_log: LogWithStart,
        now_ms: Callable[[], int],
        fs: FileSystem,
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._replica = replica
        self._log = metadata_log
        self._now_ms = now_ms
        self._fs = fs
        self._is_looking = False
        self._asked_offset = -1
        self._thread: DiskThread | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, thread: DiskThread, interval_ms: int) -> None:
        """In the running loop."""
        self._thread = thread
        self._arm(asyncio.get_running_loop(), interval_ms)

    def close(self) -> None:
        self._thread = None
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Have the folder looked at soon."""
        if self._thread is not None and not self._is_looking:
            self._is_looking = True
            self._thread.submit(lambda: list_files(self._folder, self._fs), self._decide, self._failed)

    def _arm(self, loop: asyncio.AbstractEventLoop, interval_ms: int) -> None:
        def look_again() -> None:
            self._arm(loop, interval_ms)
            self.look()

        self._timer = loop.call_later(interval_ms / 1000, look_again)

    def _decide(self, found: tuple[tuple[KeptSegment, ...], tuple[KeptSnapshot, ...]]) -> None:
        self._is_looking = False
        if self._thread is None:
            return
        segments, snapshots = found
        kept = Kept(
            log_start_offset=self._log.log_start_offset,
            bound=min(self._replica.high_watermark, self._replica.applied_offset),
            segments=segments,
            snapshots=snapshots,
        )
        removed = given_up(kept, self._limits, self._now_ms())
        if removed and removed[-1].log_start_offset > self._asked_offset:
            # The log may be being cut or replaced just now: it moves its start when that is over, or has moved it.
            self._asked_offset = removed[-1].log_start_offset
            self._replica.advance_log_start(self._asked_offset)
            _log_removed(removed)

    def _failed(self, error: Exception) -> None:
        self._is_looking = False
        log.warning("what the log's folder holds could not be looked at, so nothing is given up: %s", error)


def _log_removed(removed: Sequence[GivenUp]) -> None:
    for each in removed:
        log.info("gave up snapshot %s: %s", each.snapshot_id.file_name, each.reason)
    log.info("the log now begins at offset %d", removed[-1].log_start_offset)
