"""Opening a partition folder: finishing what a crash interrupted, and recovering what may not have reached the disk.

After a stop in order the files are trusted, and only the end of the last segment is read. Otherwise every batch from
the segment that holds the recovery point on is checked, their indexes are built again, and the log is cut at the first
batch that is not sound; what lies behind it is deleted, as Kafka does: replication has those records, or they were
never promised. That is not the metadata log's rule, which refuses damage below its recovery point.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kquorum.broker.adapters.log.producer_snapshots import ProducerSnapshots
from kquorum.broker.log.errors import CorruptRecord, LogError
from kquorum.broker.log.leader_epochs import LeaderEpochs
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.producer_state import ProducerStates
from kquorum.storage.durable_files import list_names, read_if_there, remove_file, sync_folder
from kquorum.storage.errors import StorageFull, storage_failure
from kquorum.storage.file_system import FileSystem
from kquorum.storage.leader_epoch_checkpoint import FILE_NAME as EPOCHS_FILE
from kquorum.storage.leader_epoch_checkpoint import decode_epochs
from kquorum.storage.mapped_file import map_file
from kquorum.storage.open_segments import OpenSegments
from kquorum.storage.partition_segment import BadBatch, PartitionSegment
from kquorum.wire.data_batch import data_headers
from kquorum.wire.record_batch import BatchHeader

logger = logging.getLogger("broker.log")
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
_INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
_SEGMENT_SUFFIXES = (".log", *_INDEX_SUFFIXES)


@dataclass(slots=True)
class LoadedLog:
    segments: list[PartitionSegment]
    log_start_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: ProducerSnapshots
    is_epochs_file_due: bool
    """The file does not say what `epochs` says."""

    @property
    def log_end_offset(self) -> int:
        return self.segments[-1].next_offset


@dataclass(slots=True)
class Loading:
    """One opening of one folder. `recovery_point` and `log_start_offset` are the checkpoints' values."""

    folder: Path
    fs: FileSystem
    config: LogConfig
    producers: ProducerStates
    now_ms: int
    is_clean: bool
    recovery_point: int = 0
    log_start_offset: int = 0
    was_cleaned: bool = False
    """The log has been compacted before, whatever its topic's policy is now."""
    open_segments: OpenSegments | None = None
    present: set[str] = field(default_factory=set)
    """The names that were in the folder."""

    def load(self) -> LoadedLog:
        """Raises StorageFailed, FsyncFailed, or ValueError for a file whose name cannot be one of a log."""
        finish_replacements(self.folder, self.fs)
        segments = self._open_segments()
        if not segments:
            segments = [self._created(self.log_start_offset)]
        log_start = max(self.log_start_offset, segments[0].base_offset)
        epochs, is_due = self._epochs(segments)
        snapshots = ProducerSnapshots(self.folder, self.fs)
        snapshots.remove_strays({each.base_offset for each in segments}, segments[-1].base_offset)
        scanned = self._to_recover(segments)
        before = epochs.entries
        if scanned:
            self._recover(segments, scanned, log_start, epochs, snapshots)
        else:
            segments[-1].find_end()
            self._load_producers(segments, log_start, snapshots)
        if segments[-1].next_offset < log_start:
            segments = self._start_over(segments, log_start, epochs, snapshots)
        end = segments[-1].next_offset
        snapshots.remove([offset for offset in snapshots.offsets if offset > end])
        epochs.cut_end(end)
        epochs.cut_start(log_start)
        point = end if self.is_clean else min(self.recovery_point, end)
        return LoadedLog(
            segments, log_start, point, epochs, self.producers, snapshots, is_due or before != epochs.entries
        )

    # Files

    def _open_segments(self) -> list[PartitionSegment]:
        names = list_names(self.folder, self.fs)
        self.present = present = set(names)
        segments = []
        for name in names:
            stem, dot, rest = name.partition(".")
            suffix = dot + rest
            if suffix not in _SEGMENT_SUFFIXES:
                continue
            if not stem.isdecimal():
                raise ValueError(
                    f"{self.folder / name} is not a file of a log: its name does not begin with an offset"
                )
            if suffix == ".log":
                segments.append(self._segment(int(stem)))
                segments[-1].load(self.now_ms)
            elif f"{stem}.log" not in present:
                logger.warning("%s has no log file beside it: removed", self.folder / name)
                remove_file(self.folder / name, self.fs)
        return segments

    def _segment(self, base_offset: int) -> PartitionSegment:
        return PartitionSegment(
            self.folder,
            base_offset,
            self.fs,
            index_interval_bytes=self.config.index_interval_bytes,
            open_segments=self.open_segments,
        )

    def _created(self, base_offset: int) -> PartitionSegment:
        segment = self._segment(base_offset)
        segment.create(self.now_ms)
        return segment

    def _start_over(
        self,
        segments: Sequence[PartitionSegment],
        log_start: int,
        epochs: LeaderEpochs,
        snapshots: ProducerSnapshots,
    ) -> list[PartitionSegment]:
        """The log ends before it may begin: nothing of it counts (KAFKA-8306)."""
        logger.warning(
            "%s ends at offset %d, before its start %d: it is emptied",
            self.folder,
            segments[-1].next_offset,
            log_start,
        )
        for segment in segments:
            segment.remove()
        epochs.clear()
        snapshots.remove(snapshots.offsets)
        self.producers.truncate(log_start)
        return [self._created(log_start)]

    def _epochs(self, segments: Sequence[PartitionSegment]) -> tuple[LeaderEpochs, bool]:
        """What the checkpoint says, and whether it must be written: a file that is lost or makes no sense is built
        again from the batches."""
        path = self.folder / EPOCHS_FILE
        content = read_if_there(path, self.fs)
        if content is not None:
            try:
                return LeaderEpochs(decode_epochs(content)), False
            except ValueError as error:
                logger.warning("%s is built again from the log: %s", path, error)
        epochs = LeaderEpochs()
        for segment in segments:
            try:
                for _, header in segment.headers(0):
                    _assign_if_newer(epochs, header.partition_leader_epoch, header.base_offset)
            except BadBatch:
                break
        return epochs, content is not None or bool(epochs.entries)

    # Recovery

    def _to_recover(self, segments: Sequence[PartitionSegment]) -> set[int]:
        """The segments to be read through: those without a sound index, and after a crash all from the recovery point
        on, the last one always."""
        found = {index for index, segment in enumerate(segments) if not self._has_indexes(segment)}
        if not self.is_clean:
            following = [each.base_offset for each in segments[1:]]
            found |= {i for i, end in enumerate(following) if end > self.recovery_point} | {len(segments) - 1}
        elif not _ends_whole(segments[-1]):
            found.add(len(segments) - 1)
        return found

    def _recover(
        self,
        segments: list[PartitionSegment],
        scanned: set[int],
        log_start: int,
        epochs: LeaderEpochs,
        snapshots: ProducerSnapshots,
    ) -> None:
        first = min(scanned)
        base = segments[first].base_offset
        start = snapshots.load_newest(0, base, self._load_snapshot)
        if start is None:
            self.producers.truncate(log_start)
        self.replay(segments[:first], base)
        for index, segment in enumerate(segments):
            if index < first:
                continue
            self._take_snapshot(segment.base_offset, snapshots)
            if index not in scanned:
                segment.find_end()
                self.replay([segment], segment.next_offset)
                continue
            cut_bytes = self._recover_segment(segment, log_start, epochs)
            if index + 1 == len(segments) or self.is_clean:
                continue
            following = segments[index + 1].base_offset
            if following <= self.recovery_point:
                continue  # it was flushed
            if cut_bytes or (following > segment.next_offset and not self._may_have_gaps):
                self._remove_from(segments, index + 1, snapshots)
                break
        self._take_snapshot(segments[-1].next_offset, snapshots)

    @property
    def _may_have_gaps(self) -> bool:
        """Compaction takes records away, also the last ones of a segment. In another log a gap between two segments is
        what a power cut took, at the end of a batch."""
        return self.config.is_compacted or self.was_cleaned

    def _remove_from(
        self, segments: list[PartitionSegment], first: int, snapshots: ProducerSnapshots
    ) -> None:
        """From the last one down, and each durably: were a later one to outlive an earlier one, the next start could
        find a hole between two segments, and in a compacted log not know it."""
        while len(segments) > first:
            lost = segments.pop()
            logger.warning("%s follows what was cut: removed", lost.path)
            lost.remove()
            snapshots.remove((lost.base_offset,))
            sync_folder(self.folder, self.fs)

    def _recover_segment(self, segment: PartitionSegment, log_start: int, epochs: LeaderEpochs) -> int:
        """Read a segment through, build its indexes, and cut what is not sound: how many bytes."""
        length = segment.size
        reason = ""
        segment.begin_recovery()
        try:
            for _, header, data in segment.scan():
                _assign_if_newer(epochs, header.partition_leader_epoch, header.base_offset)
                if header.next_offset > log_start:
                    self._count(segment, header, data)
                segment.observe(header)
        except BadBatch as error:
            reason = str(error)
        cut_bytes = length - segment.size
        if cut_bytes:
            logger.warning(
                "%s: cut the last %d bytes, at offset %d: %s",
                segment.path,
                cut_bytes,
                segment.next_offset,
                reason,
            )
        segment.end_recovery()
        return cut_bytes

    def _has_indexes(self, segment: PartitionSegment) -> bool:
        aborted = segment.aborted
        return (
            segment.offsets.path.name in self.present
            and segment.times.path.name in self.present
            and (aborted.path.name not in self.present or aborted.is_plausible(segment.base_offset))
        )

    # Producers

    def _load_snapshot(self, content: bytes, offset: int) -> None:
        self.producers.load_snapshot(content, offset=offset, now_ms=self.now_ms)

    def _load_producers(
        self, segments: Sequence[PartitionSegment], log_start: int, snapshots: ProducerSnapshots
    ) -> None:
        """After a stop in order: from the newest snapshot, and the batches behind it."""
        end = segments[-1].next_offset
        last_bases = [each.base_offset for each in segments[-2:]]
        if not snapshots.offsets:
            # A folder of a broker that took none: what its producers did before is not looked up (as in Kafka).
            self.producers.truncate(end)
            for offset in (*last_bases, end):
                self._take_snapshot(offset, snapshots)
            return
        self.rebuild_producers(segments, log_start, snapshots)

    def rebuild_producers(
        self, segments: Sequence[PartitionSegment], log_start: int, snapshots: ProducerSnapshots
    ) -> None:
        """Have the producers say what the whole log says: from the newest snapshot that fits, and what lies behind it.
        Snapshots that are missing at the last segments' bases, and at the end, are written on the way."""
        end = segments[-1].next_offset
        if snapshots.load_newest(log_start, end, self._load_snapshot) is None:
            self.producers.truncate(log_start)
        for offset in (*(each.base_offset for each in segments[-2:]), end):
            if offset > self.producers.end_offset:
                self.replay(segments, offset)
                self._take_snapshot(offset, snapshots)

    def replay(self, segments: Sequence[PartitionSegment], end: int) -> None:
        """Count the batches from the state's end offset up to `end`."""
        for index, segment in enumerate(segments):
            start = max(self.producers.end_offset, segment.base_offset)
            is_before = index + 1 < len(segments) and segments[index + 1].base_offset <= start
            if start >= end or is_before or segment.is_empty:
                continue
            for position, header in segment.headers(segment.offsets.position_at_or_before(start)):
                if header.base_offset >= end:
                    break
                if header.last_offset >= start:
                    needed = header.size_in_bytes if header.is_control else 0
                    self._count(None, header, segment.read_at(position, needed))
        self.producers.end_offset = max(self.producers.end_offset, end)

    def _count(self, segment: PartitionSegment | None, header: BatchHeader, data: bytes | memoryview) -> None:
        """Let the producers know of a batch; a transaction that it aborts goes to the index of `segment`. Raises
        BadBatch for a control record that cannot be read."""
        try:
            prepared = self.producers.prepare((header,), data, origin=AppendOrigin.REPLICATION)
        except CorruptRecord as error:
            raise BadBatch(segment.size if segment is not None else 0, str(error)) from error
        except LogError as error:
            logger.warning("%s, offset %d: %s", self.folder, header.base_offset, error)
            return
        for entry in self.producers.apply(prepared, header.next_offset):
            if segment is not None:
                segment.aborted.add_entry(
                    entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
                )

    def _take_snapshot(self, offset: int, snapshots: ProducerSnapshots) -> None:
        if offset > max(snapshots.latest, 0):
            try:
                snapshots.write(offset, self.producers.snapshot_bytes())
            except StorageFull as error:
                # It spares a later opening some reading, and no more.
                logger.warning("%s", error)


def _assign_if_newer(epochs: LeaderEpochs, epoch: int, offset: int) -> None:
    if epoch >= 0 and (epochs.latest is None or epoch > epochs.latest):
        epochs.assign(epoch, offset)


def _ends_whole(segment: PartitionSegment) -> bool:
    """Whether the last batch of a segment is whole, and its indexes can be those of the log."""
    try:
        if not (segment.offsets.is_plausible(segment.size) and segment.times.is_plausible()):
            return False
        segment.find_end()
    except BadBatch:
        return False
    return True


def finish_replacements(folder: Path, fs: FileSystem) -> None:
    """End what a crash interrupted: remove files that were given up, and put the result of a compaction in its place.

    The new segments are written as `.cleaned` and renamed to `.swap`, from the highest base offset down; the old ones
    are removed; then `.swap` goes. So a `.swap` that has a `.cleaned` below or at its base is of an unfinished set.
    """
    names = list_names(folder, fs)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    least_cleaned = min((_base_of(name) for name in cleaned), default=None)
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    unfinished = [name for name in swaps if least_cleaned is not None and _base_of(name) >= least_cleaned]
    if unfinished:
        _remove_durably(folder, fs, unfinished)
        swaps = [name for name in swaps if name not in unfinished]
    for name in names:
        if name.endswith(DELETED_SUFFIX) or name in cleaned:
            remove_file(folder / name, fs)
    if swaps:
        _finish_swaps(folder, fs, names, swaps)


def _remove_durably(folder: Path, fs: FileSystem, names: Sequence[str]) -> None:
    """Before what comes next: the names alone say how far a replacement came."""
    for name in names:
        remove_file(folder / name, fs)
    sync_folder(folder, fs)


def _finish_swaps(folder: Path, fs: FileSystem, names: Sequence[str], swaps: Sequence[str]) -> None:
    logs = [name for name in swaps if name.endswith(f".log{SWAP_SUFFIX}")]
    if logs:
        start = min(map(_base_of, logs))
        end = max(_end_of_swap(folder / name, fs) for name in logs)
        _remove_durably(
            folder,
            fs,
            [
                name
                for name in names
                if _segment_suffix(name) in _SEGMENT_SUFFIXES and start <= _base_of(name) < end
            ],
        )
    # The logs first: an index whose log has no final name yet would be one without a log.
    for name in sorted(swaps, key=lambda each: each not in logs):
        try:
            fs.rename(folder / name, folder / name.removesuffix(SWAP_SUFFIX))
        except OSError as error:
            raise storage_failure("rename", folder / name, error) from error
    sync_folder(folder, fs)


def _segment_suffix(name: str) -> str:
    stem, dot, rest = name.partition(".")
    return dot + rest if stem.isdecimal() else ""


def _end_of_swap(path: Path, fs: FileSystem) -> int:
    end = _base_of(path.name)
    for _, header in data_headers(memoryview(map_file(path, fs))):
        end = header.next_offset
    return end


def _base_of(name: str) -> int:
    return int(name.partition(".")[0])
