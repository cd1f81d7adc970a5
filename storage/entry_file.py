"""An index file of a partition's segment: entries of one size, in memory where they are used, in the file once written.

A partition's indexes are not rebuilt at each start as those of the metadata log are: after a stop in order they are
trusted, and most of them belong to segments which are seldom read. So they are loaded at their first use, keep no
descriptor, and never hold more than the file's own bytes. As with Kafka, closed files hold whole entries and no
padding; a file that Kafka left with its preallocated zeros is read without them (KAFKA-10207).
"""

import os
import struct
from bisect import bisect_left, bisect_right
from contextlib import suppress
from pathlib import Path

from kquorum.storage.durable_files import read_if_there, remove_file, sync_descriptor, write_all
from kquorum.storage.errors import StorageFailed, StorageFull, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem

WRITE_BYTES = 4096
OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
ABORTED_ENTRY = struct.Struct(">hqqqq")
RELATIVE_OFFSET_MAX = 2**31 - 1


class EntryFile:
    """Fixed-size entries of one file. Memory is ahead of the file until `write_out`."""

    def __init__(
        self, path: Path, entry: struct.Struct, fs: FileSystem = POSIX, *, write_bytes: int = WRITE_BYTES
    ) -> None:
        self.path = path
        self._write_bytes = write_bytes
        self._entry = entry
        self._fs = fs
        self._data: bytearray | None = None
        self._written = 0
        # Kafka's padding, or half an entry, lies behind the entries in the file.
        self._has_tail = False

    def __len__(self) -> int:
        return len(self._loaded()) // self._entry.size

    @property
    def size_bytes(self) -> int:
        """Of the entries in memory, or else of the file. Raises StorageFailed."""
        if self._data is not None:
            return len(self._data)
        try:
            return self._fs.status(self.path).size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StorageFailed("look at", self.path, error) from error

    @property
    def entry_bytes(self) -> int:
        return self._entry.size

    def _loaded(self) -> bytearray:
        if self._data is None:
            content = read_if_there(self.path, self._fs) or b""
            self._data = bytearray(self._whole_entries(content))
            self._written = len(self._data)
            self._has_tail = len(content) > self._written
        return self._data

    def _whole_entries(self, content: bytes) -> bytes:
        size = self._entry.size
        filled = len(content.rstrip(b"\0"))
        return content[: min(len(content) // size, -(-filled // size)) * size]

    def create(self) -> None:
        """Make the file empty, whatever is there. Raises StorageFull or StorageFailed."""
        self._data = bytearray()
        self._written = 0
        self._has_tail = False
        try:
            self._fs.close(self._fs.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        except OSError as error:
            raise storage_failure("create", self.path, error) from error

    def at(self, index: int) -> tuple[int, ...]:
        data = self._loaded()
        if index < 0:
            index += len(data) // self._entry.size
        return self._entry.unpack_from(data, index * self._entry.size)

    def add(self, *values: int) -> None:
        """Raises StorageFailed. A full disk costs nothing but time: memory has the entries until there is space."""
        data = self._loaded()
        data += self._entry.pack(*values)
        if len(data) - self._written >= self._write_bytes:
            with suppress(StorageFull):
                self.write_out()

    def write_out(self) -> None:
        """Bring the file up to the memory. Raises StorageFull or StorageFailed."""
        if self._data is None or (self._written == len(self._data) and not self._has_tail):
            return
        try:
            descriptor = self._fs.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                if self._has_tail:
                    self._fs.truncate(descriptor, self._written)
                # Until all is written, a part of it may be.
                self._has_tail = True
                write_all(descriptor, bytes(memoryview(self._data)[self._written :]), self._fs)
                self._has_tail = False
            finally:
                self._fs.close(descriptor)
        except OSError as error:
            raise storage_failure("write", self.path, error) from error
        self._written = len(self._data)

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`, in memory and in the file. Raises StorageFailed."""
        data = self._loaded()
        size = count * self._entry.size
        if len(data) > size:
            del data[size:]
        if self._written > size:
            self._written = size
            self._has_tail = True
            self.write_out()

    def forget(self) -> None:
        """Let go of the memory; what was not written out is lost."""
        self._data = None

    def move_to(self, folder: Path) -> None:
        """The folder has another name now."""
        self.path = folder / self.path.name

    def remove(self) -> None:
        """Raises StorageFailed."""
        self._data = bytearray()
        self._written = 0
        self._has_tail = False
        remove_file(self.path, self._fs)


def sync_file(path: Path, fs: FileSystem) -> None:
    """Make a file's content durable through a descriptor of its own, so that a thread may do it. A file that was
    renamed or removed meanwhile needs it no more. Raises StorageFailed or FsyncFailed."""
    try:
        descriptor = fs.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageFailed("open", path, error) from error
    try:
        sync_descriptor(descriptor, path, fs)
    finally:
        fs.close(descriptor)


class OffsetIndex(EntryFile):
    """`.index`: (last offset of a batch, where the batch begins), both ascending, offsets relative to the base."""

    def __init__(self, path: Path, base_offset: int, fs: FileSystem = POSIX) -> None:
        super().__init__(path, OFFSET_ENTRY, fs)
        self._base = base_offset

    def add_entry(self, last_offset: int, position: int) -> None:
        self.add(last_offset - self._base, position)

    def position_at_or_before(self, offset: int) -> int:
        """Where an indexed batch begins that ends at or below the offset; 0 if there is none."""
        found = bisect_right(range(len(self)), offset - self._base, key=lambda index: self.at(index)[0])
        return self.at(found - 1)[1] if found else 0

    def boundary_at_or_before(self, position: int) -> int:
        """The greatest indexed start of a batch that is not behind the position."""
        found = bisect_right(range(len(self)), position, key=lambda index: self.at(index)[1])
        return self.at(found - 1)[1] if found else 0

    def offset_beyond(self, position: int) -> int | None:
        """The last offset of the first indexed batch that begins at or behind the position: no batch before the
        position has a greater one. None where no entry lies so far."""
        found = bisect_left(range(len(self)), position, key=lambda index: self.at(index)[1])
        return self.at(found)[0] + self._base if found < len(self) else None

    def keep_below(self, offset: int) -> None:
        self.keep(bisect_left(range(len(self)), offset - self._base, key=lambda index: self.at(index)[0]))

    def is_plausible(self, log_bytes: int) -> bool:
        """Whether the last entry can be one of a log file of this length."""
        if not len(self):
            return True
        (first, start), (last, end) = self.at(0), self.at(-1)
        return 0 <= first <= last and 0 <= start <= end < log_bytes


class TimeIndex(EntryFile):
    """`.timeindex`: (greatest timestamp so far, last offset of the first batch that had it), both ascending."""

    def __init__(self, path: Path, base_offset: int, fs: FileSystem = POSIX) -> None:
        super().__init__(path, TIME_ENTRY, fs)
        self._base = base_offset

    def last(self) -> tuple[int, int] | None:
        if not len(self):
            return None
        timestamp_ms, relative = self.at(-1)
        return timestamp_ms, relative + self._base

    def add_entry(self, timestamp_ms: int, offset: int) -> None:
        """An entry that says no more than the last is left out."""
        last = self.last()
        if timestamp_ms > (-1 if last is None else last[0]):
            self.add(timestamp_ms, offset - self._base)

    def offset_below(self, timestamp_ms: int) -> int:
        """An offset before which every timestamp is below the one given."""
        found = bisect_left(range(len(self)), timestamp_ms, key=lambda index: self.at(index)[0])
        return self.at(found - 1)[1] + self._base if found else self._base

    def keep_below(self, offset: int) -> None:
        self.keep(bisect_left(range(len(self)), offset - self._base, key=lambda index: self.at(index)[1]))

    def is_plausible(self) -> bool:
        if not len(self):
            return True
        (first_ms, first), (last_ms, last) = self.at(0), self.at(-1)
        return 0 <= first <= last and first_ms <= last_ms


class AbortedIndex(EntryFile):
    """`.txnindex`: the aborted transactions whose marker lies in the segment, ascending by the marker's offset. The
    file is there only once it has an entry."""

    def __init__(self, path: Path, fs: FileSystem = POSIX) -> None:
        # Nothing rebuilds it but a recovery, so it is not left behind the log.
        super().__init__(path, ABORTED_ENTRY, fs, write_bytes=1)

    def add_entry(
        self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
    ) -> None:
        self.add(0, producer_id, first_offset, last_offset, last_stable_offset)

    @property
    def content(self) -> bytearray:
        """All entries as they are in the file; not to be changed, nor kept: an entry that is added would have no room
        while it is exported."""
        return self._loaded()

    def keep_below(self, offset: int) -> None:
        if len(self):
            self.keep(bisect_left(range(len(self)), offset, key=lambda index: self.at(index)[3]))

    def is_plausible(self, base_offset: int) -> bool:
        entries = [self.at(index) for index in range(len(self))]
        return all(version == 0 and marker >= base_offset for version, _, _, marker, _ in entries)

    def _whole_entries(self, content: bytes) -> bytes:
        # It is never preallocated, and a last entry may well end in zeros.
        return content[: len(content) // self._entry.size * self._entry.size]
