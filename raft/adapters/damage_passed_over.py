"""A log that is damaged below a snapshot begins at that snapshot, with all the sound records behind it.

The snapshot stands for what cannot be read, so nothing is missing, and nothing has to be fetched again. That holds only
if the log is the one that the snapshot was taken of, and is sound from where the snapshot ends up to its own end.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from raft.adapters.metadata_recovery import MetadataBatches, recover_metadata_log
from storage.durable_files import remove_file, write_all
from storage.errors import DamagedRange, StorageFailed, is_no_space
from storage.file_system import Content, FileSystem
from storage.mapped_file import map_file
from storage.recovery import KnownDurable, RecoveredLog, segment_paths
from storage.segment import base_offset_of, segment_path, unpublished_path
from storage.torn_tail import valid_batches_behind
from wire.log_batch import OffsetAndEpoch
from wire.log_scan import Damage, scan_batches

_CHUNK_BYTES = 1024 * 1024
logger = logging.getLogger(__name__)


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
