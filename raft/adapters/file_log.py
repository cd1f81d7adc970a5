"""The replica's log in the folder `__cluster_metadata-0`, byte for byte as Apache Kafka keeps it."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Literal

from raft.adapters.errors import FETCH_AGAIN
from raft.adapters.opening import open_log
from raft.adapters.replacement_mark import forget_replacement, mark_replacement
from raft.adapters.snapshot_files import (
    FIRST_VOTERS,
    list_snapshots,
    snapshot_path,
    snapshot_quorum_records,
)
from raft.ports import LogSummary
from raft.voters import QuorumRecord, quorum_records
from storage.batch_cache import BatchCache
from storage.corruption_marker import remove_corruption_marker, write_corruption_marker
from storage.damage_aside import DAMAGED_SUFFIX, set_segments_aside, set_tail_aside
from storage.durable_files import replace_file, sync_folder
from storage.errors import DamagedRange, StorageFull, storage_failure
from storage.file_system import POSIX, FileSystem
from storage.first_failure import FirstFailure
from storage.leader_epoch_checkpoint import epochs_from, read_epochs, write_epochs
from storage.recovery import segment_paths
from storage.recovery_point import RecoveryPoint
from storage.retired_files import RetiredFiles
from storage.segment import Segment, SegmentLimits
from storage.segment_list import SegmentList, first_segment, placeholder_segment
from storage.unflushed_tail import name_again
from wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from wire.uuids import METADATA_TOPIC_ID, uuid_to_text

FOLDER_NAME = "__cluster_metadata-0"
DEFAULT_CACHE_BYTES = 32 * 1024 * 1024
logger = logging.getLogger(__name__)


class FileLog:
    """A `LogStore` in files; satisfies raft.ports.LogStore.

    `append`, `advance_log_start` and the reads belong to one thread (the loop); `flush` may run in another one
    meanwhile. `truncate_to`, `truncate_fully_to` and `set_damage_aside` are durable on return and must run with none
    of these beside them, in whichever thread: were they not durable before the next append, a crash could leave new
    batches in front of old ones. Once anything failed, everything fails: after an fsync error nobody knows what the
    disk holds. StorageFull is the exception: it leaves the log as it was.
    """

    def __init__(
        self,
        folder: Path,
        limits: SegmentLimits | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        *,
        on_damage: Literal["raise", "report"] = "raise",
        retired: RetiredFiles | None = None,
        fs: FileSystem = POSIX,
    ) -> None:
        """Open or create the log. A damaged one is refused, or with "report" opened as far as it is sound; `damage`
        then says what is lost, and it takes no appends before `set_damage_aside`.

        Raises LogCorrupted, QuorumCheckpointDamaged, StorageFailed or FsyncFailed.
        """
        self._fs = fs
        self._folder = folder
        self._cache_bytes = cache_bytes
        self._cache = BatchCache(cache_bytes)
        self._retired = retired or RetiredFiles(fs=fs)
        self._unwanted: deque[Segment] = deque()
        self._has_old_snapshots = False
        self._lock = Lock()
        self._first_failure = FirstFailure(FETCH_AGAIN)
        self._create_folder()
        self._point = RecoveryPoint(folder, fs)
        with self._first_failure:
            opened = open_log(folder, self._point.offset, fs)
        if on_damage == "raise":
            opened.check_sound()
        self.recovered_cut_bytes = opened.cut_bytes
        self.damage = opened.damage
        self._is_read_only = opened.damage is not None
        self._log_start_offset = opened.log_start_offset
        segments = opened.segments or [self._empty_segment(opened.log_start_offset)]
        self._segments = SegmentList(folder, limits or SegmentLimits(), segments, fs)
        self._epochs = opened.epochs
        self._quorum_records = opened.quorum_records
        self._written_epochs = read_epochs(folder, fs)
        if opened.start_over_at is not None:
            logger.warning(
                "the log is behind its newest snapshot, and begins anew there: %s", opened.start_over_at
            )
            name_again(snapshot_path(folder, opened.start_over_at), fs)
            try:
                self._begin_at(opened.start_over_at, opened.reached_offset)
            except StorageFull:
                # It may be opened again once there is space.
                self._point.close()
                self._segments.close()
                raise
        elif not self._is_read_only:
            # The log begins where it was to begin, or nothing of it was removed yet.
            forget_replacement(folder, fs)
        self.flush(durably=True)
        if opened.passed_over is not None:
            self._set_passed_over_aside(opened.passed_over)

    def _create_folder(self) -> None:
        try:
            self._fs.make_folder(self._folder)
            is_new = "partition.metadata" not in self._fs.names(self._folder)
        except OSError as error:
            raise storage_failure("create", self._folder, error) from error
        sync_folder(self._folder.parent, self._fs)
        metadata = self._folder / "partition.metadata"
        if is_new:
            content = f"version: 0\ntopic_id: {uuid_to_text(METADATA_TOPIC_ID)}"
            replace_file(metadata, content.encode(), self._fs)

    def _empty_segment(self, base_offset: int) -> Segment:
        make = placeholder_segment if self._is_read_only else first_segment
        return make(self._folder, base_offset, self._fs)

    # What it holds

    @property
    def end_offset(self) -> int:
        return self._segments.end_offset

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    def summary(self) -> LogSummary:
        return LogSummary(
            log_start_offset=self._log_start_offset,
            log_end_offset=self.end_offset,
            epochs=tuple(self._epochs),
            snapshots=self.snapshots(),
            quorum_records=self.quorum_records(),
        )

    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Those in the folder now that the log can go on from, the oldest first; as with Kafka, the bootstrap one
        (0, 0) is among them while the log begins at 0."""
        return tuple(
            each for each in list_snapshots(self._folder, self._fs) if each.offset >= self._log_start_offset
        )

    def quorum_records(self) -> tuple[QuorumRecord, ...]:
        """What the bootstrap checkpoint (at offset -1) or the snapshot at the start (at its last offset), and the log,
        say of kraft.version and voters, ascending."""
        return tuple(self._quorum_records)

    # Writing

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Hand the batches to the kernel; not durable before `flush`. Raises StorageFull with none of them kept, or
        StorageFailed (fatal)."""
        with self._lock, self._first_failure:
            assert not self._is_read_only, "a damaged log takes no appends before its damage is set aside"
            expected = self.end_offset
            last_epoch = self._epochs[-1][0] if self._epochs else -1
            for batch in batches:
                assert batch.base_offset == expected, f"batch at {batch.base_offset}, log ends at {expected}"
                assert batch.leader_epoch >= last_epoch, f"epoch {batch.leader_epoch} after {last_epoch}"
                expected, last_epoch = batch.next_offset, batch.leader_epoch
            self._segments.append(batches)
            for batch in batches:
                self._cache.append(batch)
                if not self._epochs or batch.leader_epoch > self._epochs[-1][0]:
                    self._epochs.append((batch.leader_epoch, batch.base_offset))
                if batch.is_control:
                    self._quorum_records.extend(quorum_records(batch))

    # Cutting

    def truncate_to(self, end_offset: int) -> None:
        """Drop all at and above `end_offset`, a batch boundary; durable on return. Raises StorageFailed (fatal)."""
        assert self._log_start_offset <= end_offset <= self.end_offset, end_offset
        if end_offset == self.end_offset:
            return
        with self._lock, self._first_failure:
            # Before the cut: a crash between must not make what was cut look like what was lost.
            self._point.set_back(self._at_least_damaged(end_offset))
            self._cache.truncate_to(end_offset)
            self._segments.truncate_to(end_offset)
            while self._epochs and self._epochs[-1][1] >= end_offset:
                self._epochs.pop()
            while self._quorum_records and self._quorum_records[-1].offset >= end_offset:
                self._quorum_records.pop()

    def _at_least_damaged(self, recovery_point: int) -> int:
        """While what was damaged is not fetched again, the recovery point stays above it: so a restart knows."""
        return recovery_point if self.damage is None else max(recovery_point, self.damage.known_until)

    def truncate_fully_to(self, offset: int) -> None:
        """Drop all, and begin anew where a snapshot ends that is in the folder already; durable on return.

        After a crash before the end, the next start goes on with it; if the snapshot has turned bad by then, what was
        dropped is damage. Raises StorageFailed (fatal).
        """
        self._begin_at(self._snapshot_at(offset), self._at_least_damaged(self.end_offset))

    def _begin_at(self, snapshot: OffsetAndEpoch, reached_offset: int) -> None:
        """`reached_offset`: below it records may have been acknowledged."""
        offset = snapshot.offset
        self.set_damage_aside()
        with self._lock, self._first_failure:
            mark_replacement(self._folder, snapshot, reached_offset, self._fs)
            is_covered = self.damage is None or self.damage.known_until <= offset
            self._point.set_back(0 if is_covered else self._at_least_damaged(0))
            self._cache = BatchCache(self._cache_bytes)
            self._segments.begin_anew(offset)
            self._epochs.clear()
            self._quorum_records = list(snapshot_quorum_records(self._folder, snapshot, self._fs))
            self._log_start_offset = offset
            self._retire_snapshots()
        # A log without segments whose recovery point is above 0 has lost them: see `node.metadata_folder`.
        self.flush(durably=True)
        with self._first_failure:
            forget_replacement(self._folder, self._fs)

    def advance_log_start(self, offset: int) -> None:
        """Begin at a later offset, where a snapshot ends. The next flush retires the segments and snapshots that lie
        wholly below; a crash before leaves them to the next advance."""
        self._snapshot_at(offset)
        with self._lock:
            assert self._log_start_offset < offset <= self.end_offset, offset
            self._unwanted.extend(self._segments.take_below(offset))
            self._log_start_offset = offset
            self._epochs = epochs_from(self._epochs, offset, self.end_offset)
            self._has_old_snapshots = True

    def _retire_unwanted(self) -> None:
        """Oldest first and each durably, so that what is left never has a gap."""
        while self._unwanted:
            self._unwanted[0].retire_files(self._retired.retire)
            sync_folder(self._folder, self._fs)
            self._unwanted.popleft()
        if self._has_old_snapshots:
            self._has_old_snapshots = False
            self._retire_snapshots()
        self._retired.remove_due()

    def _snapshot_at(self, offset: int) -> OffsetAndEpoch:
        found = [each for each in list_snapshots(self._folder, self._fs) if each.offset == offset]
        assert found, f"there is no snapshot at offset {offset}, so the log cannot begin there"
        return found[-1]

    def _retire_snapshots(self) -> None:
        """Those below the log's start; the first voters are kept while the first segment may be read from 0 again."""
        for snapshot in list_snapshots(self._folder, self._fs):
            is_still_needed = snapshot == FIRST_VOTERS and self._segments.base_offset == 0
            if snapshot.offset < self._log_start_offset and not is_still_needed:
                self._retired.retire(snapshot_path(self._folder, snapshot))
        sync_folder(self._folder, self._fs)

    # Damage

    def set_damage_aside(self) -> None:
        """Have a damaged log take appends again, from the end of what is sound; durable on return.

        What is damaged is kept beside it, with the suffix `.damaged`. Until `mark_repaired`, every start says again
        what is still missing. Raises StorageFull (it may be tried again), StorageFailed or FsyncFailed.
        """
        if self.damage is None or not self._is_read_only:
            return
        with self._lock, self._first_failure:
            write_corruption_marker(self._folder, self.damage, self._fs)
            forget_replacement(self._folder, self._fs)
            self._point.put(self._at_least_damaged(self._point.offset or 0))
            own, last = self._segments.paths, self._segments.last
            damaged = [path for path in segment_paths(self._folder, self._fs) if path not in own]
            set_segments_aside(damaged, self._fs)
            if last.path == self.damage.segment:
                set_tail_aside(last, self._fs)
            last.open_indexes()
            self._is_read_only = False
        self.flush()

    def _set_passed_over_aside(self, damage: DamagedRange) -> None:
        """What lies before the log's first segment; that one is durable by its name."""
        logger.warning(
            "%s. A snapshot stands for them: the log begins at offset %d, with the sound records behind it. What was "
            "before, sound records too, is set aside with the suffix %s",
            replace(damage, end_offset=max(self._log_start_offset, damage.start_offset + 1)),
            self._log_start_offset,
            DAMAGED_SUFFIX,
        )
        with self._first_failure:
            own = self._segments.paths
            set_segments_aside(
                [path for path in segment_paths(self._folder, self._fs) if path not in own], self._fs
            )

    def mark_repaired(self) -> None:
        """All that may have been lost was fetched again, or turned out never to have been committed."""
        self.damage = None
        end_offset = self.flush()
        with self._first_failure:
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
        with self._first_failure:
            return self._segments.read(start_offset, max_bytes, end_offset, self._epochs)

    # Keeping

    def flush(self, *, durably: bool = False) -> int:
        """Make all written so far durable; answers the end offset this covers. With `durably`, say so durably too.

        Raises FsyncFailed (fatal), or StorageFull: then it may be tried again.
        """
        if self._is_read_only:
            return self.end_offset
        with self._first_failure:
            with self._lock:
                end_offset, epochs = self.end_offset, tuple(self._epochs)
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
            if self._first_failure.error is None:
                self.flush(durably=True)
        finally:
            self._point.close()
            self._retired.close()
            self._segments.close()
            for segment in self._unwanted:
                segment.close()
