"""Space kept for the moment at which there is none: a full disk must not stop the writing of small state files.

A file of a fixed size stands beside the log's folder. When something small has to be written and the disk is full, the
file gives its space away; once there is room for it again, with some to spare, it takes it back, and that is how the
node learns that it may take writes again (KIP-928 asks Kafka for the like).
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar

from kquorum.storage.durable_files import remove_file
from kquorum.storage.errors import StorageFailed, StorageFull, is_no_space
from kquorum.storage.file_system import POSIX, FileSystem

FILE_NAME = "reserved.space"
DEFAULT_RESERVED_BYTES = 16 * 1024 * 1024
Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class ReservedSpace:
    """`size_in_bytes` of 0 reserves nothing. All methods may be used in several threads at once: by the loop, which
    appends, and by the thread which writes small files."""

    def __init__(
        self,
        folder: Path,
        size_in_bytes: int = DEFAULT_RESERVED_BYTES,
        fs: FileSystem = POSIX,
        file_name: str = FILE_NAME,
    ) -> None:
        """Reserves at once, as far as there is space: see `is_held`. Raises StorageFailed."""
        self._fs = fs
        self._path = folder / file_name
        self._size_in_bytes = size_in_bytes
        self.is_held = False
        self._lock = Lock()
        self._releases = 0
        self._reserve()

    def with_space(self, write: Callable[[], Result]) -> Result:
        """Run `write`; if it finds the disk full, give the reserve away and run it once more.

        Raises what `write` raises: StorageFull when even that was not enough.
        """
        # Read before the write: another thread may give the reserve away between the failure and the check, and then
        # this write has room although the reserve is gone.
        releases = self._releases
        try:
            return write()
        except StorageFull as error:
            if not self._has_given_since(releases, error):
                raise
        return write()

    def _has_given_since(self, releases: int, error: StorageFull) -> bool:
        """Whether there is more space than at the time of so many releases, be it by another thread's need."""
        with self._lock:
            if self.is_held:
                logger.warning("%s; %d reserved bytes are given away for it", error, self._size_in_bytes)
                self._release()
            return self._releases > releases

    def release(self) -> None:
        """Give the space away; raises StorageFailed."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        self.is_held = False
        self._releases += 1
        remove_file(self._path, self._fs)

    def maybe_take_back(self) -> bool:
        """Reserve again if there is room for it twice over, so that the next write does not find the disk full again.

        Answers whether the reserve is held: while it is not, writes but the smallest should be refused. Raises
        StorageFailed.
        """
        with self._lock:
            if not self.is_held and self._free_bytes() >= 2 * self._size_in_bytes:
                self._reserve()
            return self.is_held

    def take_back(self) -> bool:
        """Reserve again if there is any room for it; answers whether it is held. Raises StorageFailed."""
        with self._lock:
            if not self.is_held:
                self._reserve()
            return self.is_held

    def _free_bytes(self) -> int:
        try:
            return self._fs.free_bytes(self._path.parent)
        except OSError as error:
            raise StorageFailed("look for free space in", self._path.parent, error) from error

    def _reserve(self) -> None:
        if self._size_in_bytes == 0:
            self.is_held = True
            return
        try:
            descriptor = self._fs.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                self._fs.truncate(descriptor, min(self._size_in_bytes, self._fs.size(descriptor)))
                self._fs.allocate(descriptor, self._size_in_bytes)
            finally:
                self._fs.close(descriptor)
        except OSError as error:
            if not is_no_space(error):
                raise StorageFailed("reserve space in", self._path, error) from error
            logger.warning("no space to reserve %d bytes in %s", self._size_in_bytes, self._path)
            self._release()
            return
        self.is_held = True
