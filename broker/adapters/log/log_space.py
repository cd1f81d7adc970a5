"""A full disk below log directories: no more records, and room for the small files that must still be written.

A file of a fixed size reserves space beside the logs. The first write that finds no space gets it: a leader epoch, an
index, a checkpoint, a producer snapshot, the files of a new log. From then on appends are refused, so that records do
not take what the small files need, nor what the metadata log on the same file system needs. `look` takes the space back
once there is room for it twice over; records are taken again then.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.reserved_space import ReservedSpace

FILE_NAME: Final = "reserved.records"
Result = TypeVar("Result")
logger = logging.getLogger("broker.log_dirs")


class LogSpace:
    """One for the log directories of a file system. `on_change` hears of each change, in the thread that noticed it.

    With `reserved_bytes` of 0 nothing is reserved, and each append finds out for itself whether there is space.
    """

    def __init__(self, folder: Path, reserved_bytes: int = 0, fs: FileSystem = POSIX) -> None:
        self._folder = folder
        self._reserved_bytes = reserved_bytes
        self._fs = fs
        self._reserve: ReservedSpace | None = None
        self._lock = Lock()
        self.is_full = False
        self.on_change: Callable[[bool], None] = lambda _is_full: None

    @property
    def refuses(self) -> bool:
        """Whether records are refused without a try."""
        return self.is_full and self._reserved_bytes > 0

    def begin(self) -> None:
        """Reserve the space; once is enough. Raises StorageFailed."""
        if self._reserve is None and self._reserved_bytes:
            self._reserve = ReservedSpace(self._folder, self._reserved_bytes, self._fs, FILE_NAME)
            self._note_release()

    def with_space(self, write: Callable[[], Result]) -> Result:
        """Run `write`, which may be run twice: with the reserved space if it finds none. Raises what it raises."""
        if self._reserve is None:
            return write()
        result = self._reserve.with_space(write)
        self._note_release()
        return result

    def note_full(self) -> None:
        """A write found no space, and is not tried again: the small files get what is reserved."""
        if self._reserve is not None and self._reserve.is_held:
            self._reserve.release()
        self._set_full(True)

    def look(self) -> None:
        """Once a second or so: is there space again? Raises StorageFailed."""
        if self.is_full and (self._reserve is None or self._reserve.maybe_take_back()):
            self._set_full(False)

    def _note_release(self) -> None:
        if self._reserve is not None and not self._reserve.is_held:
            self._set_full(True)

    def _set_full(self, is_full: bool) -> None:
        with self._lock:
            if self.is_full == is_full:
                return
            self.is_full = is_full
        if is_full:
            logger.warning(
                "no space is left in %s: its partitions take no records until there is; leaders move to replicas that "
                "have space",
                self._folder,
            )
        else:
            logger.warning("there is space in %s again: its partitions take records", self._folder)
        self.on_change(is_full)
