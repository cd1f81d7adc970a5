"""One of the broker's log directories: where partition folders lie, and whether the disk below them still answers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from kquorum.broker.adapters.log.log_space import LogSpace
from kquorum.broker.log.errors import KafkaStorageError, NoSpaceLeft
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.open_segments import OpenSegments
from kquorum.storage.retired_files import RetiredFiles

logger = logging.getLogger("broker.log_dirs")


class LogDir:
    """`now_ms` is the broker's clock as the log manager last heard of it: for what waits before it is removed.

    A directory fails once, and is used again only after a restart (KIP-112): what a disk holds after an error of its
    own is not known.
    """

    def __init__(
        self,
        path: Path,
        directory_id: UUID,
        fs: FileSystem = POSIX,
        *,
        now_ms: int = 0,
        on_failure: Callable[[LogDir, Exception], None] = lambda _dir, _error: None,
        space: LogSpace | None = None,
        open_segments: OpenSegments | None = None,
    ) -> None:
        """The directories of a broker share `open_segments`."""
        self.path = path
        self.directory_id = directory_id
        self.fs = fs
        self.now_ms = now_ms
        self.space = space or LogSpace(path, fs=fs)
        self.failure: Exception | None = None
        self.on_failure = on_failure
        self.open_segments = OpenSegments() if open_segments is None else open_segments
        self.was_truncated = False
        """A log was cut since a write of the recovery points was last begun."""
        self.lowered = 0
        """How often a recovery point went back, and below, which of these times the disk has heard of."""
        self.lowered_written = 0
        self.write_recovery_points: Callable[[], None] = lambda: None
        """Write those of all logs here and now; the log manager sets it. Raises StorageFailed."""
        self.checkpoint_lock = threading.Lock()
        self.checkpoints: dict[str, int] = {}
        """By name: the number of the newest content of a checkpoint file that is on the disk."""
        self._last_checkpoint = 0
        self.retired = RetiredFiles(now_ms=lambda: self.now_ms, fs=fs)

    @property
    def is_failed(self) -> bool:
        return self.failure is not None

    def next_checkpoint(self) -> int:
        self._last_checkpoint += 1
        return self._last_checkpoint

    def check(self) -> None:
        """Raises KafkaStorageError once the directory has failed."""
        if self.failure is not None:
            raise KafkaStorageError(f"the log directory {self.path} is offline: {self.failure}")

    def check_space(self) -> None:
        """Raises NoSpaceLeft while records are refused."""
        if self.space.refuses:
            raise NoSpaceLeft(f"{self.path} has no space left, and takes no records until there is")

    def fail(self, error: Exception) -> KafkaStorageError:
        """Take the directory offline; the error to raise."""
        if self.failure is None:
            self.failure = error
            reason = error.reason if isinstance(error, StorageFailed) else error
            logger.error(
                "the log directory %s is offline until the broker is restarted: %s; check the disk",
                self.path,
                reason,
            )
            self.on_failure(self, error)
        return KafkaStorageError(f"the log directory {self.path} is offline: {error}")
