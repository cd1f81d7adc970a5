"""One segment of a partition's log: batches laid end to end in `.log`, and its three indexes.

It differs from the metadata log's segment (`segment.py`) where the rules differ: it has its final name at once, as
Kafka's has (a log is cut at its first bad batch, so a name need not say what is durable); offsets may jump, as
compaction removes records; the indexes are files that are trusted after a stop in order; and a read hands out the
file's bytes without checking them again, for the consumer checks them.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kquorum.storage.durable_files import remove_file, write_all
from kquorum.storage.entry_file import (
    RELATIVE_OFFSET_MAX,
    AbortedIndex,
    OffsetIndex,
    TimeIndex,
    sync_file,
)
from kquorum.storage.errors import StorageFailed, is_no_space, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.mapped_file import map_file
from kquorum.storage.open_segments import OpenSegments
from kquorum.storage.segment import segment_path
from kquorum.wire.data_batch import check_data_batch, read_data_header
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader

DELETED_SUFFIX = ".deleted"
SEGMENT_BYTES_MAX = 2**31 - 1
_CHUNK_BYTES = 4096
_REMEMBERED = 32


class BadBatch(Exception):
    """No sound batch begins at `position`; `reason` says why."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


class PartitionSegment:
    """`size` is its length in bytes; `next_offset` the offset behind its last batch, known once `find_end` or an append
    told it. Files are opened at their first use, and
    may be closed between two uses.

    Appending, reading and truncating belong to one thread; `sync` may run in another meanwhile.
    """

    def __init__(
        self,
        folder: Path,
        base_offset: int,
        fs: FileSystem = POSIX,
        *,
        index_interval_bytes: int = 4096,
        suffix: str = "",
        open_segments: OpenSegments | None = None,
    ) -> None:
        """`suffix` comes behind the names of files that are not of the log yet. `open_segments` bounds how many
        segments have their file open at a time; None: it does not count this one."""
        self._fs = fs
        self._open_segments = OpenSegments() if open_segments is None else open_segments
        self.base_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        plain = segment_path(folder, base_offset)
        self.path = plain.with_suffix(f".log{suffix}")
        self.offsets = OffsetIndex(plain.with_suffix(f".index{suffix}"), base_offset, fs)
        self.times = TimeIndex(plain.with_suffix(f".timeindex{suffix}"), base_offset, fs)
        self.aborted = AbortedIndex(plain.with_suffix(f".txnindex{suffix}"), fs)
        self.size = 0
        self.next_offset = base_offset
        # Of a file that was taken up, until its end was looked for.
        self._is_end_known = True
        self.opened_ms = 0
        """When this process opened the segment: its age, where no batch has a timestamp."""
        self._descriptor: int | None = None
        self._bytes_since_entry = 0
        # (timestamp, last offset of the first batch that has it); None while it was not looked up.
        self._greatest: tuple[int, int] | None = None
        self._first_timestamp_ms: int | None = None
        # Where the next reads are likely to begin: the position behind a batch by the offset behind it.
        self._positions: dict[int, int] = {}

    # Opening

    def create(self, now_ms: int) -> None:
        """Make the files, empty; what an earlier life left under these names is gone. Raises StorageFull or
        StorageFailed."""
        self.close_files()
        self.aborted.remove()
        try:
            self._descriptor = self._opened(os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        except OSError as error:
            raise storage_failure("create", self.path, error) from error
        try:
            self.offsets.create()
            self.times.create()
        except StorageFailed:
            self.close_files()
            raise
        self.size = 0
        self.next_offset = self.base_offset
        self.opened_ms = now_ms
        self._reset_memory()
        self._greatest = (-1, self.base_offset)

    def load(self, now_ms: int) -> None:
        """Take up a file that is there: its length alone. Raises StorageFailed."""
        try:
            status = self._fs.status(self.path)
        except OSError as error:
            raise StorageFailed("look at", self.path, error) from error
        self.size, self.opened_ms = status.size, now_ms
        self._is_end_known = status.size == 0

    def _reset_memory(self) -> None:
        self._bytes_since_entry = 0
        self._greatest = None
        self._first_timestamp_ms = None
        self._positions.clear()

    @property
    def descriptor(self) -> int:
        if self._descriptor is None:
            try:
                self._descriptor = self._opened(os.O_RDWR | os.O_APPEND)
            except OSError as error:
                raise StorageFailed("open", self.path, error) from error
        else:
            self._open_segments.used(self)
        return self._descriptor

    def _opened(self, flags: int) -> int:
        """Raises OSError."""
        return self._open_segments.open(
            self,
            lambda: self._fs.open_for_long(self.path, flags),
            lambda: self._fs.open(self.path, flags),
        )

    def count_among(self, open_segments: OpenSegments) -> None:
        """It was made by itself, and belongs to a log from now on."""
        self.close_files()
        self._open_segments = open_segments

    @property
    def is_empty(self) -> bool:
        return self.size == 0

    def has_index_files(self) -> bool:
        return self._fs.exists(self.offsets.path)

    # Appending

    def append(self, data: bytes | bytearray | memoryview, headers: Sequence[BatchHeader]) -> None:
        """Hand whole batches to the kernel in one write. Raises StorageFull with nothing written, or StorageFailed."""
        try:
            write_all(self.descriptor, data, self._fs)
        except OSError as error:
            if is_no_space(error):
                self._cut_file(self.size)
            raise storage_failure("write", self.path, error) from error
        for header in headers:
            self.observe(header)

    def observe(self, header: BatchHeader) -> None:
        """Count a batch that stands at the end, and index it when an entry is due: each batch by itself (KAFKA-806)."""
        last_offset = header.base_offset + header.last_offset_delta
        if header.max_timestamp_ms > self.greatest_timestamp[0]:
            self._greatest = (header.max_timestamp_ms, last_offset)
        if self.size == 0:
            self._first_timestamp_ms = header.max_timestamp_ms
        if self._bytes_since_entry > self.index_interval_bytes:
            self.offsets.add_entry(last_offset, self.size)
            self.times.add_entry(*self.greatest_timestamp)
            self._bytes_since_entry = 0
        size = header.batch_length + LOG_OVERHEAD_BYTES
        self._bytes_since_entry += size
        self.size += size
        self.next_offset = last_offset + 1
        self._is_end_known = True
        self._remember(self.next_offset, self.size)

    def _remember(self, offset: int, position: int) -> None:
        positions = self._positions
        if offset not in positions and len(positions) >= _REMEMBERED:
            del positions[next(iter(positions))]
        positions[offset] = position

    def holds_offset(self, offset: int) -> bool:
        """Whether an offset can be in this segment's indexes, which keep 31 bits."""
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def is_index_full(self, index_bytes: int) -> bool:
        return (
            len(self.offsets) >= index_bytes // self.offsets.entry_bytes
            or len(self.times) >= index_bytes // self.times.entry_bytes - 1
        )

    # Looking up

    def headers(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from a batch's start on. Raises BadBatch or StorageFailed."""
        end = self.size if end is None else end
        chunk, start = b"", position
        while position < end:
            if position + HEADER_BYTES > start + len(chunk):
                chunk, start = self._pread(position, _CHUNK_BYTES), position
            try:
                header = read_data_header(chunk, position - start)
            except DecodeError as error:
                raise BadBatch(position, error.reason) from None
            yield position, header
            position += header.batch_length + LOG_OVERHEAD_BYTES

    def position_of(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at or behind the offset: the one that holds it, or the next where there is a gap.
        None where the segment ends before. Raises BadBatch or StorageFailed."""
        start = self._positions.get(offset)
        if start is None:
            start = self.offsets.position_at_or_before(offset)
        for position, header in self.headers(start):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header
        return None

    def end_of(self, offset: int) -> int:
        """The position behind the last batch that ends below the offset: all before it may be read by a reader whose
        bound it is."""
        if self._is_end_known and offset >= self.next_offset:
            return self.size
        position = self._positions.get(offset)
        if position is None:
            found = self.position_of(offset)
            position = self.size if found is None else found[0]
            self._remember(offset, position)
        return position

    def read(self, start: int, first: BatchHeader, end: int, max_bytes: int, *, at_least_one: bool) -> bytes:
        """Whole batches from the one at `start` up to the position `end`, at most `max_bytes` of them, but the first
        whatever its size if `at_least_one`."""
        limit = start + max_bytes
        if limit < end:
            first_end = start + first.size_in_bytes
            if limit < first_end:
                end = first_end if at_least_one else start
            else:
                end = self._boundary(max(first_end, self.offsets.boundary_at_or_before(limit)), limit)
        return self.read_at(start, end - start)

    def read_at(self, position: int, size: int) -> bytes:
        """Raises BadBatch where the file ends before, StorageFailed."""
        data = self._pread(position, size) if size else b""
        if len(data) < size:
            raise BadBatch(position + len(data), f"the file ends here, but {size} bytes were due")
        return data

    def _boundary(self, position: int, limit: int) -> int:
        for start, header in self.headers(position):
            position = start + header.batch_length + LOG_OVERHEAD_BYTES
            if position > limit:
                return start
            self._remember(header.next_offset, position)
        return position

    def _pread(self, position: int, size: int) -> bytes:
        """Raises StorageFailed."""
        data = b""
        try:
            data = self._fs.pread(self.descriptor, size, position)
            while len(data) < size and (
                more := self._fs.pread(self.descriptor, size - len(data), position + len(data))
            ):
                data += more
        except OSError as error:
            raise StorageFailed("read", self.path, error) from error
        return data

    @property
    def greatest_timestamp(self) -> tuple[int, int]:
        """(timestamp, last offset of the first batch that has it): (-1, base offset) where there is none."""
        if self._greatest is None:
            self._greatest = self.times.last() or (-1, self.base_offset)
        return self._greatest

    @property
    def retention_timestamp_ms(self) -> int:
        """By which the segment's age counts: the file's own time where its batches have none. Raises StorageFailed."""
        timestamp_ms = self.greatest_timestamp[0]
        return timestamp_ms if timestamp_ms >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        """When the file was last written. Raises StorageFailed."""
        try:
            return self._fs.status(self.path).modified_ms
        except OSError as error:
            raise StorageFailed("look at", self.path, error) from error

    def set_modified(self, modified_ms: int) -> None:
        """For a copy: retention goes by the file's time where records have none. Raises StorageFailed."""
        try:
            self._fs.set_modified(self.path, modified_ms)
        except OSError as error:
            raise StorageFailed("set the time of", self.path, error) from error

    @property
    def index_bytes(self) -> tuple[int, int]:
        """Of the offset index and of the time index. Raises StorageFailed."""
        return self.offsets.size_bytes, self.times.size_bytes

    @property
    def first_timestamp_ms(self) -> int:
        """The greatest timestamp of the first batch, -1 where there is none."""
        if self._first_timestamp_ms is None:
            first = next(self.headers(0), None)
            if first is None:
                return -1
            self._first_timestamp_ms = first[1].max_timestamp_ms
        return self._first_timestamp_ms

    def find_end(self) -> None:
        """Find `next_offset` and the greatest timestamp by the last index entries and the headers behind them. Raises
        BadBatch where a batch is not whole."""
        self.next_offset = self.base_offset
        self._positions.clear()
        self._greatest = self.times.last() or (-1, self.base_offset)
        position = self.offsets.at(-1)[1] if len(self.offsets) else 0
        for start, header in self.headers(position):
            if start + header.size_in_bytes > self.size:
                raise BadBatch(start, "the file ends within the batch")
            self.next_offset = header.next_offset
            if header.max_timestamp_ms > self._greatest[0]:
                self._greatest = (header.max_timestamp_ms, header.last_offset)
        self._is_end_known = True

    # Recovering

    def scan(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Each sound batch of the file from its beginning: position, header, bytes. Raises BadBatch where one is not,
        or StorageFailed."""
        view = memoryview(map_file(self.path, self._fs))
        position, due = 0, self.base_offset
        while position < len(view):
            try:
                header = check_data_batch(view, position)
            except DecodeError as error:
                raise BadBatch(position, error.reason) from None
            if header.base_offset < due or header.last_offset_delta < 0:
                offsets = f"offsets {header.base_offset} to {header.last_offset}"
                raise BadBatch(position, f"the batch has {offsets}, but {due} was due")
            if not self.holds_offset(header.last_offset):
                raise BadBatch(position, f"offset {header.last_offset} is too far from the segment's base")
            end = position + header.size_in_bytes
            yield position, header, view[position:end]
            position, due = end, header.next_offset

    def begin_recovery(self) -> None:
        """Empty the indexes, to be filled by `observe` from the first batch on."""
        self.size = 0
        self.next_offset = self.base_offset
        self._is_end_known = True
        self._reset_memory()
        self._greatest = (-1, self.base_offset)
        self.offsets.create()
        self.times.create()
        self.aborted.remove()

    def end_recovery(self) -> None:
        """Cut what was not observed; write the closing entry of the time index."""
        self._cut_file(self.size)
        self.write_indexes(closing=True)

    # Truncating

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Cut before the batch that holds the offset, or before the next one. Raises StorageFailed."""
        found = self.position_of(offset)
        if found is None:
            return
        self._cut_file(found[0])
        self.size = found[0]
        self.offsets.keep_below(offset)
        self.times.keep_below(offset)
        self.aborted.keep_below(offset)
        self._reset_memory()
        if self.size == 0:
            self.opened_ms = now_ms
            self._greatest = (-1, self.base_offset)
        self.find_end()

    def _cut_file(self, size: int) -> None:
        """Durably: after a power cut, parts of what is cut could else stand among what comes in its place."""
        try:
            if self._fs.size(self.descriptor) > size:
                self._fs.truncate(self.descriptor, size)
                self._fs.fdatasync(self.descriptor)
        except OSError as error:
            raise StorageFailed("truncate", self.path, error) from error

    # Flushing and closing

    def write_indexes(self, *, closing: bool = False) -> None:
        """Bring the index files up to date; `closing`: no more appends, so the greatest timestamp is entered."""
        if closing and self.size:
            self.times.add_entry(*self.greatest_timestamp)
        self.offsets.write_out()
        self.times.write_out()
        self.aborted.write_out()

    def sync(self) -> None:
        """Make all written content durable; for any thread. Raises StorageFailed or FsyncFailed."""
        for path in (self.path, self.offsets.path, self.times.path, self.aborted.path):
            sync_file(path, self._fs)

    def close_files(self) -> None:
        """Let go of the descriptor and the memory of the indexes, without writing anything."""
        if self._descriptor is not None:
            self._fs.close(self._descriptor)
            self._descriptor = None
            self._open_segments.closed(self)

    def close(self) -> None:
        """Raises StorageFull or StorageFailed; the descriptor is closed in any case."""
        try:
            self.write_indexes(closing=True)
        finally:
            self.close_files()

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path, self.offsets.path, self.times.path, self.aborted.path)

    def move_to(self, folder: Path) -> None:
        """The folder has another name now; descriptors stay good."""
        self.path = folder / self.path.name
        for index in (self.offsets, self.times, self.aborted):
            index.move_to(folder)

    def rename_files(self, suffix: str, new_suffix: str) -> None:
        """Have the names end in another suffix; not durable before the folder is synced. Raises StorageFailed."""
        self.path = self._renamed(self.path, suffix, new_suffix)
        for index in (self.offsets, self.times, self.aborted):
            if self._fs.exists(index.path):
                index.path = self._renamed(index.path, suffix, new_suffix)
            else:
                index.path = _with_suffix(index.path, suffix, new_suffix)

    def _renamed(self, path: Path, suffix: str, new_suffix: str) -> Path:
        target = _with_suffix(path, suffix, new_suffix)
        try:
            self._fs.rename(path, target)
        except OSError as error:
            raise storage_failure("rename", path, error) from error
        return target

    def remove(self) -> None:
        """Remove the files at once. Raises StorageFailed."""
        self.close_files()
        for path in self.paths:
            remove_file(path, self._fs)


def _with_suffix(path: Path, suffix: str, new_suffix: str) -> Path:
    return path.with_name(path.name.removesuffix(suffix) + new_suffix)
