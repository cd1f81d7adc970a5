"""One of the broker's log directories: where partition folders lie, and whether the disk below them still answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from kquorum.broker.log.errors import KafkaStorageError
from kquorum.storage.file_system import POSIX, FileSystem
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
    ) -> None:
        self.path = path
        self.directory_id = directory_id
        self.fs = fs
        self.now_ms = now_ms
        self.failure: Exception | None = None
        self.on_failure = on_failure
        self.was_truncated = False
        """A log was cut since its recovery point was last written down."""
        self.retired = RetiredFiles(now_ms=lambda: self.now_ms, fs=fs)

    @property
    def is_failed(self) -> bool:
        return self.failure is not None

    def check(self) -> None:
        """Raises KafkaStorageError once the directory has failed."""
        if self.failure is not None:
            raise KafkaStorageError(f"the log directory {self.path} is offline: {self.failure}")

    def fail(self, error: Exception) -> KafkaStorageError:
        """Take the directory offline; the error to raise."""
        if self.failure is None:
            self.failure = error
            logger.error(
                "the log directory %s is offline until the broker is restarted: %s", self.path, error
            )
            self.on_failure(self, error)
        return KafkaStorageError(f"the log directory {self.path} is offline: {error}")
