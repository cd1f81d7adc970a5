"""The replica's log in the folder `__cluster_metadata-0`, byte for byte as Apache Kafka keeps it."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from raft.adapters.batch_cache import BatchCache
from raft.adapters.durable_files import replace_file, sync_folder
from raft.adapters.epoch_checkpoint import read_epochs, write_epochs
from raft.adapters.errors import StorageFailed
from raft.adapters.quorum_checkpoint import read_quorum_checkpoint
from raft.adapters.recovery import recover_segments
from raft.adapters.segment import Segment, SegmentLimits, segment_path, unpublished_path
from raft.batches import LogBatch, parse_batches
from raft.ports import LogSummary
from raft.quorum_records import QuorumRecord, quorum_records
from wire.record_batch import BatchHeader, read_batch_header
from wire.uuids import METADATA_TOPIC_ID, uuid_to_text

FOLDER_NAME = "__cluster_metadata-0"
DEFAULT_CACHE_BYTES = 32 * 1024 * 1024


class FileLog:
    """A `LogStore` in files; satisfies raft.ports.LogStore.

    `append` and the reads belong to one thread (the loop); `flush` may run in another one meanwhile. `truncate_to`
    is durable on return and must run with neither beside it, in whichever thread: were it not durable before the
    next append, a crash could leave new batches in front of old ones. Once anything failed, everything fails:
    after an fsync error nobody knows what the disk holds.
    """

    def __init__(
        self, folder: Path, limits: SegmentLimits | None = None, cache_bytes: int = DEFAULT_CACHE_BYTES
    ) -> None:
        """Open or create the log; raises LogCorrupted, QuorumCheckpointDamaged, StorageFailed or FsyncFailed."""
        self._folder = folder
        self._limits = limits or SegmentLimits()
        self._cache = BatchCache(cache_bytes)
        self._lock = Lock()
        self._failure: StorageFailed | None = None
        self._create_folder()
        first_voters = read_quorum_checkpoint(folder)
        recovered = recover_segments(folder)
        self.recovered_cut_bytes = recovered.cut_bytes
        self._segments = recovered.segments or [self._create_segment(0)]
        self._epochs = recovered.epochs
        self._quorum_records = [*first_voters, *recovered.quorum_records]
        self._written_epochs = read_epochs(folder)
        self._dirty: set[Segment] = set(self._segments)
        self._folder_is_dirty = True
        self.flush()

    def _create_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFailed("create", self._folder, error) from error
        sync_folder(self._folder.parent)
        metadata = self._folder / "partition.metadata"
        if not metadata.exists():
            replace_file(metadata, f"version: 0\ntopic_id: {uuid_to_text(METADATA_TOPIC_ID)}".encode())

    def _create_segment(self, base_offset: int) -> Segment:
        segment = Segment(segment_path(self._folder, base_offset), base_offset)
        segment.open_indexes()
        return segment

    @property
    def end_offset(self) -> int:
        return self._segments[-1].end_offset

    def summary(self) -> LogSummary:
        return LogSummary(
            log_start_offset=self._segments[0].base_offset,
            log_end_offset=self.end_offset,
            epochs=tuple(self._epochs),
            quorum_records=self.quorum_records(),
        )

    def quorum_records(self) -> tuple[QuorumRecord, ...]:
        """What the bootstrap checkpoint (at offset -1) and the log say of kraft.version and voters, ascending."""
        return tuple(self._quorum_records)

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Hand the batches to the kernel; not durable before `flush`. Raises StorageFailed (fatal)."""
        with self._lock, self._failing_for_good():
            expected, last_epoch = self.end_offset, self._epochs[-1][0] if self._epochs else -1
            for batch in batches:
                assert batch.base_offset == expected, f"batch at {batch.base_offset}, log ends at {expected}"
                assert batch.leader_epoch >= last_epoch, f"epoch {batch.leader_epoch} after {last_epoch}"
                expected, last_epoch = batch.next_offset, batch.leader_epoch
            self._append(batches)

    def _append(self, batches: Sequence[LogBatch]) -> None:
        group: list[LogBatch] = []
        headers: list[BatchHeader] = []
        pending_bytes = 0
        for batch in batches:
            header = read_batch_header(batch.data)
            if not self._segments[-1].has_room_for(header, pending_bytes, self._limits):
                self._write(group, headers)
                self._roll(batch.base_offset)
                group, headers, pending_bytes = [], [], 0
            group.append(batch)
            headers.append(header)
            pending_bytes += len(batch.data)
        self._write(group, headers)

    def _write(self, group: Sequence[LogBatch], headers: Sequence[BatchHeader]) -> None:
        if not group:
            return
        segment = self._segments[-1]
        self._dirty.add(segment)
        segment.append(group, headers)
        for batch in group:
            self._cache.append(batch)
            if not self._epochs or batch.leader_epoch > self._epochs[-1][0]:
                self._epochs.append((batch.leader_epoch, batch.base_offset))
            self._quorum_records.extend(quorum_records(batch))

    def _roll(self, base_offset: int) -> None:
        self._segments[-1].retire()
        segment = Segment(unpublished_path(self._folder, base_offset), base_offset)
        segment.open_indexes()
        self._segments.append(segment)

    def truncate_to(self, end_offset: int) -> None:
        """Drop all at and above `end_offset`, a batch boundary; durable on return. Raises StorageFailed (fatal)."""
        assert self._segments[0].base_offset <= end_offset <= self.end_offset, end_offset
        if end_offset == self.end_offset:
            return
        with self._lock, self._failing_for_good():
            self._cache.truncate_to(end_offset)
            self._drop_segments(end_offset)
            segment = self._segments[-1]
            segment.truncate_to(end_offset)
            segment.sync()
            while self._epochs and self._epochs[-1][1] >= end_offset:
                self._epochs.pop()
            while self._quorum_records and self._quorum_records[-1].offset >= end_offset:
                self._quorum_records.pop()

    def _drop_segments(self, end_offset: int) -> None:
        """Remove the segments beyond, the last first, and durably so before anything else is cut.

        A crash between may then leave the log longer than asked for, but never with a gap.
        """
        if len(self._segments) == 1 or self._segments[-1].base_offset < end_offset:
            return
        while len(self._segments) > 1 and self._segments[-1].base_offset >= end_offset:
            segment = self._segments.pop()
            self._dirty.discard(segment)
            segment.delete()
        sync_folder(self._folder)

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
        index = bisect_right(self._segments, start_offset, key=lambda segment: segment.base_offset) - 1
        assert index >= 0, f"offset {start_offset} is below the log's start"
        with self._failing_for_good():
            return self._segments[index].read(start_offset, max_bytes, end_offset)

    def flush(self) -> int:
        """Make all written so far durable; answers the end offset this covers. Raises FsyncFailed (fatal)."""
        with self._failing_for_good():
            with self._lock:
                end_offset, epochs = self.end_offset, tuple(self._epochs)
                dirty, self._dirty = sorted(self._dirty, key=lambda segment: segment.base_offset), set()
                folder_is_dirty, self._folder_is_dirty = self._folder_is_dirty, False
            for segment in dirty:
                segment.sync()
                if not segment.is_published:
                    segment.publish()
                    folder_is_dirty = True
            if folder_is_dirty:
                sync_folder(self._folder)
            if epochs != self._written_epochs:
                write_epochs(self._folder, epochs)
                self._written_epochs = epochs
        return end_offset

    @contextmanager
    def _failing_for_good(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except StorageFailed as error:
            self._failure = error
            raise

    def close(self) -> None:
        """Flush, unless the log has failed, and close every file."""
        try:
            if self._failure is None:
                self.flush()
        finally:
            for segment in self._segments:
                segment.close()
