"""One segment file of the log: whole batches laid end to end, found again through a sparse index."""

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquorum.storage.durable_files import remove_file, write_all
from kquorum.storage.errors import (
    DamagedRange,
    FsyncFailed,
    LogCorrupted,
    StorageFailed,
    is_no_space,
    storage_failure,
)
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.indexes import SegmentIndexes
from kquorum.storage.log_rules import CONTIGUOUS, OFFSET_SPAN_MAX, LogRules
from kquorum.storage.read_check import read_fault
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.record_batch import BatchHeader, read_batch_header

HEADER_BYTES = 61
_MAX_TIMESTAMP_AT = 35
_read_int64 = struct.Struct(">q").unpack_from
_POSITION_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLimits:
    """When a new segment is begun."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * 24 * 3600 * 1000


UNPUBLISHED_SUFFIX = ".rolling"


def max_timestamp_ms(batch: LogBatch) -> int:
    """All of the header that a `LogBatch`, which is checked, does not say itself."""
    timestamp_ms: int = _read_int64(batch.data, _MAX_TIMESTAMP_AT)[0]
    return timestamp_ms


def segment_path(folder: Path, base_offset: int) -> Path:
    return folder / f"{base_offset:020}.log"


def unpublished_path(folder: Path, base_offset: int) -> Path:
    """Where a new segment grows until all before it is durable.

    Had it its own name at once, a crash could leave it whole behind a torn predecessor, and recovery could not
    tell that from damage in the middle of the log.
    """
    return folder / f"{base_offset:020}.log{UNPUBLISHED_SUFFIX}"


def base_offset_of(path: Path) -> int:
    """By the name of a segment's file, published or not."""
    return int(path.name.partition(".")[0])


class Segment:
    """An open segment; `size` is its length in bytes, `end_offset` the offset after its last record.

    Reading, appending and truncating belong to the loop; `sync` may run in another thread meanwhile.
    """

    def __init__(
        self, path: Path, base_offset: int, fs: FileSystem = POSIX, rules: LogRules = CONTIGUOUS
    ) -> None:
        self._fs = fs
        self._rules = rules
        self.path = path
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size = 0
        self.first_timestamp_ms: int | None = None
        # Asked at every flush, so not left to the path's own parsing.
        self.is_published = path.suffix != UNPUBLISHED_SUFFIX
        self.indexes = SegmentIndexes(base_offset, fs)
        try:
            self.descriptor = fs.open_for_long(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise storage_failure("open", path, error) from error

    @property
    def is_empty(self) -> bool:
        return self.size == 0

    def has_room_for(self, batch: LogBatch, pending_bytes: int, limits: SegmentLimits) -> bool:
        """Whether a batch still belongs here, behind `pending_bytes`; an empty segment takes any batch.

        The batches' own timestamps give the age, as with Kafka, so no clock is needed.
        """
        size = self.size + pending_bytes
        if size == 0:
            return True
        first_ms = self.first_timestamp_ms
        return (
            size + len(batch.data) <= limits.segment_bytes
            and (first_ms is None or max_timestamp_ms(batch) - first_ms <= limits.segment_ms)
            and batch.last_offset - self.base_offset <= OFFSET_SPAN_MAX
        )

    def may_grow_by(self, batch: LogBatch) -> bool:
        """Whether a segment that is full can take a batch all the same: the indexes' numbers have 31 bits."""
        return (
            self.size + len(batch.data) <= _POSITION_MAX
            and batch.last_offset - self.base_offset <= OFFSET_SPAN_MAX
        )

    def observe(self, header: BatchHeader) -> None:
        """Count a batch that stands at the end."""
        self._count(header.size_in_bytes, header.last_offset, header.max_timestamp_ms)

    def _count(self, size: int, last_offset: int, timestamp_ms: int) -> None:
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = timestamp_ms
        self.indexes.observe(self.size, size, last_offset, timestamp_ms)
        self.size += size
        self.end_offset = last_offset + 1

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Hand the batches to the kernel in one write; raises StorageFailed, or StorageFull with nothing written."""
        data = batches[0].data if len(batches) == 1 else b"".join([batch.data for batch in batches])
        try:
            write_all(self.descriptor, data, self._fs)
        except OSError as error:
            if is_no_space(error):
                self._cut_back(error)
            raise storage_failure("write", self.path, error) from error
        try:
            for batch in batches:
                self._count(len(batch.data), batch.last_offset, max_timestamp_ms(batch))
        except OSError as error:
            raise StorageFailed("write the index of", self.path, error) from error

    def _cut_back(self, cause: OSError) -> None:
        """Take away what part of a write found space; a disk that refuses this too is no longer to be trusted.

        Durably, or after a power cut sectors of it could stand among those of what comes in its place.
        """
        try:
            self._fs.truncate(self.descriptor, self.size)
            self._fs.fdatasync(self.descriptor)
        except OSError as error:
            raise StorageFailed("truncate", self.path, error) from cause

    def read(
        self, start_offset: int, max_bytes: int, end_offset: int, epochs: Sequence[tuple[int, int]] = ()
    ) -> bytes:
        """Whole batches from the one holding `start_offset`, at least one if it ends below `end_offset`.

        What the disk gives back is checked, or the reader would spread the damage. `epochs` are those of the
        log, which no checksum covers. Raises LogCorrupted or StorageFailed.
        """
        # The two ends are looked up in the index and then by headers: only headers are read before the one large read.
        start = self.position_of(start_offset)
        end = min(self._end_by_offset(start, end_offset), self._end_by_size(start, max_bytes))
        data = self._pread(start, end - start)
        fault = read_fault(data, start_offset, epochs, self._rules)
        if fault is not None:
            offset, position, reason = fault
            raise self._corrupt(offset, start + position, reason)
        return data

    def _corrupt(self, offset: int, position: int, reason: str) -> LogCorrupted:
        return LogCorrupted(DamagedRange(offset, self.end_offset, self.path, position, reason))

    def position_of(self, offset: int) -> int:
        """Where the batch begins that holds an offset below the end. Raises LogCorrupted or StorageFailed."""
        position = self.indexes.position_at_or_before(offset)
        header = self._header(position)
        while header.next_offset <= offset:
            position += header.size_in_bytes
            header = self._header(position)
        return position

    def _end_by_offset(self, start: int, end_offset: int) -> int:
        if end_offset >= self.end_offset:
            return self.size
        position = max(start, self.indexes.position_below(end_offset))
        while (header := self._header(position)).next_offset <= end_offset:
            position += header.size_in_bytes
        return position

    def _end_by_size(self, start: int, max_bytes: int) -> int:
        limit = start + max_bytes
        if limit >= self.size:
            return self.size
        # At least one batch, even one larger than max_bytes: a reader with a small limit could never pass it otherwise
        # (KIP-74).
        first_end = start + self._header(start).size_in_bytes
        position = max(first_end, self.indexes.boundary_at_or_before(limit))
        while position < self.size and (end := position + self._header(position).size_in_bytes) <= limit:
            position = end
        return position

    def _header(self, position: int) -> BatchHeader:
        try:
            return read_batch_header(self._pread(position, HEADER_BYTES))
        except DecodeError as error:
            raise self._corrupt(self.base_offset, position, error.reason) from error

    def _pread(self, position: int, size: int) -> bytes:
        try:
            data = self._fs.pread(self.descriptor, size, position)
        except OSError as error:
            raise StorageFailed("read", self.path, error) from error
        if len(data) < size:
            reason = f"a batch begins or goes on here, but only {len(data)} of {size} bytes are left"
            raise self._corrupt(self.base_offset, position, reason)
        return data

    def truncate_to(self, end_offset: int) -> None:
        """Cut the file and its indexes at a batch boundary, and take appends again. Not durable before `sync`."""
        cut = 0 if end_offset == self.base_offset else self._end_by_offset(0, end_offset)
        try:
            self._fs.truncate(self.descriptor, cut)
            # Set once and at once: batches below may be read in the loop meanwhile.
            self.size, self.end_offset = cut, end_offset
            self._reindex(end_offset, cut)
        except OSError as error:
            raise StorageFailed("truncate", self.path, error) from error

    def end_below(self, end_offset: int) -> int:
        """The end of the last batch that ends at or below an offset; the base offset if there is none."""
        if end_offset >= self.end_offset:
            return self.end_offset
        cut = self._end_by_offset(0, end_offset)
        found, position = self.base_offset, 0 if cut == 0 else self.indexes.boundary_at_or_before(cut - 1)
        while position < cut:
            header = self._header(position)
            found, position = header.next_offset, position + header.size_in_bytes
        return found

    def cut_unsound(self) -> None:
        """Cut what follows the sound part. Not durable before `sync`; raises StorageFailed."""
        try:
            self._fs.truncate(self.descriptor, self.size)
        except OSError as error:
            raise StorageFailed("truncate", self.path, error) from error

    def _reindex(self, end_offset: int, cut: int) -> None:
        position = self.indexes.truncate(end_offset)
        while position < cut:
            header = self._header(position)
            self.indexes.observe(position, header.size_in_bytes, header.last_offset, header.max_timestamp_ms)
            position += header.size_in_bytes
            if position >= cut and not self._rules.has_gaps:
                assert header.next_offset == end_offset, (
                    f"offset {end_offset} is inside a batch of {self.path}"
                )
        # The age of the segment counts from its first batch, and the next append writes a new first one.
        if cut == 0:
            self.first_timestamp_ms = None
        self.open_indexes()

    def open_indexes(self) -> None:
        """Write both index files as they should be, and keep them open for the entries to come."""
        try:
            self.indexes.create_files(segment_path(self.path.parent, self.base_offset))
        except OSError as error:
            raise StorageFailed("write the index of", self.path, error) from error

    def sync(self) -> None:
        """Make the content and the length durable; raises FsyncFailed."""
        try:
            self._fs.fdatasync(self.descriptor)
        except OSError as error:
            raise FsyncFailed(self.path, error) from error

    def publish(self) -> None:
        """Take the segment's own name; durable once the folder is synced. Raises StorageFull or StorageFailed."""
        final_path = segment_path(self.path.parent, self.base_offset)
        try:
            self._fs.rename(self.path, final_path)
        except OSError as error:
            raise storage_failure("rename", self.path, error) from error
        self.path = final_path
        self.is_published = True

    def retire(self) -> None:
        """No more appends: the last time index entry is due, and only the log file stays open. Raises StorageFailed."""
        try:
            self.indexes.add_time_entry()
            self.indexes.close_files()
        except OSError as error:
            raise StorageFailed("write the index of", self.path, error) from error
        finally:
            self.indexes.drop_files()

    def close(self) -> None:
        self.retire()
        self._fs.close(self.descriptor)

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """The segment's files, with the one that matters last."""
        log_path = segment_path(self.path.parent, self.base_offset)
        return log_path.with_suffix(".timeindex"), log_path.with_suffix(".index"), self.path

    def delete(self) -> None:
        """Close and remove the three files; raises StorageFailed."""
        self.indexes.drop_files()
        self._fs.close(self.descriptor)
        for path in self.files:
            remove_file(path, self._fs)

    def retire_files(self, retire: Callable[..., None]) -> None:
        """Give the three files away, to be removed when no reader needs them any more; until then they can be read."""
        self.indexes.drop_files()
        *indexes, log_path = self.files
        retire(log_path, lambda: self._fs.close(self.descriptor))
        for path in indexes:
            retire(path)
