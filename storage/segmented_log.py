"""A log on disk: the segments, the newest batches in memory, the recovery point, truncation and damage.

The log does not interpret its batches. Its owner recovers the segments (`storage.recovery`) with a reader of its own,
and passes them in.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from kquorum.storage.batch_cache import BatchCache
from kquorum.storage.corruption_marker import remove_corruption_marker, write_corruption_marker
from kquorum.storage.damage_aside import set_segments_aside, set_tail_aside
from kquorum.storage.durable_files import sync_folder
from kquorum.storage.errors import DamagedRange, StorageFull
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.first_failure import FirstFailure
from kquorum.storage.leader_epoch_checkpoint import epochs_from, read_epochs, write_epochs
from kquorum.storage.log_rules import CONTIGUOUS, LogRules
from kquorum.storage.recovery import segment_paths
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.storage.retired_files import RetiredFiles
from kquorum.storage.segment import Segment, SegmentLimits
from kquorum.storage.segment_list import SegmentList, first_segment, placeholder_segment
from kquorum.wire.log_batch import LogBatch, parse_batches

DEFAULT_CACHE_BYTES = 16 * 1024 * 1024
logger = logging.getLogger(__name__)


def _nothing() -> None:
    return None


class SegmentedLog:
    """`append`, `advance_start` and the reads belong to one thread (the loop); `flush` may run in another one.

    `truncate_to`, `start_over` and `set_damage_aside` run with none of these beside them, in any thread. They are
    durable on return (`start_over` with the next flush): if they were not durable before the next append, a crash could
    leave new batches in front of old ones. Once anything failed, everything fails: after an fsync error the state of
    the disk is not known. StorageFull is the exception: it leaves the log as it was.
    """

    def __init__(
        self,
        folder: Path,
        segments: Sequence[Segment],
        epochs: Sequence[tuple[int, int]],
        log_start_offset: int,
        point: RecoveryPoint,
        first_failure: FirstFailure,
        *,
        damage: DamagedRange | None = None,
        limits: SegmentLimits | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        rules: LogRules = CONTIGUOUS,
        retired: RetiredFiles | None = None,
        handle_new_start: Callable[[], None] = _nothing,
        fs: FileSystem = POSIX,
    ) -> None:
        """`segments`, `epochs` and `damage` are what recovery found. A log with damage takes no appends before
        `set_damage_aside`. `handle_new_start` runs in the flush that has retired what lay below a new start."""
        self._folder = folder
        self._fs = fs
        self._rules = rules
        self._cache_bytes = cache_bytes
        self._cache = BatchCache(cache_bytes)
        self._retired = retired or RetiredFiles(fs=fs)
        self._handle_new_start = handle_new_start
        self._unwanted: deque[Segment] = deque()
        self._has_new_start = False
        self._lock = Lock()
        self._point = point
        self.first_failure = first_failure
        self.damage = damage
        self._is_read_only = damage is not None
        self._log_start_offset = log_start_offset
        make = placeholder_segment if self._is_read_only else first_segment
        found = list(segments) or [make(folder, log_start_offset, fs, rules)]
        self._segments = SegmentList(folder, limits or SegmentLimits(), found, fs, rules)
        self._epochs = list(epochs)
        self._written_epochs = read_epochs(folder, fs)

    # What it holds

    @property
    def base_offset(self) -> int:
        """Where the first segment begins, at or below the log's start."""
        return self._segments.base_offset

    @property
    def end_offset(self) -> int:
        return self._segments.end_offset

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """Each leader epoch with the offset at which it begins."""
        return tuple(self._epochs)

    @property
    def is_read_only(self) -> bool:
        """Whether there is damage that was not set aside."""
        return self._is_read_only

    @property
    def segment_paths(self) -> set[Path]:
        return self._segments.paths

    # Writing

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Hand the batches to the kernel; not durable before `flush`. Raises StorageFull with none of them kept, or
        StorageFailed (fatal)."""
        with self._lock, self.first_failure:
            assert not self._is_read_only, "a damaged log takes no appends before its damage is set aside"
            expected, has_gaps = self.end_offset, self._rules.has_gaps
            last_epoch = self._epochs[-1][0] if self._epochs else -1
            for batch in batches:
                assert batch.base_offset == expected or (has_gaps and batch.base_offset > expected), (
                    f"batch at {batch.base_offset}, log ends at {expected}"
                )
                assert batch.leader_epoch >= last_epoch, f"epoch {batch.leader_epoch} after {last_epoch}"
                expected, last_epoch = batch.next_offset, batch.leader_epoch
            self._segments.append(batches)
            # Only now: after StorageFull none of these batches may be readable from the cache.
            for batch in batches:
                self._cache.append(batch)
                if not self._epochs or batch.leader_epoch > self._epochs[-1][0]:
                    self._epochs.append((batch.leader_epoch, batch.base_offset))

    # Cutting

    def truncate_to(self, end_offset: int) -> None:
        """Drop all at and above `end_offset`, a batch boundary; durable on return. Raises StorageFailed (fatal).

        A log with gaps then ends where its last batch does, as it would after a restart.
        """
        assert self._log_start_offset <= end_offset <= self.end_offset, end_offset
        if self._rules.has_gaps:
            # The recovery point must not be above the log's end: the next start would take the gap for a loss.
            end_offset = max(self._log_start_offset, self._segments.end_below(end_offset))
        if end_offset == self.end_offset:
            return
        with self._lock, self.first_failure:
            # Before the cut: a crash between must not make what was cut look like what was lost.
            self._point.set_back(self.at_least_damaged(end_offset))
            self._cache.truncate_to(end_offset)
            self._segments.truncate_to(end_offset)
            while self._epochs and self._epochs[-1][1] >= end_offset:
                self._epochs.pop()

    def at_least_damaged(self, offset: int) -> int:
        """While what was damaged is not there again, the recovery point stays above it: so a restart knows."""
        return offset if self.damage is None else max(offset, self.damage.known_until)

    def start_over(self, offset: int, mark: Callable[[], None]) -> None:
        """Drop all, and begin at `offset`; `mark` first makes durable that this is under way. Not durable before the
        next flush. Raises StorageFailed (fatal)."""
        with self._lock, self.first_failure:
            mark()
            # A log that begins at or above the end of the damage misses nothing any more.
            is_covered = self.damage is None or self.damage.known_until <= offset
            self._point.set_back(0 if is_covered else self.at_least_damaged(0))
            self._cache = BatchCache(self._cache_bytes)
            self._segments.start_over(offset)
            self._epochs.clear()
            self._log_start_offset = offset
            self._handle_new_start()

    def advance_start(self, offset: int) -> None:
        """Begin at a later offset. The next flush retires the segments that lie wholly below; a crash before leaves
        them to the next advance."""
        with self._lock:
            assert self._log_start_offset < offset <= self.end_offset, offset
            self._unwanted.extend(self._segments.take_below(offset))
            self._log_start_offset = offset
            self._epochs = epochs_from(self._epochs, offset, self.end_offset)
            self._has_new_start = True

    def _retire_unwanted(self) -> None:
        """Oldest first and each durably, so that what is left never has a gap."""
        while self._unwanted:
            self._unwanted[0].retire_files(self._retired.retire)
            sync_folder(self._folder, self._fs)
            self._unwanted.popleft()
        if self._has_new_start:
            self._has_new_start = False
            self._handle_new_start()
        self._retired.remove_due()

    # Damage

    def set_damage_aside(self, handle_marked: Callable[[], None] = _nothing) -> None:
        """Have a damaged log take appends again, from the end of what is sound; durable on return.

        What is damaged is kept beside it, with the suffix `.damaged`. Until `mark_repaired`, every start says again
        what is still missing. `handle_marked` runs once the loss is on the disk. Raises StorageFull (it may be tried
        again), StorageFailed or FsyncFailed.
        """
        if self.damage is None or not self._is_read_only:
            return
        with self._lock, self.first_failure:
            # Before any file moves: after a crash in between, the next start finds the marker, whatever else it finds.
            write_corruption_marker(self._folder, self.damage, self._fs)
            handle_marked()
            self._point.put(self.at_least_damaged(self._point.offset or 0))
            own, last = self._segments.paths, self._segments.last
            damaged = [path for path in segment_paths(self._folder, self._fs) if path not in own]
            set_segments_aside(damaged, self._fs)
            if last.path == self.damage.segment:
                set_tail_aside(last, self._fs)
            last.open_indexes()
            self._is_read_only = False
        self.flush()

    def mark_repaired(self) -> None:
        """All that may have been lost was fetched again, or turned out never to have been committed."""
        self.damage = None
        # The fetched records have to be durable before the marker goes: a crash in between would lose both.
        end_offset = self.flush()
        with self.first_failure:
            self._point.set_back(end_offset)
            remove_corruption_marker(self._folder, self._fs)

    # Reading

    def read(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Whole batches from the one that holds `start_offset`, of one segment; empty at the end of the log."""
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        if start_offset >= end:
            return b""
        cached = self._cache.read(start_offset, max_bytes, end)
        if cached is None:
            return self._read_file(start_offset, max_bytes, end)
        return cached[0].data if len(cached) == 1 else b"".join([batch.data for batch in cached])

    def read_batches(
        self, start_offset: int, max_bytes: int, end_offset: int | None = None
    ) -> Sequence[LogBatch]:
        """As `read`, as values; batches still in memory are not parsed again."""
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        if start_offset >= end:
            return ()
        cached = self._cache.read(start_offset, max_bytes, end)
        return parse_batches(self._read_file(start_offset, max_bytes, end)) if cached is None else cached

    def _read_file(self, start_offset: int, max_bytes: int, end_offset: int) -> bytes:
        assert start_offset >= self._log_start_offset, f"offset {start_offset} is below the log's start"
        with self.first_failure:
            return self._segments.read(start_offset, max_bytes, end_offset, self._epochs)

    # Keeping

    def flush(self, *, durably: bool = False) -> int:
        """Make all written so far durable; answers the end offset this covers. With `durably`, say so durably too.

        Raises FsyncFailed (fatal), or StorageFull: then it may be tried again.
        """
        if self._is_read_only:
            return self.end_offset
        with self.first_failure:
            # The lock is not held during fsync: the loop goes on appending, and this flush covers `end_offset` only.
            with self._lock:
                end_offset, epochs = self.end_offset, self.epochs
                dirty, folder_is_dirty = self._segments.take_dirty()
            try:
                has_rolled = self._segments.make_durable(dirty, folder_is_dirty=folder_is_dirty)
            except StorageFull:
                with self._lock:
                    self._segments.put_back(dirty)
                raise
            if self._are_epochs_written(epochs):
                self._point.advance(end_offset, durably=has_rolled or durably)
            self._retire_unwanted()
        return end_offset

    def _are_epochs_written(self, epochs: tuple[tuple[int, int], ...]) -> bool:
        """The epochs can be rebuilt from the log, so a full disk only postpones them."""
        if epochs != self._written_epochs:
            try:
                write_epochs(self._folder, epochs, self._fs)
            except StorageFull as error:
                logger.warning("%s", error)
                return False
            self._written_epochs = epochs
        return True

    def close(self) -> None:
        """Flush, unless the log has failed, and close every file."""
        try:
            if self.first_failure.error is None:
                self.flush(durably=True)
        finally:
            self.close_files()

    def close_files(self) -> None:
        """Close every file; what was not flushed may be lost."""
        self._point.close()
        self._retired.close()
        self._segments.close()
        for segment in self._unwanted:
            segment.close()
