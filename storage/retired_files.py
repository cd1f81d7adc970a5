"""Files that are no longer wanted: renamed at once, removed after a while, as Kafka does.

The delay is for readers that hold them still: a Fetch on its way, a person with a dump tool.
"""

import heapq
import itertools
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kquorum.storage.durable_files import list_names, remove_file
from kquorum.storage.errors import storage_failure
from kquorum.storage.file_system import POSIX, FileSystem

DELETED_SUFFIX = ".deleted"
DELETE_DELAY_MS = 60_000
# The storage's own files, and Kafka's beside them.
_LEFTOVERS = re.compile(
    r"\d{20}\.(log|index|timeindex|snapshot|txnindex)\.deleted"
    r"|(leader-epoch-checkpoint|recovery-point|damaged-range)\.tmp"
)
logger = logging.getLogger(__name__)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class RetiredFiles:
    def __init__(
        self,
        delay_ms: int = DELETE_DELAY_MS,
        now_ms: Callable[[], int] = _monotonic_ms,
        fs: FileSystem = POSIX,
    ) -> None:
        self._fs = fs
        self._delay_ms = delay_ms
        self._now_ms = now_ms
        self._counter = itertools.count()
        # A heap by the time when each is due; the number keeps the order of what is due at once.
        self._waiting: list[tuple[int, int, Path, Callable[[], None]]] = []

    def retire(
        self, path: Path, close: Callable[[], None] = lambda: None, *, delay_ms: int | None = None
    ) -> None:
        """Rename `path` now, if it is there; `close` what reads it, and remove it, later: after `delay_ms`, if the file
        has a delay of its own. Not durable before the folder is synced. Raises StorageFull or StorageFailed."""
        target = path.with_name(path.name + DELETED_SUFFIX)
        try:
            with suppress(FileNotFoundError):
                self._fs.rename(path, target)
        except OSError as error:
            raise storage_failure("rename", path, error) from error
        due_ms = self._now_ms() + (self._delay_ms if delay_ms is None else delay_ms)
        heapq.heappush(self._waiting, (due_ms, next(self._counter), target, close))

    def remove_due(self) -> None:
        """Remove what has waited long enough; raises StorageFailed."""
        for path in self.take_due():
            remove_file(path, self._fs)

    def take_due(self, most: int | None = None) -> list[Path]:
        """Those that have waited long enough, `most` at once, for the caller to remove: in a thread, say."""
        found: list[Path] = []
        while self._waiting and self._waiting[0][0] <= self._now_ms() and len(found) != most:
            _due_ms, _, path, close = heapq.heappop(self._waiting)
            close()
            found.append(path)
        return found

    def remove_all(self) -> None:
        """Remove them at once: space is short. Raises StorageFailed."""
        while self._waiting:
            _due_ms, _, path, close = heapq.heappop(self._waiting)
            close()
            remove_file(path, self._fs)

    def close(self) -> None:
        """Close what is still read; the files are removed at the next start."""
        while self._waiting:
            heapq.heappop(self._waiting)[3]()


def remove_leftovers(folder: Path, of_owner: re.Pattern[str], fs: FileSystem = POSIX) -> None:
    """Remove what was never finished, and what was marked for removal when the process ended: the storage's files, and
    those of the log's owner, whose names match `of_owner`. Raises StorageFailed."""
    for name in list_names(folder, fs):
        if _LEFTOVERS.fullmatch(name) or of_owner.fullmatch(name):
            logger.info("removed %s, left over from before", folder / name)
            remove_file(folder / name, fs)
