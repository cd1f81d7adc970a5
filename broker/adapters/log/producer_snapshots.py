"""The files `N.snapshot` of a partition folder: the producers as they were just before offset N."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from kquorum.storage.durable_files import list_names, remove_file, sync_descriptor, write_all
from kquorum.storage.entry_file import sync_file
from kquorum.storage.errors import StorageFailed, storage_failure
from kquorum.storage.file_system import FileSystem
from kquorum.wire.errors import DecodeError

SUFFIX = ".snapshot"
logger = logging.getLogger("broker.log")


class ProducerSnapshots:
    """`offsets` ascend. A snapshot is durable only after `sync`, if not said otherwise.

    A torn one is harmless: its checksum does not match, and the next older one is used.
    """

    def __init__(self, folder: Path, fs: FileSystem) -> None:
        """Raises StorageFailed."""
        self.folder = folder
        self._fs = fs
        names = [name.removesuffix(SUFFIX) for name in list_names(folder, fs) if name.endswith(SUFFIX)]
        self.offsets = sorted(int(name) for name in names if name.isdecimal())

    def path(self, offset: int) -> Path:
        return self.folder / f"{offset:020}{SUFFIX}"

    @property
    def latest(self) -> int:
        """-1 where there is none."""
        return self.offsets[-1] if self.offsets else -1

    def write(self, offset: int, content: bytes, *, durably: bool = False) -> None:
        """Raises StorageFull or StorageFailed."""
        path = self.path(offset)
        try:
            descriptor = self._fs.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                write_all(descriptor, content, self._fs)
                if durably:
                    sync_descriptor(descriptor, path, self._fs)
            finally:
                self._fs.close(descriptor)
        except OSError as error:
            with suppress(OSError):
                self._fs.unlink(path)
            raise storage_failure("write", path, error) from error
        if offset not in self.offsets:
            self.offsets.append(offset)
            self.offsets.sort()

    def sync(self, offset: int) -> None:
        """For any thread. Raises StorageFailed or FsyncFailed."""
        sync_file(self.path(offset), self._fs)

    def load_newest(self, least: int, greatest: int, load: Callable[[bytes, int], None]) -> int | None:
        """Give the newest sound snapshot between the two offsets to `load`, and answer its offset; one that `load`
        refuses with DecodeError is removed. Raises StorageFailed."""
        for offset in reversed([each for each in self.offsets if least <= each <= greatest]):
            try:
                content = self._fs.read(self.path(offset))
            except OSError as error:
                raise StorageFailed("read", self.path(offset), error) from error
            try:
                load(content, offset)
            except DecodeError as error:
                logger.warning("%s is not used and removed: %s", self.path(offset), error)
                self.remove((offset,))
                continue
            return offset
        return None

    def remove(self, offsets: Iterable[int]) -> None:
        """Raises StorageFailed."""
        for offset in tuple(offsets):
            remove_file(self.path(offset), self._fs)
            self.offsets = [each for each in self.offsets if each != offset]

    def forget(self, offset: int) -> None:
        """The file has another name now, or is gone."""
        self.offsets = [each for each in self.offsets if each != offset]

    def remove_strays(self, bases: set[int], last_base: int) -> None:
        """Keep those of a segment's base, and the greatest if it lies behind the last base: that of a stop in order."""
        strays = [offset for offset in self.offsets if offset not in bases]
        if strays and strays[-1] == self.latest and strays[-1] > last_base:
            strays.pop()
        self.remove(strays)
