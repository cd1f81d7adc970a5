"""The two sparse indexes beside each segment, byte for byte as Kafka writes them.

Both can be rebuilt from the segment at any time, and are at every start; so they are never fsynced, and what stands in
them after a crash does not matter. While the segment grows they are a few entries behind: written one by one, these
would make each flush of the log wait for two further inodes.
"""

import logging
import os
import struct
from bisect import bisect_left, bisect_right
from pathlib import Path

from kquorum.storage.durable_files import write_all
from kquorum.storage.errors import is_no_space
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.spare_descriptors import is_out_of_descriptors

INDEX_INTERVAL_BYTES = 4096
WRITE_BYTES = 1024
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
logger = logging.getLogger(__name__)


class SegmentIndexes:
    """Index entries of one segment, in memory and, once `create_files` was called, in its two files: there at the
    latest when `close_files` was.

    Invariant: `last_offsets` and `positions` ascend together; `positions[i]` is where the batch ending at
    `last_offsets[i]` starts.
    """

    def __init__(self, base_offset: int, fs: FileSystem = POSIX) -> None:
        self._fs = fs
        self.base_offset = base_offset
        self.last_offsets: list[int] = []
        self.positions: list[int] = []
        self.times: list[tuple[int, int]] = []
        self._max_timestamp = (-1, base_offset)
        self._bytes_since_entry = 0
        self._descriptors: tuple[int, int] | None = None
        self._unwritten = (bytearray(), bytearray())

    def observe(self, position: int, size: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Take note of a batch of `size` bytes written at `position`; adds entries when Kafka would.

        An entry is due when more than 4096 bytes were written since the last indexed batch began. Each batch
        counts as an append of its own, so the files written while appending equal those rebuilt on recovery.
        """
        if max_timestamp_ms > self._max_timestamp[0]:
            self._max_timestamp = (max_timestamp_ms, last_offset)
        if self._bytes_since_entry > INDEX_INTERVAL_BYTES:
            self._add_offset_entry(last_offset, position)
            self.add_time_entry()
            self._bytes_since_entry = 0
        self._bytes_since_entry += size

    def _add_offset_entry(self, last_offset: int, position: int) -> None:
        self.last_offsets.append(last_offset)
        self.positions.append(position)
        self._add(0, _OFFSET_ENTRY.pack(last_offset - self.base_offset, position))

    def add_time_entry(self) -> None:
        """Enter the largest timestamp so far, unless it stands there already; also due on roll, close and recovery."""
        timestamp_ms, offset = self._max_timestamp
        if timestamp_ms <= (self.times[-1][0] if self.times else -1):
            return
        self.times.append((timestamp_ms, offset))
        self._add(1, _TIME_ENTRY.pack(timestamp_ms, offset - self.base_offset))

    def _add(self, which: int, entry: bytes) -> None:
        if self._descriptors is None:
            return
        self._unwritten[which].extend(entry)
        if len(self._unwritten[which]) >= WRITE_BYTES:
            self._write_out(which)

    def _write_out(self, which: int) -> None:
        """A full disk costs the files their further entries, which the next start writes; the log goes on."""
        entries = bytes(self._unwritten[which])
        self._unwritten[which].clear()
        if self._descriptors is None or not entries:
            return
        try:
            write_all(self._descriptors[which], entries, self._fs)
        except OSError as error:
            if not is_no_space(error):
                raise
            logger.warning("no space for the index of the segment at offset %d", self.base_offset)
            self._cut_half_entry(which)
            self.drop_files()

    def _cut_half_entry(self, which: int) -> None:
        """A write that found space for a part of it may have ended within an entry, which readers take for damage."""
        assert self._descriptors is not None
        descriptor, entry = self._descriptors[which], (_OFFSET_ENTRY, _TIME_ENTRY)[which]
        size = self._fs.size(descriptor)
        self._fs.truncate(descriptor, size - size % entry.size)

    def position_at_or_before(self, offset: int) -> int:
        """Start of an indexed batch at or before the one holding `offset`; 0 when there is none."""
        index = bisect_right(self.last_offsets, offset) - 1
        return self.positions[index] if index >= 0 else 0

    def position_below(self, end_offset: int) -> int:
        """Start of the last indexed batch which ends below `end_offset` (exclusive); 0 when there is none."""
        index = bisect_left(self.last_offsets, end_offset) - 1
        return self.positions[index] if index >= 0 else 0

    def boundary_at_or_before(self, position: int) -> int:
        """The last indexed batch start at or before a file position."""
        index = bisect_right(self.positions, position) - 1
        return self.positions[index] if index >= 0 else 0

    def truncate(self, end_offset: int) -> int:
        """Drop what lies at or above `end_offset`; answers the position from which to `observe` again."""
        keep = bisect_left(self.last_offsets, end_offset)
        del self.last_offsets[keep:]
        del self.positions[keep:]
        while self.times and self.times[-1][1] >= end_offset:
            self.times.pop()
        self._max_timestamp = self.times[-1] if self.times else (-1, self.base_offset)
        self._bytes_since_entry = 0
        position = self.positions.pop() if self.positions else 0
        if self.last_offsets:
            self.last_offsets.pop()
            self._bytes_since_entry = INDEX_INTERVAL_BYTES + 1
        return position

    def encoded(self) -> tuple[bytes, bytes]:
        """The content of `.index` and of `.timeindex`."""
        base = self.base_offset
        entries = zip(self.last_offsets, self.positions, strict=True)
        offset_index = b"".join(_OFFSET_ENTRY.pack(last - base, position) for last, position in entries)
        time_index = b"".join(_TIME_ENTRY.pack(timestamp, offset - base) for timestamp, offset in self.times)
        return offset_index, time_index

    def create_files(self, segment_path: Path) -> None:
        """Write both files from the beginning and keep them open for further entries."""
        self.drop_files()
        content = self.encoded()
        paths = (segment_path.with_suffix(".index"), segment_path.with_suffix(".timeindex"))
        opened: list[int] = []
        try:
            opened.extend(self._fs.open_for_long(path, _FLAGS) for path in paths)
        except OSError as error:
            for descriptor in opened:
                self._fs.close(descriptor)
            if not is_no_space(error) and not is_out_of_descriptors(error):
                raise
            logger.warning(
                "there are no index files of %s before the next start: %s", segment_path, error.strerror
            )
            return
        self._descriptors = (opened[0], opened[1])
        for which, data in enumerate(content):
            self._unwritten[which].extend(data)
            self._write_out(which)

    def close_files(self) -> None:
        """Write what is missing in the files, and close them; after an OSError they are still open."""
        self._write_out(0)
        self._write_out(1)
        self.drop_files()

    def drop_files(self) -> None:
        """Close the files as they are."""
        for unwritten in self._unwritten:
            unwritten.clear()
        if self._descriptors is not None:
            for descriptor in self._descriptors:
                self._fs.close(descriptor)
            self._descriptors = None
