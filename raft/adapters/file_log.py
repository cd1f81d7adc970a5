"""The replica's log in the folder `__cluster_metadata-0`, byte for byte as Apache Kafka keeps it.

The storage keeps the segments (`storage.segmented_log`). What Raft adds stands here: the snapshots that the log may
begin at, the voters that the log names, and the replacement of the log by a snapshot.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from kquorum.raft.adapters.errors import FETCH_AGAIN
from kquorum.raft.adapters.opening import open_log
from kquorum.raft.adapters.replacement_mark import forget_replacement, mark_replacement
from kquorum.raft.adapters.snapshot_files import (
    FIRST_VOTERS,
    list_snapshots,
    snapshot_path,
    snapshot_quorum_records,
)
from kquorum.raft.ports import LogSummary
from kquorum.raft.voters import QuorumRecord, quorum_records
from kquorum.storage.damage_aside import DAMAGED_SUFFIX, set_segments_aside
from kquorum.storage.durable_files import replace_file, sync_folder
from kquorum.storage.errors import DamagedRange, StorageFull, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.first_failure import FirstFailure
from kquorum.storage.recovery import segment_paths
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.storage.retired_files import RetiredFiles
from kquorum.storage.segment import SegmentLimits
from kquorum.storage.segmented_log import DEFAULT_CACHE_BYTES, SegmentedLog
from kquorum.storage.unflushed_tail import name_again
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from kquorum.wire.uuids import METADATA_TOPIC_ID, uuid_to_text

FOLDER_NAME = "__cluster_metadata-0"
logger = logging.getLogger(__name__)


class FileLog:
    """A `LogStore` in files; satisfies raft.ports.LogStore. Which method belongs to which thread is as with
    `SegmentedLog`; `truncate_fully_to` belongs where `truncate_to` does."""

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
        self._retired = retired or RetiredFiles(fs=fs)
        self._create_folder()
        first_failure = FirstFailure(FETCH_AGAIN)
        point = RecoveryPoint(folder, fs)
        with first_failure:
            opened = open_log(folder, point.offset, fs)
        if on_damage == "raise":
            opened.check_sound()
        self.recovered_cut_bytes = opened.cut_bytes
        self._quorum_records = opened.quorum_records
        self._log = SegmentedLog(
            folder,
            opened.segments,
            opened.epochs,
            opened.log_start_offset,
            point,
            first_failure,
            damage=opened.damage,
            limits=limits,
            cache_bytes=cache_bytes,
            retired=self._retired,
            handle_new_start=self._retire_snapshots,
            fs=fs,
        )
        if opened.start_over_at is not None:
            logger.warning(
                "the log is behind its newest snapshot, and starts over there: %s", opened.start_over_at
            )
            name_again(snapshot_path(folder, opened.start_over_at), fs)
            try:
                self._begin_at(opened.start_over_at, opened.reached_offset)
            except StorageFull:
                # It may be opened again once there is space.
                self._log.close_files()
                raise
        elif not self._log.is_read_only:
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

    # What it holds

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def log_start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def damage(self) -> DamagedRange | None:
        """What is lost of the log, until `mark_repaired`."""
        return self._log.damage

    def summary(self) -> LogSummary:
        return LogSummary(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.end_offset,
            epochs=self._log.epochs,
            snapshots=self.snapshots(),
            quorum_records=self.quorum_records(),
        )

    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Those in the folder now that the log can go on from, the oldest first; as with Kafka, the bootstrap one
        (0, 0) is among them while the log begins at 0."""
        return tuple(
            each for each in list_snapshots(self._folder, self._fs) if each.offset >= self.log_start_offset
        )

    def quorum_records(self) -> tuple[QuorumRecord, ...]:
        """What the bootstrap checkpoint (at offset -1) or the snapshot at the start (at its last offset), and the log,
        say of kraft.version and voters, ascending."""
        return tuple(self._quorum_records)

    def read(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Whole batches from the one that holds `start_offset`, of one segment; empty at the end of the log."""
        return self._log.read(start_offset, max_bytes, end_offset)

    def read_batches(
        self, start_offset: int, max_bytes: int, end_offset: int | None = None
    ) -> Sequence[LogBatch]:
        """As `read`, as values; batches still in memory are not parsed again."""
        return self._log.read_batches(start_offset, max_bytes, end_offset)

    # Writing

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Hand the batches to the kernel; not durable before `flush`. Raises StorageFull with none of them kept, or
        StorageFailed (fatal)."""
        self._log.append(batches)
        for batch in batches:
            if batch.is_control:
                self._quorum_records.extend(quorum_records(batch))

    def flush(self, *, durably: bool = False) -> int:
        """Make all written so far durable; answers the end offset this covers. With `durably`, say so durably too.

        Raises FsyncFailed (fatal), or StorageFull: then it may be tried again.
        """
        return self._log.flush(durably=durably)

    def close(self) -> None:
        """Flush, unless the log has failed, and close every file."""
        self._log.close()

    # Cutting

    def truncate_to(self, end_offset: int) -> None:
        """Drop all at and above `end_offset`, a batch boundary; durable on return. Raises StorageFailed (fatal)."""
        self._log.truncate_to(end_offset)
        while self._quorum_records and self._quorum_records[-1].offset >= end_offset:
            self._quorum_records.pop()

    def truncate_fully_to(self, offset: int) -> None:
        """Drop all, and begin where a snapshot ends that is in the folder already; durable on return.

        After a crash before the end, the next start goes on with it; if the snapshot has turned bad by then, what was
        dropped is damage. Raises StorageFailed (fatal).
        """
        self._begin_at(self._snapshot_at(offset), self._log.at_least_damaged(self.end_offset))

    def _begin_at(self, snapshot: OffsetAndEpoch, reached_offset: int) -> None:
        """`reached_offset`: below it records may have been acknowledged."""
        self.set_damage_aside()
        self._log.start_over(
            snapshot.offset, lambda: mark_replacement(self._folder, snapshot, reached_offset, self._fs)
        )
        with self._log.first_failure:
            self._quorum_records = list(snapshot_quorum_records(self._folder, snapshot, self._fs))
        # A log without segments whose recovery point is above 0 has lost them: see `node.metadata_folder`.
        self.flush(durably=True)
        with self._log.first_failure:
            forget_replacement(self._folder, self._fs)

    def advance_log_start(self, offset: int) -> None:
        """Begin at a later offset, where a snapshot ends. The next flush retires the segments and snapshots that lie
        wholly below; a crash before leaves them to the next advance."""
        self._snapshot_at(offset)
        self._log.advance_start(offset)

    def _snapshot_at(self, offset: int) -> OffsetAndEpoch:
        found = [each for each in list_snapshots(self._folder, self._fs) if each.offset == offset]
        assert found, f"there is no snapshot at offset {offset}, so the log cannot begin there"
        return found[-1]

    def _retire_snapshots(self) -> None:
        """Those below the log's start; the first voters are kept while the first segment may be read from 0 again."""
        for snapshot in list_snapshots(self._folder, self._fs):
            is_still_needed = snapshot == FIRST_VOTERS and self._log.base_offset == 0
            if snapshot.offset < self.log_start_offset and not is_still_needed:
                self._retired.retire(snapshot_path(self._folder, snapshot))
        sync_folder(self._folder, self._fs)

    # Damage

    def set_damage_aside(self) -> None:
        """Have a damaged log take appends again, from the end of what is sound; durable on return.

        What is damaged is kept beside it, with the suffix `.damaged`. Until `mark_repaired`, every start says again
        what is still missing. Raises StorageFull (it may be tried again), StorageFailed or FsyncFailed.
        """
        self._log.set_damage_aside(lambda: forget_replacement(self._folder, self._fs))

    def _set_passed_over_aside(self, damage: DamagedRange) -> None:
        """What lies before the log's first segment; that one is durable by its name."""
        logger.warning(
            "%s. A snapshot stands for them: the log begins at offset %d, with the sound records behind it. What was "
            "before, sound records too, is set aside with the suffix %s",
            replace(damage, end_offset=max(self.log_start_offset, damage.start_offset + 1)),
            self.log_start_offset,
            DAMAGED_SUFFIX,
        )
        with self._log.first_failure:
            own = self._log.segment_paths
            set_segments_aside(
                [path for path in segment_paths(self._folder, self._fs) if path not in own], self._fs
            )

    def mark_repaired(self) -> None:
        """All that may have been lost was fetched again, or turned out never to have been committed."""
        self._log.mark_repaired()
