"""Opening a log folder: every batch is checked, the indexes and epochs are rebuilt, a torn end is cut.

What tells an interrupted write from damage: a crash can lose any part of what was not yet flushed, but that part
is always the end of the last segment. So bytes are cut only there, only when no valid batch follows them, and only
when they look like a write that did not finish: cut short, or with a disk sector still empty. A whole batch
whose checksum does not match may have been committed; cutting it could lose what this node acknowledged.
"""

import logging
import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path

from raft.adapters.errors import LogCorrupted, StorageFailed
from raft.adapters.segment import UNPUBLISHED_SUFFIX, Segment
from raft.batches import log_batch
from raft.quorum_records import QuorumRecord, quorum_records
from wire.errors import DecodeError
from wire.log_scan import Damage, ScannedBatch, scan_batches
from wire.primitives import Buffer
from wire.record_batch import check_batch, read_batch_header

_SECTOR_BYTES = 512
_EMPTY_RUN_MIN = 16
# Producer id, epoch and base sequence of every KRaft batch, and where they stand in its header.
_NO_PRODUCER = b"\xff" * 14
_NO_PRODUCER_POSITION = 43
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveredLog:
    """What recovery found; `segments` ascend, `epochs` are (epoch, start offset), `quorum_records` who votes."""

    segments: list[Segment] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    quorum_records: list[QuorumRecord] = field(default_factory=list)
    cut_bytes: int = 0


def recover_segments(folder: Path) -> RecoveredLog:
    """Scan all segments of `folder` in order; raises LogCorrupted, StorageFailed or FsyncFailed."""
    recovered = RecoveredLog()
    _drop_unpublished(folder)
    paths = sorted(path for path in folder.glob("*.log") if path.stem.isdecimal())
    try:
        for path in paths:
            _recover_segment(recovered, path, is_last=path == paths[-1])
    except BaseException:
        for segment in recovered.segments:
            segment.close()
        raise
    return recovered


def _drop_unpublished(folder: Path) -> None:
    """Remove segments which were begun but never flushed; nothing in them was ever acknowledged."""
    for path in folder.glob(f"*.log{UNPUBLISHED_SUFFIX}"):
        logger.warning("%s: dropped %d bytes which were never flushed", path, path.stat().st_size)
        path.unlink()


def _recover_segment(recovered: RecoveredLog, path: Path, *, is_last: bool) -> None:
    base_offset = int(path.stem)
    if recovered.segments and recovered.segments[-1].end_offset != base_offset:
        expected = recovered.segments[-1].end_offset
        reason = f"the segment begins at offset {base_offset}, but the one before it ends at {expected}"
        raise LogCorrupted(path, 0, expected, reason)
    segment = Segment(path, base_offset)
    recovered.segments.append(segment)
    content = _map(path)
    damage = _scan(recovered, segment, content)
    if damage is not None:
        _check_torn(segment, content, damage, is_last=is_last)
        recovered.cut_bytes = len(content) - segment.size
        _cut(segment, recovered.cut_bytes)
    segment.indexes.add_time_entry()
    segment.open_indexes()
    if not is_last:
        segment.retire()


def _map(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise StorageFailed("read", path, error) from error


def _scan(recovered: RecoveredLog, segment: Segment, content: memoryview) -> Damage | None:
    """Take up all batches up to the first damage."""
    for found in scan_batches(content, base_offset=segment.base_offset):
        if isinstance(found, Damage):
            return found
        _check_order(recovered, segment, found)
        if found.header.is_control:
            _take_quorum_records(recovered, segment, found)
        segment.observe(found.header)
    return None


def _take_quorum_records(recovered: RecoveredLog, segment: Segment, found: ScannedBatch) -> None:
    try:
        recovered.quorum_records.extend(quorum_records(log_batch(bytes(found.data))))
    except DecodeError as error:
        reason = f"the control batch has a valid checksum, but {error}"
        raise LogCorrupted(segment.path, found.position, found.header.base_offset, reason) from error


def _check_order(recovered: RecoveredLog, segment: Segment, found: ScannedBatch) -> None:
    header = found.header
    if header.base_offset != segment.end_offset:
        reason = f"the batch begins at offset {header.base_offset}, but {segment.end_offset} was due"
        raise LogCorrupted(segment.path, found.position, segment.end_offset, reason)
    last_epoch = recovered.epochs[-1][0] if recovered.epochs else -1
    epoch = header.partition_leader_epoch
    if epoch < last_epoch:
        reason = f"the batch is of leader epoch {epoch}, after one of epoch {last_epoch}"
        raise LogCorrupted(segment.path, found.position, header.base_offset, reason)
    if epoch > last_epoch:
        recovered.epochs.append((epoch, header.base_offset))


def _check_torn(segment: Segment, content: memoryview, damage: Damage, *, is_last: bool) -> None:
    """Raise LogCorrupted unless the damage is what an interrupted write leaves."""

    def refuse(reason: str) -> LogCorrupted:
        return LogCorrupted(segment.path, damage.position, segment.end_offset, reason)

    if not is_last:
        raise refuse(f"{damage.reason}, and another segment follows")
    if _is_valid_batch(content, damage.position):
        # Sound in itself, but not the batch that belongs here: base offset and epoch are outside the checksum.
        raise refuse(damage.reason)
    follower = _valid_batch_behind(content, damage.position, segment.end_offset)
    if follower is not None:
        raise refuse(f"{damage.reason}, and a valid batch follows at byte {follower}")
    if damage.kind != "torn" and not _has_empty_sector(content, damage.position):
        raise refuse(damage.reason)


def _valid_batch_behind(content: memoryview, position: int, offset: int) -> int | None:
    """Where a valid batch of a later offset begins behind a damaged one; None when there is none.

    A damaged length field makes a batch in the middle look like a torn end, so the scan alone cannot tell.
    """
    rest = bytes(content[position:])
    found = rest.find(_NO_PRODUCER, _NO_PRODUCER_POSITION + 1)
    while found >= 0:
        start = found - _NO_PRODUCER_POSITION
        if _is_valid_batch(rest, start) and read_batch_header(rest, start).base_offset >= offset:
            return position + start
        found = rest.find(_NO_PRODUCER, found + 1)
    return None


def _is_valid_batch(data: Buffer, position: int) -> bool:
    try:
        check_batch(data, position)
    except DecodeError:
        return False
    return True


def _has_empty_sector(content: memoryview, position: int) -> bool:
    """Whether a disk sector (or the part of one) behind `position` was never written."""
    while position < len(content):
        end = min(len(content), (position // _SECTOR_BYTES + 1) * _SECTOR_BYTES)
        if end - position >= _EMPTY_RUN_MIN and not any(content[position:end]):
            return True
        position = end
    return False


def _cut(segment: Segment, cut_bytes: int) -> None:
    logger.warning(
        "%s: cut %d bytes of an interrupted write at byte %d (offset %d)",
        segment.path,
        cut_bytes,
        segment.size,
        segment.end_offset,
    )
    try:
        os.ftruncate(segment.descriptor, segment.size)
    except OSError as error:
        raise StorageFailed("truncate", segment.path, error) from error
    segment.sync()
