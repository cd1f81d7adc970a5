"""Opening a log folder: every batch is checked, the indexes and epochs are rebuilt, a torn end is cut.

`_check_torn` decides whether bytes are cut or are damage. A crash can lose any part of what was not yet flushed. That
part is always at the end of the last segment, at or above the recovery point, and it leaves a file that ends early or
sectors that were never written. So bytes are cut only where all of that holds. Sound batches may follow such a hole, as
the disk writes in any order. A whole batch whose checksum does not match, or a hole below the recovery point, may have
been acknowledged: cutting it could lose committed records.

The caller interprets the batches: it passes a `BatchReader`, which gets each sound batch and collects control records,
producers or transactions.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kquorum.storage.durable_files import list_names, remove_file
from kquorum.storage.errors import BatchUnreadable, DamagedRange, LogCorrupted
from kquorum.storage.file_system import POSIX, Content, FileSystem
from kquorum.storage.leader_epoch_checkpoint import Epochs
from kquorum.storage.log_rules import CONTIGUOUS, LogRules
from kquorum.storage.mapped_file import map_file
from kquorum.storage.segment import UNPUBLISHED_SUFFIX, Segment, base_offset_of
from kquorum.storage.torn_tail import (
    end_of_batch,
    end_of_sector,
    has_damaged_length,
    has_hole,
    is_valid_batch,
    valid_batches_behind,
)
from kquorum.storage.unflushed_tail import write_again
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import Damage, ScannedBatch

# Called with each sound batch of one recovery, in order. Raises DecodeError for a batch that it must read and cannot.
BatchReader = Callable[[ScannedBatch], None]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KnownDurable:
    """What is known of the log beside its own bytes: the recovery point, and the epochs of the checkpoint, which are
    complete below it. None where nothing is known."""

    recovery_point: int | None = None
    epochs: Epochs | None = None

    def is_durable(self, offset: int) -> bool:
        return self.recovery_point is not None and offset < self.recovery_point

    def epoch_of(self, offset: int) -> int | None:
        """The leader epoch that the batch at `offset` must have; None if that is not known."""
        if self.epochs is None or not self.is_durable(offset):
            return None
        index = bisect_right(self.epochs, offset, key=lambda entry: entry[1]) - 1
        return self.epochs[index][0] if index >= 0 else None


@dataclass(slots=True)
class RecoveredLog:
    """What recovery found; `segments` ascend, `epochs` are (epoch, start offset).

    If there is `damage`, segments and epochs hold what is sound before it, and no byte at or behind it was changed.
    `is_sound`: every batch that is there is sound; at most some are missing at the end. `is_end_known`: nothing can
    have been lost behind the damage. `is_checkpoint_denied`: the damage is a batch of another epoch than
    `leader-epoch-checkpoint` says.
    """

    segments: list[Segment] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    cut_bytes: int = 0
    damage: DamagedRange | None = None
    is_checkpoint_denied: bool = False
    is_sound: bool = True
    is_end_known: bool = False

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end_offset if self.segments else 0

    def close(self) -> None:
        for segment in self.segments:
            segment.close()


def segment_paths(folder: Path, fs: FileSystem = POSIX) -> list[Path]:
    """The log files of published segments, ascending. Raises StorageFailed."""
    paths = [folder / name for name in list_names(folder, fs) if name.endswith(".log")]
    return [path for path in paths if path.stem.isdecimal()]


def recover_segments(
    folder: Path,
    known: KnownDurable,
    read_batch: BatchReader,
    fs: FileSystem = POSIX,
    rules: LogRules = CONTIGUOUS,
) -> RecoveredLog:
    """Scan all segments of `folder` in order; raises BatchUnreadable, StorageFailed or FsyncFailed."""
    _drop_unpublished(folder, fs)
    return recover_paths(folder, segment_paths(folder, fs), known, read_batch, fs, rules)


def recover_paths(
    folder: Path,
    paths: Sequence[Path],
    known: KnownDurable,
    read_batch: BatchReader,
    fs: FileSystem = POSIX,
    rules: LogRules = CONTIGUOUS,
) -> RecoveredLog:
    """As `recover_segments`, for a log that consists of the segments at `paths`."""
    recovered = RecoveredLog()
    try:
        for path in paths:
            _recover_segment(recovered, path, known, read_batch, fs, rules, is_last=path == paths[-1])
            if recovered.damage is not None:
                break
        # Only for a log without damage: no byte of a damaged one is written, so that nothing destroys evidence.
        if recovered.damage is None and known.recovery_point is not None:
            for segment in recovered.segments:
                write_again(segment, known.recovery_point, fs)
    except BaseException:
        for segment in recovered.segments:
            segment.close()
        raise
    if recovered.damage is None:
        recovered.damage = _missing_at_end(recovered, folder, known)
    else:
        recovered.is_sound = False
        _look_for_end(recovered, paths, known, fs, rules)
    return recovered


def _drop_unpublished(folder: Path, fs: FileSystem) -> None:
    """Remove segments which were begun but never flushed; nothing in them was ever acknowledged."""
    for name in list_names(folder, fs):
        if name.endswith(f".log{UNPUBLISHED_SUFFIX}"):
            path = folder / name
            logger.warning("%s: dropped %d bytes which were never flushed", path, len(map_file(path, fs)))
            remove_file(path, fs)


def _recover_segment(
    recovered: RecoveredLog,
    path: Path,
    known: KnownDurable,
    read_batch: BatchReader,
    fs: FileSystem,
    rules: LogRules,
    *,
    is_last: bool,
) -> None:
    base_offset = base_offset_of(path)
    if recovered.segments and not rules.continues(recovered.segments[-1].end_offset, base_offset):
        expected = recovered.segments[-1].end_offset
        reason = f"the segment begins at offset {base_offset}, but the one before it ends at {expected}"
        recovered.damage = DamagedRange(expected, max(base_offset, expected + 1), path, 0, reason)
        return
    segment = Segment(path, base_offset, fs, rules)
    recovered.segments.append(segment)
    content = map_file(path, fs)
    try:
        damage = _scan(recovered, segment, content, known, read_batch, rules)
        if damage is not None:
            _check_torn(segment, content, damage, known, rules, is_last=is_last)
            recovered.cut_bytes = len(content) - segment.size
            _cut(segment, recovered.cut_bytes)
    except BatchUnreadable:
        raise
    except LogCorrupted as error:
        recovered.damage = error.damage
        return
    # As Kafka does on recovery: the last entry of a time index holds the segment's largest timestamp.
    segment.indexes.add_time_entry()
    segment.open_indexes()
    if not is_last:
        segment.retire()


def _scan(
    recovered: RecoveredLog,
    segment: Segment,
    content: Content,
    known: KnownDurable,
    read_batch: BatchReader,
    rules: LogRules,
) -> Damage | None:
    """Take up all batches up to the first damage."""
    for found in rules.scan(memoryview(content), segment.base_offset):
        if isinstance(found, Damage):
            return found
        _check_order(recovered, segment, found, known, rules)
        try:
            read_batch(found)
        except DecodeError as error:
            raise _unreadable(segment, found, error) from error
        segment.observe(found.header)
    return None


def _unreadable(segment: Segment, found: ScannedBatch, error: DecodeError) -> BatchUnreadable:
    offsets = found.header.base_offset, found.header.next_offset
    kind = "control batch" if found.header.is_control else "batch"
    reason = f"the {kind} has a valid checksum, but {error}"
    return BatchUnreadable(DamagedRange(*offsets, segment.path, found.position, reason))


def _check_order(
    recovered: RecoveredLog, segment: Segment, found: ScannedBatch, known: KnownDurable, rules: LogRules
) -> None:
    header = found.header
    epoch = header.partition_leader_epoch
    last_epoch = recovered.epochs[-1][0] if recovered.epochs else -1
    due_epoch = known.epoch_of(header.base_offset)
    reason = None
    if not rules.continues(segment.end_offset, header.base_offset):
        reason = f"the batch begins at offset {header.base_offset}, but {segment.end_offset} was due"
    elif epoch < last_epoch:
        reason = f"the batch is of leader epoch {epoch}, after one of epoch {last_epoch}"
    elif due_epoch is not None and epoch != due_epoch:
        recovered.is_checkpoint_denied = True
        reason = f"the batch is of leader epoch {epoch}, but leader-epoch-checkpoint says {due_epoch}"
    if reason is not None:
        offsets = segment.end_offset, segment.end_offset + 1
        raise LogCorrupted(DamagedRange(*offsets, segment.path, found.position, reason))
    if epoch > last_epoch:
        recovered.epochs.append((epoch, header.base_offset))


def _check_torn(
    segment: Segment, content: Content, damage: Damage, known: KnownDurable, rules: LogRules, *, is_last: bool
) -> None:
    """Raise LogCorrupted unless the damage is what an interrupted write leaves: then the caller cuts it.

    It is a torn end if it is not below the recovery point, no segment follows, and either the file ends within the
    batch, or a sector of it was never written. A sound batch may follow only such an unwritten sector, and only if the
    recovery point is known.
    """
    offset, position = segment.end_offset, damage.position

    def refuse(reason: str) -> LogCorrupted:
        return LogCorrupted(DamagedRange(offset, offset + 1, segment.path, position, reason))

    if known.is_durable(offset):
        raise refuse(f"{damage.reason}, but all below offset {known.recovery_point} was durable")
    if not is_last:
        raise refuse(f"{damage.reason}, and another segment follows")
    # Without a recovery point, a sound batch behind the damage may have been acknowledged. With one, all below it is
    # known to be flushed, so what follows is a later write that reached the disk first.
    follower = next(valid_batches_behind(content, position, offset, rules), (None, None))[0]
    if follower is not None and known.recovery_point is None:
        raise refuse(f"{damage.reason}, and a valid batch follows at byte {follower}")
    if damage.kind == "torn" and follower is None:
        if has_damaged_length(content, position):
            raise refuse("the batch's length is wrong: its checksum matches all bytes that are left")
        return
    if not has_hole(content, position, _end_of_unwritten(content, damage, follower), offset):
        raise refuse(damage.reason)


def _end_of_unwritten(content: Content, damage: Damage, follower: int | None) -> int:
    """Up to which byte an unwritten sector is looked for: zeros in a sound batch belong to that batch."""
    end = len(content) if follower is None else follower
    if damage.kind == "torn":
        return end
    if is_valid_batch(content, damage.position):
        # The checksum is right, and it does not cover base offset and epoch: only their sector may be unwritten.
        return min(end, end_of_sector(damage.position))
    return min(end, end_of_batch(content, damage.position))


def _look_for_end(
    recovered: RecoveredLog, paths: Sequence[Path], known: KnownDurable, fs: FileSystem, rules: LogRules
) -> None:
    """Widen the damage to all that may have been acknowledged: up to the recovery point, or the last sound batch."""
    damage = recovered.damage
    assert damage is not None
    end_offset = max(damage.end_offset, known.recovery_point or 0)
    last = paths[-1]
    position = damage.position if last == damage.segment else -1
    # Only the last segment is searched: the log's end can stand in no other.
    least_offset = max(damage.start_offset, base_offset_of(last))
    end_offset = max(end_offset, base_offset_of(last))
    content = map_file(last, fs)
    for start, header in valid_batches_behind(content, position, least_offset, rules):
        is_at_end = start + header.size_in_bytes == len(content)
        recovered.is_end_known = is_at_end and header.next_offset >= end_offset
        end_offset = max(end_offset, header.next_offset)
    recovered.damage = DamagedRange(
        damage.start_offset, end_offset, damage.segment, damage.position, damage.reason
    )


def _missing_at_end(recovered: RecoveredLog, folder: Path, known: KnownDurable) -> DamagedRange | None:
    """The offsets below the recovery point that are missing at the end of a log whose batches are all sound."""
    last = recovered.segments[-1] if recovered.segments else None
    end_offset = 0 if last is None else last.end_offset
    point = known.recovery_point
    if point is None or end_offset >= point:
        return None
    path, position = (folder, 0) if last is None else (last.path, last.size)
    reason = (
        f"the log ends here, but all below offset {point} was durable (were files removed? if Apache Kafka has run on "
        "this folder since, it may have cut its log as it must: then remove the file recovery-point)"
    )
    return DamagedRange(end_offset, point, path, position, reason)


def _cut(segment: Segment, cut_bytes: int) -> None:
    logger.warning(
        "%s: cut %d bytes of an interrupted write at byte %d (offset %d)",
        segment.path,
        cut_bytes,
        segment.size,
        segment.end_offset,
    )
    segment.cut_unsound()
    segment.sync()
