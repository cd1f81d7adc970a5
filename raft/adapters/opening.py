"""What a log folder holds, put together: segments, the snapshot at the log's start, and who votes.

`storage.recovery` checks the batches; `MetadataBatches` reads what they say of the quorum. A log that is damaged below
a snapshot begins at that snapshot, with all the sound records behind it: the snapshot replaces what cannot be read, so
nothing is missing and nothing has to be fetched again. That holds only if the log is the one that the snapshot was
taken of, and is sound from where the snapshot ends up to its own end.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kquorum.raft.adapters.errors import FETCH_AGAIN, QuorumRecordUnreadable
from kquorum.raft.adapters.quorum_checkpoint import read_quorum_checkpoint
from kquorum.raft.adapters.replacement_mark import Replacement, replacement_under_way
from kquorum.raft.adapters.snapshot_files import LEFTOVERS, check_snapshots, snapshot_quorum_records
from kquorum.raft.voters import QuorumRecord, quorum_records
from kquorum.storage.corruption_marker import CorruptionMarker, read_corruption_marker
from kquorum.storage.durable_files import remove_file, write_all
from kquorum.storage.errors import BatchUnreadable, DamagedRange, LogCorrupted, StorageFailed, is_no_space
from kquorum.storage.file_system import POSIX, Content, FileSystem
from kquorum.storage.leader_epoch_checkpoint import FILE_NAME as EPOCH_CHECKPOINT
from kquorum.storage.leader_epoch_checkpoint import epochs_from, read_epochs
from kquorum.storage.mapped_file import map_file
from kquorum.storage.recovery import (
    KnownDurable,
    RecoveredLog,
    recover_paths,
    recover_segments,
    segment_paths,
)
from kquorum.storage.retired_files import remove_leftovers
from kquorum.storage.segment import Segment, base_offset_of, segment_path, unpublished_path
from kquorum.storage.torn_tail import valid_batches_behind
from kquorum.wire.log_batch import OffsetAndEpoch, log_batch
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches


class MetadataBatches:
    """What the batches of one recovery say: `quorum_records`, and whether they bear out their own leader epochs."""

    def __init__(self) -> None:
        self.quorum_records: list[QuorumRecord] = []
        self._epoch = -1
        # Of the epochs before the newest one.
        self._were_certain = True
        # Of the newest epoch: whether it begins with a control batch, as the first batch of every leader is one.
        self._is_led = True
        self._batches = 0

    def read(self, found: ScannedBatch) -> None:
        """A `storage.recovery.BatchReader`."""
        header = found.header
        if header.partition_leader_epoch > self._epoch:
            is_cut = self._epoch < 0 and header.base_offset > 0
            self._were_certain = self.are_epochs_certain
            self._epoch = header.partition_leader_epoch
            self._is_led, self._batches = header.is_control or is_cut, 0
        self._batches += 1
        if header.is_control:
            self.quorum_records.extend(quorum_records(log_batch(bytes(found.data))))

    @property
    def are_epochs_certain(self) -> bool:
        """No checksum covers a batch's epoch: one batch alone is no proof of it."""
        return self._were_certain and (self._epoch < 0 or (self._is_led and self._batches > 1))


def recover_metadata_log(
    folder: Path, known: KnownDurable, fs: FileSystem = POSIX, paths: Sequence[Path] | None = None
) -> tuple[RecoveredLog, MetadataBatches]:
    """Recover the log in `folder`, or the log that consists of these segments.

    Raises QuorumRecordUnreadable, StorageFailed or FsyncFailed.
    """
    batches = MetadataBatches()
    try:
        if paths is None:
            return recover_segments(folder, known, batches.read, fs), batches
        return recover_paths(folder, paths, known, batches.read, fs), batches
    except BatchUnreadable as error:
        raise QuorumRecordUnreadable(error.damage) from error


_CHUNK_BYTES = 1024 * 1024
logger = logging.getLogger(__name__)


# A log that is damaged below a snapshot


def recover_behind(
    folder: Path,
    damage: DamagedRange,
    snapshots: Sequence[OffsetAndEpoch],
    known: KnownDurable,
    fs: FileSystem,
) -> tuple[RecoveredLog, MetadataBatches] | None:
    """The log from the first of these sound snapshots on that ends behind the damage and from which all is sound; None
    if there is none. A part of a damaged segment is copied into a new one, which has no name of its own yet.

    Raises QuorumRecordUnreadable, StorageFailed or FsyncFailed.
    """
    paths = segment_paths(folder, fs)
    for snapshot in sorted(snapshots, key=lambda each: each.offset):
        first = bisect_right(paths, snapshot.offset, key=base_offset_of) - 1
        if first >= 0 and snapshot.offset > damage.start_offset:
            found = _recover_from(folder, snapshot, paths[first:], known, fs)
            if found is not None:
                return found
    return None


def _recover_from(
    folder: Path, snapshot: OffsetAndEpoch, paths: Sequence[Path], known: KnownDurable, fs: FileSystem
) -> tuple[RecoveredLog, MetadataBatches] | None:
    first, *following = paths
    position = _position_to_copy(map_file(first, fs), base_offset_of(first), snapshot.offset)
    if position is None:
        return None
    copy = unpublished_path(folder, snapshot.offset)
    if position > 0 and not _copy(first, position, copy, fs):
        return None
    segments = [first if position == 0 else copy, *following]
    recovered, batches = recover_metadata_log(folder, known, fs, segments)
    if recovered.damage is None and _goes_on_from(snapshot, recovered, known):
        return recovered, batches
    recovered.close()
    if position > 0:
        index = segment_path(folder, snapshot.offset).with_suffix(".index")
        for path in (copy, index, index.with_suffix(".timeindex")):
            remove_file(path, fs)
    return None


def _position_to_copy(content: Content, base_offset: int, offset: int) -> int | None:
    """Where in a segment the batch of this offset begins, if what comes before it is damaged and nothing behind it; 0
    if all before it is sound; None if the batch is not to be found, or is followed by damage.

    What an interrupted write left at the end counts as damage here: in a copy the sectors would be others.
    """
    following = base_offset
    for found in scan_batches(memoryview(content), base_offset=base_offset):
        if isinstance(found, Damage):
            break
        following = found.header.next_offset
        if following >= offset:
            return 0
    else:
        return 0 if following == offset else None
    behind = valid_batches_behind(content, found.position, following)
    start = next((start for start, header in behind if header.base_offset == offset), None)
    if start is None:
        return None
    rest = scan_batches(memoryview(content), start, base_offset=offset)
    return None if any(isinstance(found, Damage) for found in rest) else start


def _copy(source: Path, position: int, target: Path, fs: FileSystem) -> bool:
    """Copy what follows a position of a file; False if there is no space for it. Raises StorageFailed."""
    content = memoryview(map_file(source, fs))
    try:
        descriptor = fs.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            for start in range(position, len(content), _CHUNK_BYTES):
                write_all(descriptor, bytes(content[start : start + _CHUNK_BYTES]), fs)
        finally:
            fs.close(descriptor)
    except OSError as error:
        if not is_no_space(error):
            raise StorageFailed("write", target, error) from error
        logger.warning("no space to copy what is sound in %s from byte %d on", source, position)
        remove_file(target, fs)
        return False
    return True


def _goes_on_from(snapshot: OffsetAndEpoch, recovered: RecoveredLog, known: KnownDurable) -> bool:
    """Whether the log holds records behind the snapshot, and its record before them is the one that the snapshot ends
    with. A record is identified by its offset and its epoch (Raft, section 5.3)."""
    if recovered.end_offset <= snapshot.offset:
        return False
    last = snapshot.offset - 1
    before = [epoch for epoch, start in recovered.epochs if start <= last]
    if before:
        return before[-1] == snapshot.epoch
    # Either the first record behind it is of the same leader, or the checkpoint knows the epoch of the one before.
    return snapshot.epoch in (recovered.epochs[0][0], known.epoch_of(last))


# All that the folder holds


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """`start_over_at`: the newest snapshot is ahead of the log (it was fetched, and the crash came before the log was
    emptied), so the log must be emptied now and begin there. With `damage` the log still lacks something then.

    `reached_offset`: where the log ends, or ended before it was damaged or half emptied. `passed_over`: damage that a
    snapshot stands for, at which the log now begins; the segments that are not among these have to be set aside.
    """

    segments: list[Segment]
    log_start_offset: int
    epochs: list[tuple[int, int]]
    quorum_records: list[QuorumRecord]
    cut_bytes: int
    damage: DamagedRange | None
    start_over_at: OffsetAndEpoch | None = None
    reached_offset: int = 0
    passed_over: DamagedRange | None = None

    def check_sound(self) -> None:
        """Raise LogCorrupted if it is damaged, with every file closed."""
        if self.damage is not None:
            for segment in self.segments:
                segment.close()
            raise LogCorrupted(self.damage, FETCH_AGAIN)


def open_log(folder: Path, recovery_point: int | None, fs: FileSystem = POSIX) -> OpenedLog:
    """Read and check it all. Raises QuorumRecordUnreadable, QuorumCheckpointDamaged, StorageFailed or FsyncFailed.

    What was on its way out of the folder goes only if the log is sound without it.
    """
    opened = _read_log(folder, recovery_point, fs)
    if opened.damage is None:
        remove_leftovers(folder, LEFTOVERS, fs)
    return opened


def _read_log(folder: Path, recovery_point: int | None, fs: FileSystem) -> OpenedLog:
    first_voters = read_quorum_checkpoint(folder, fs)
    known = KnownDurable(recovery_point, read_epochs(folder, fs))
    recovered, batches = _recover(folder, known, fs)
    snapshots = tuple(each for each in check_snapshots(folder, fs) if each.offset > 0)
    newest = snapshots[-1] if snapshots else None
    replacement = _replacement(folder, recovered, fs)
    is_half_emptied = replacement is not None and replacement.can_go_on_at(newest)
    marker = read_corruption_marker(folder, fs)
    passed_over = None
    if replacement is None and marker is None and recovered.damage is not None and not recovered.is_sound:
        behind = recover_behind(folder, recovered.damage, snapshots, known, fs)
        if behind is not None:
            recovered.close()
            passed_over = recovered.damage
            recovered, batches = behind
    if replacement is not None and not is_half_emptied:
        marker = _with_lost(marker, replacement.as_damage(recovered.end_offset))
    if newest is not None and (is_half_emptied or _is_ahead(newest, recovered, marker)):
        missing_until = 0 if recovered.damage is None else recovered.damage.end_offset
        marked_offset = 0 if replacement is None else replacement.log_end_offset
        reached_offset = max(recovered.end_offset, missing_until, marked_offset)
        recovered.damage = None if marker is None else marker.with_log(folder, newest.offset, missing_until)
        return _opened(
            recovered, batches, 0, first_voters, start_over_at=newest, reached_offset=reached_offset
        )
    if marker is not None:
        recovered.damage = _with_marker(recovered, marker, folder)
    if newest is not None:
        recovered.damage = _up_to_snapshot(recovered.damage, newest)
    start = _snapshot_at_start(recovered, snapshots)
    if start is not None:
        before = snapshot_quorum_records(folder, start, fs)
        opened = _opened(recovered, batches, start.offset, before)
        return replace(opened, passed_over=passed_over)
    if newest is None if not recovered.segments else recovered.segments[0].base_offset == 0:
        return _opened(recovered, batches, 0, first_voters)
    before = first_voters if newest is None else snapshot_quorum_records(folder, newest, fs)
    return _without_its_start(recovered, newest, before)


def _recover(folder: Path, known: KnownDurable, fs: FileSystem) -> tuple[RecoveredLog, MetadataBatches]:
    """What is in the segments. Their epochs stand outside every checksum, and so does `leader-epoch-checkpoint`: where
    it denies them, they are believed if they bear each other out, for it can be rebuilt and they cannot."""
    recovered, batches = recover_metadata_log(folder, known, fs)
    if not recovered.is_checkpoint_denied:
        return recovered, batches
    recovered.close()
    without, batches = recover_metadata_log(folder, replace(known, epochs=None), fs)
    if without.damage is None and batches.are_epochs_certain:
        logger.warning("%s does not agree with the log, and is written again", folder / EPOCH_CHECKPOINT)
        return without, batches
    without.close()
    return recover_metadata_log(folder, known, fs)


def _replacement(folder: Path, recovered: RecoveredLog, fs: FileSystem) -> Replacement | None:
    """That of the log by a snapshot, if it was broken off after it had removed something."""
    found = replacement_under_way(folder, fs)
    if found is None or found.is_finished(recovered.segments[0].base_offset if recovered.segments else None):
        return None
    # Were anything removed, the log would end sooner: its last segment is the first to go.
    is_untouched = recovered.damage is None and recovered.end_offset >= found.log_end_offset
    return None if is_untouched and found.snapshot is not None else found


def _with_lost(marker: CorruptionMarker | None, lost: CorruptionMarker) -> CorruptionMarker:
    if marker is None:
        return lost
    return replace(marker, end_offset=max(marker.end_offset, lost.end_offset))


def _with_marker(recovered: RecoveredLog, marker: CorruptionMarker, folder: Path) -> DamagedRange:
    """The damage that there is, with what was lost before; found at the log's end, where all that is there is sound."""
    damage = recovered.damage
    if damage is None or recovered.is_sound:
        return marker.with_log(folder, recovered.end_offset, 0 if damage is None else damage.end_offset)
    return replace(damage, end_offset=max(damage.end_offset, marker.end_offset))


def _up_to_snapshot(damage: DamagedRange | None, newest: OffsetAndEpoch) -> DamagedRange | None:
    """The damage, which ends no sooner than the newest snapshot: what that holds was committed, and may have been here.

    A start that emptied the log for the snapshot, and was broken off, has taken the recovery point and the segments
    behind the damage, which said how far it went.
    """
    if damage is None or damage.end_offset >= newest.offset:
        return damage
    return replace(damage, end_offset=newest.offset, known_end_offset=None)


def _is_ahead(newest: OffsetAndEpoch, recovered: RecoveredLog, marker: CorruptionMarker | None) -> bool:
    """Whether a snapshot stands for more than the log and for all that is damaged in it (rule R10.3).

    Of damage whose end is not known, more may have been acknowledged than the snapshot holds: that must be said first.
    """
    damage = recovered.damage
    if damage is not None and (marker is None or not recovered.is_sound):
        is_covered = recovered.is_end_known and damage.end_offset <= newest.offset
        if marker is not None or not is_covered:
            return False
    return newest.offset > recovered.end_offset or _holds_another_record(newest, recovered)


def _holds_another_record(newest: OffsetAndEpoch, recovered: RecoveredLog) -> bool:
    """Whether the log has a tail that was never committed where the snapshot ends: a snapshot is always of what was.

    It was fetched and had its name when the power went, and the log had not been dropped yet. The tail may be of a
    later epoch than the snapshot: that of a leader which died with it.
    """
    last = newest.offset - 1
    if not recovered.segments or not recovered.segments[0].base_offset <= last < recovered.end_offset:
        return False
    return [epoch for epoch, start in recovered.epochs if start <= last][-1:] != [newest.epoch]


def _snapshot_at_start(recovered: RecoveredLog, snapshots: Sequence[OffsetAndEpoch]) -> OffsetAndEpoch | None:
    """The snapshot at which the log begins, if offset 0 is gone: the first one that its segments go on from.

    Where the start stood within the first segment is kept nowhere, by Kafka neither.
    """
    base_offset = recovered.segments[0].base_offset if recovered.segments else 0
    if base_offset == 0:
        return None
    usable = [each for each in snapshots if base_offset <= each.offset <= recovered.end_offset]
    return min(usable, key=lambda each: each.offset, default=None)


def _opened(
    recovered: RecoveredLog,
    batches: MetadataBatches,
    start_offset: int,
    before: Sequence[QuorumRecord],
    start_over_at: OffsetAndEpoch | None = None,
    reached_offset: int = 0,
) -> OpenedLog:
    logged = [record for record in batches.quorum_records if record.offset >= start_offset]
    return OpenedLog(
        segments=recovered.segments,
        log_start_offset=start_offset,
        epochs=epochs_from(recovered.epochs, start_offset, recovered.end_offset),
        quorum_records=[*before, *logged],
        cut_bytes=recovered.cut_bytes,
        damage=recovered.damage,
        start_over_at=start_over_at,
        reached_offset=reached_offset,
    )


def _without_its_start(
    recovered: RecoveredLog, newest: OffsetAndEpoch | None, before: Sequence[QuorumRecord]
) -> OpenedLog:
    """Segments that nothing leads up to are of no use: the log is as good as lost from the newest snapshot on."""
    start_offset = 0 if newest is None else newest.offset
    damage = recovered.damage
    end_offset = max(start_offset + 1, recovered.end_offset if damage is None else damage.end_offset)
    if recovered.segments:
        first = recovered.segments[0]
        reason = (
            f"the log begins at offset {first.base_offset}, but no sound snapshot ends there or later within it, so "
            "what was before is not known (copy the snapshot from another node, if there is one)"
        )
        path, position = first.path, 0
        if damage is not None and newest is not None and newest.offset >= first.base_offset:
            sound_end = recovered.end_offset
            reason = (
                f"{damage.reason}; what is sound ends at offset {sound_end}, below where the snapshot ends"
            )
            path, position = damage.segment, damage.position
        damage = DamagedRange(start_offset, end_offset, path, position, reason)
    else:
        assert damage is not None, "a log without segments that begins at its snapshot"
        damage = replace(damage, start_offset=start_offset, end_offset=end_offset, known_end_offset=None)
    for segment in recovered.segments:
        segment.close()
    return OpenedLog([], start_offset, [], [*before], 0, damage)
