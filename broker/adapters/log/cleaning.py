"""One round of compaction over one log: the thread reads and writes files, the loop puts them in their place.

`next_work` gives piece after piece: the pass over the keys, then for each group of segments the copy of what stays.
`run` of a piece works on closed segments by their paths, and touches nothing of the log; `finish` on the loop renames.
A copy is written as `.cleaned`, and counts only once it was renamed to `.swap` (`DiskLog.replace_segments`), so that a
crash leaves the old segments or the new one. The log cancels a round when it is truncated, removed or moved.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.loading import CLEANED_SUFFIX
from kquorum.broker.log.cleanable import Cleanable, groups
from kquorum.broker.log.compaction import CopyPass, KeyPass, OffsetMap, last_records
from kquorum.broker.log.errors import KafkaStorageError
from kquorum.broker.log.transactions import AbortedEntry, decode_entries
from kquorum.storage.errors import StorageFailed, StorageFull
from kquorum.storage.file_system import FileSystem
from kquorum.storage.partition_segment import BadBatch, PartitionSegment
from kquorum.wire.data_batch import BatchHeader, check_data_batch, read_data_header
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import HEADER_BYTES

logger = logging.getLogger("broker.log_cleaner")
_CHUNK_BYTES = 1024 * 1024


class CleaningCancelled(Exception):
    """The log is not what it was when the round began."""


@dataclass(frozen=True, slots=True)
class Source:
    """A closed segment, as the thread reads it."""

    segment: PartitionSegment
    """For the loop alone."""
    base_offset: int
    next_base_offset: int
    path: Path
    size: int
    index_bytes: tuple[int, int]
    modified_ms: int


class Cleaning:
    """`is_over` when no piece is left; `end_offset` is then where the next round begins, None if this one came to
    nothing. `damage` says why the log cannot be cleaned at all."""

    def __init__(
        self,
        log: DiskLog,
        part: Cleanable,
        *,
        now_ms: int,
        most_slots: int,
        pause: Callable[[int], None] = lambda _bytes: None,
    ) -> None:
        """`pause` is called in the thread with the bytes that were read or written since. Raises StorageFailed."""
        self.log = log
        self.part = part
        self.now_ms = now_ms
        self.is_cancelled = False
        self.is_over = False
        self.end_offset: int | None = None
        self.damage: str | None = None
        self.bytes_before = self.bytes_after = 0
        self._pause = pause
        self.sources = sources_of(log, part.first_uncleanable_offset)
        # Of the last segment too: the marker of a transaction may lie there, and its data in a closed one. There may be
        # millions, so the loop copies the bytes, and the thread reads them.
        self._indexes = [bytes(segment.aborted.content) for segment in log.segments]
        self._aborted: list[AbortedEntry] = []
        self._offsets = OffsetMap(most_slots)
        self._copy = CopyPass(
            offsets=self._offsets,
            last_records=last_records(log.producers.entries),
            end_offset=part.first_uncleanable_offset,
            now_ms=now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
        )
        self._groups: list[list[Source]] | None = None
        self._legacy_horizon_ms = 0
        log.cleaning = self

    def cancel(self) -> None:
        """For any thread: the piece that runs stops at the next batch."""
        self.is_cancelled = True

    def next_work(self) -> KeysWork | CopyWork | None:
        if self.is_over or self.is_cancelled:
            self.end()
            return None
        if self._groups is None:
            return KeysWork(self)
        if self._groups:
            return CopyWork(self, self._groups.pop(0))
        self.end_offset = self._offsets.latest_offset + 1
        self.end()
        return None

    def end(self) -> None:
        self.is_over = True
        if self.log.cleaning is self:
            self.log.cleaning = None

    def give_up(self, error: Exception | None) -> None:
        """On the loop: a piece failed."""
        self.end()
        if isinstance(error, StorageFull):
            logger.warning("%s is not cleaned for now: %s", self.log.folder, error)
        elif isinstance(error, StorageFailed) and not self.is_cancelled:
            self.log.log_dir.fail(error)

    # In the thread

    def find_keys(self) -> None:
        """Raises CleaningCancelled, StorageFailed, BadBatch, DecodeError."""
        self._aborted = [entry for index in self._indexes for entry in decode_entries(index)]
        self._indexes.clear()
        dirty = [each for each in self.sources if each.next_base_offset > self.part.first_dirty_offset]
        keys = KeyPass(
            self._offsets,
            self.part.first_dirty_offset,
            self._aborted_in(self.part.first_dirty_offset, self.part.first_uncleanable_offset),
        )
        for source in dirty:
            for header, batch in self._batches(source):
                if header.last_offset < self.part.first_dirty_offset and not header.is_control:
                    continue
                if not keys.add(header, batch):
                    return
            keys.end_segment(source.next_base_offset)

    def group(self) -> None:
        config, end = self.log.config, self._offsets.latest_offset + 1
        sources = [each for each in self.sources if each.base_offset < end]
        clean = [each for each in sources if each.base_offset < self.part.first_dirty_offset]
        self._legacy_horizon_ms = clean[-1].modified_ms - config.delete_retention_ms if clean else 0
        self._groups = groups(
            sources,
            segment_bytes=config.segment_bytes,
            index_bytes=config.segment_index_bytes,
            end_offset=self.part.first_uncleanable_offset,
        )

    def _aborted_in(self, start_offset: int, end_offset: int) -> list[AbortedEntry]:
        return [
            each
            for each in self._aborted
            if each.last_offset >= start_offset and each.first_offset < end_offset
        ]

    def copy(self, group: Sequence[Source], target: PartitionSegment) -> None:
        """Have what stays of the group durable in `target`. Raises CleaningCancelled, StorageFailed, BadBatch,
        DecodeError."""
        target.create(self.now_ms)
        waiting, headers = bytearray(), list[BatchHeader]()
        for source in group:
            self._copy.transactions.add_aborted(self._aborted_in(source.base_offset, source.next_base_offset))
            self._copy.keeps_legacy_tombstones = source.modified_ms > self._legacy_horizon_ms
            for header, batch in self._batches(source):
                kept = self._copy.kept(header, batch)
                if kept is None:
                    continue
                headers.append(header if kept is batch else read_data_header(kept))
                waiting += kept
                if len(waiting) >= _CHUNK_BYTES:
                    self._write(target, waiting, headers)
        self._write(target, waiting, headers)
        for entry in self._copy.transactions.take_kept():
            target.aborted.add_entry(
                entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
            )
        target.write_indexes(closing=True)
        target.set_modified(group[-1].modified_ms)
        target.sync()

    def _write(self, target: PartitionSegment, waiting: bytearray, headers: list[BatchHeader]) -> None:
        if headers:
            target.append(waiting, headers)
            self._check_wanted(len(waiting))
        waiting.clear()
        headers.clear()

    def _batches(self, source: Source) -> Iterator[tuple[BatchHeader, memoryview]]:
        for header, batch in read_batches(source.path, source.size, self.log.fs):
            self._check_wanted(header.size_in_bytes)
            yield header, batch

    def _check_wanted(self, count: int) -> None:
        if self.is_cancelled:
            raise CleaningCancelled
        self._pause(count)


@dataclass(slots=True)
class KeysWork:
    """The first pass. Satisfies DiskWork."""

    cleaning: Cleaning

    def run(self) -> None:
        """Raises StorageFailed."""
        with_damage(self.cleaning, self.cleaning.find_keys)

    def finish(self, error: Exception | None) -> None:
        cleaning = self.cleaning
        if error is not None or cleaning.is_cancelled or cleaning.damage is not None:
            cleaning.give_up(error)
        else:
            cleaning.group()


class CopyWork:
    """The second pass over one group. Satisfies DiskWork."""

    def __init__(self, cleaning: Cleaning, group: list[Source]) -> None:
        self._cleaning = cleaning
        self._group = group
        self._target = PartitionSegment(
            group[0].path.parent,
            group[0].base_offset,
            cleaning.log.fs,
            index_interval_bytes=cleaning.log.config.index_interval_bytes,
            suffix=CLEANED_SUFFIX,
        )
        self._is_copied = False

    def run(self) -> None:
        """Raises StorageFailed."""
        with_damage(self._cleaning, self._copy)

    def _copy(self) -> None:
        self._cleaning.copy(self._group, self._target)
        self._is_copied = True

    def finish(self, error: Exception | None) -> None:
        cleaning = self._cleaning
        if not self._is_copied or cleaning.is_cancelled:
            cleaning.give_up(error)
            self._discard()
            return
        cleaning.bytes_before += sum(each.size for each in self._group)
        cleaning.bytes_after += self._target.size
        try:
            cleaning.log.replace_segments(self._target, [each.segment for each in self._group])
        except KafkaStorageError as failure:
            logger.warning("%s is not cleaned: %s", cleaning.log.folder, failure)
            cleaning.end()

    def _discard(self) -> None:
        """The next start removes what cannot be removed now."""
        try:
            self._target.remove()
        except StorageFailed as error:
            logger.warning("%s stays until the next start: %s", self._target.path, error)


def with_damage(cleaning: Cleaning, run: Callable[[], None]) -> None:
    """A log that cannot be read is noted, with the reason; errors of the disk are the caller's."""
    try:
        run()
    except CleaningCancelled:
        return
    except (BadBatch, DecodeError, ValueError) as error:
        cleaning.damage = str(error)


def sources_of(log: DiskLog, end_offset: int) -> list[Source]:
    """The segments below the offset, as they are now. Raises StorageFailed."""
    segments = log.segments
    return [
        Source(
            segment,
            segment.base_offset,
            segments[index + 1].base_offset,
            segment.path,
            segment.size,
            segment.index_bytes,
            segment.modified_ms,
        )
        for index, segment in enumerate(segments[:-1])
        if segment.base_offset < end_offset
    ]


def read_batches(path: Path, size: int, fs: FileSystem) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Header and bytes of each batch in the first `size` bytes, chunk by chunk, each with its checksum checked: what is
    damaged must not get a new checksum. Raises BadBatch or StorageFailed."""
    try:
        descriptor = fs.open(path, os.O_RDONLY)
    except OSError as error:
        raise StorageFailed("open", path, error) from error
    try:
        chunk, start, position = b"", 0, 0
        while position < size:
            if position + HEADER_BYTES > start + len(chunk):
                chunk, start = _read(descriptor, position, size, _CHUNK_BYTES, path, fs), position
            try:
                length = read_data_header(chunk, position - start).size_in_bytes
                if position + length > start + len(chunk):
                    chunk, start = (
                        _read(descriptor, position, size, max(length, _CHUNK_BYTES), path, fs),
                        position,
                    )
                header = check_data_batch(chunk, position - start)
            except DecodeError as error:
                raise BadBatch(position, error.reason) from None
            yield header, memoryview(chunk)[position - start : position - start + length]
            position += length
    finally:
        fs.close(descriptor)


def _read(descriptor: int, position: int, end: int, count: int, path: Path, fs: FileSystem) -> bytes:
    """What the file has there, at most up to `end`."""
    count = min(count, end - position)
    data = b""
    try:
        while len(data) < count and (more := fs.pread(descriptor, count - len(data), position + len(data))):
            data += more
    except OSError as error:
        raise StorageFailed("read", path, error) from error
    return data
