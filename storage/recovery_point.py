"""How far the log is known to be durable: what recovery may call the torn end of an interrupted write, and what not.

Kafka keeps a `recovery-point-offset-checkpoint` one level above, for the logs that it knows, and rewrites it without
the entries of others; so this is a file of ours beside the segments. Kafka passes over it. It is written after a flush,
in place and without a flush of its own: it never says more than is true, whenever it reaches the disk, and a process
that is killed leaves it a few milliseconds behind at most. Now and then it is flushed too, so that a power cut cannot
set it back far.
"""

import logging
import math
import os
import time
from pathlib import Path

from crc32c import crc32c

from kquorum.storage.durable_files import read_if_there, replace_file
from kquorum.storage.errors import FsyncFailed, StorageFailed, StorageFull, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem

FILE_NAME = "recovery-point"
# Two copies in sectors of their own, written by turns: a torn write spoils one at most.
_SLOTS = (0, 512)
WRITE_INTERVAL_S = 0.02
_SYNC_INTERVAL_S = 10.0
logger = logging.getLogger(__name__)


class RecoveryPoint:
    """`offset` is the end of what is known to be durable; None while nothing is known (a folder that Kafka wrote)."""

    def __init__(self, folder: Path, fs: FileSystem = POSIX) -> None:
        self._fs = fs
        self._path = folder / FILE_NAME
        self._descriptor: int | None = None
        self._sequence, self.offset = _read(self._path, fs)
        self._written_at_s = -math.inf
        self._is_synced = True
        # What was read may be in the kernel alone, and a greater offset on the disk: the process that wrote it may have
        # ended before it flushed.
        self._is_settled = self.offset is None
        self._synced_at_s = time.monotonic()

    def advance(self, offset: int, *, durably: bool = False) -> None:
        """All below `offset` has become durable; never goes back. Raises StorageFailed or FsyncFailed.

        Without space for it the file is left as it is: it then says less than it could.
        """
        now_s = time.monotonic()
        is_due = durably or now_s - self._written_at_s >= WRITE_INTERVAL_S
        if is_due and (self.offset is None or offset > self.offset):
            self._written_at_s = now_s
            try:
                self._write(offset, (self._sequence + 1,))
            except StorageFull as error:
                logger.warning("%s", error)
        if durably or now_s - self._synced_at_s > _SYNC_INTERVAL_S:
            self.sync()

    def set_back(self, offset: int) -> None:
        """What is above `offset` is about to be cut, as it must be; durable on return, in both copies, also where the
        file said so already.

        Raises StorageFull, StorageFailed or FsyncFailed.
        """
        is_below = offset == 0 if self.offset is None else offset < self.offset
        if is_below:
            self.put(offset)
        elif not self._is_settled and self.offset is not None:
            self.put(self.offset)

    def put(self, offset: int) -> None:
        """Say so whatever was said before; durable on return, in both copies. Raises as `set_back`."""
        self._write(offset, (self._sequence + 1, self._sequence + 2))
        self.sync()
        self._is_settled = True

    def _write(self, offset: int, sequences: tuple[int, ...]) -> None:
        if self._descriptor is None:
            self._open(offset)
        assert self._descriptor is not None
        try:
            for sequence in sequences:
                self._fs.pwrite(self._descriptor, _encode(sequence, offset), _SLOTS[sequence % 2])
        except OSError as error:
            raise storage_failure("write", self._path, error) from error
        self._sequence, self.offset, self._is_synced = self._sequence + len(sequences), offset, False

    def _open(self, offset: int) -> None:
        """Make the file first if there is no sound one, so that the writes in place never need space."""
        if self.offset is None:
            first, second = _encode(0, offset), _encode(1, offset)
            replace_file(self._path, first[:-1].ljust(_SLOTS[1] - 1) + b"\n" + second, self._fs)
            self._sequence = 1
        try:
            self._descriptor = self._fs.open_for_long(self._path, os.O_WRONLY)
        except OSError as error:
            raise StorageFailed("open", self._path, error) from error

    def sync(self) -> None:
        """Make what was said last durable; raises FsyncFailed."""
        if self._is_synced or self._descriptor is None:
            return
        try:
            self._fs.fdatasync(self._descriptor)
        except OSError as error:
            raise FsyncFailed(self._path, error) from error
        self._is_synced, self._synced_at_s = True, time.monotonic()

    def close(self) -> None:
        if self._descriptor is not None:
            self._fs.close(self._descriptor)
            self._descriptor = None


def read_recovery_point(folder: Path, fs: FileSystem = POSIX) -> int | None:
    """What the file in a log folder says; None when there is none, or neither copy is sound."""
    return _read(folder / FILE_NAME, fs)[1]


def _encode(sequence: int, offset: int) -> bytes:
    text = f"{sequence:020d} {offset:020d}".encode()
    return text + f" {crc32c(text):08x}\n".encode()


def _read(path: Path, fs: FileSystem) -> tuple[int, int | None]:
    """The newest sound copy: (sequence, offset)."""
    content = read_if_there(path, fs)
    if content is None:
        return 0, None
    found = [copy for copy in (_decode(content[slot : slot + 51]) for slot in _SLOTS) if copy is not None]
    if not found:
        logger.warning("%s is damaged, so it is not known how far the log was durable", path)
        return 0, None
    return max(found)


def _decode(copy: bytes) -> tuple[int, int] | None:
    text, _, checksum = copy.rstrip().rpartition(b" ")
    if checksum != f"{crc32c(text):08x}".encode() or not text.replace(b" ", b"").isdigit():
        return None
    sequence, offset = text.split()
    return int(sequence), int(offset)
