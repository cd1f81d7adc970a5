"""A log of the storage alone, as any owner of one would write and recover it."""

from collections.abc import Sequence
from pathlib import Path

from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.leader_epoch_checkpoint import read_epochs
from kquorum.storage.recovery import BatchReader, KnownDurable, RecoveredLog, recover_segments
from kquorum.storage.recovery_point import RecoveryPoint, read_recovery_point
from kquorum.storage.segment import SegmentLimits
from kquorum.storage.segment_list import SegmentList, first_segment
from kquorum.wire.log_batch import LogBatch, build_batch, log_batch
from kquorum.wire.log_scan import ScannedBatch
from tests.support.fault_file_system import FaultFileSystem

FIRST = "00000000000000000000.log"


def batch(offset: int, epoch: int = 1, size: int = 60) -> LogBatch:
    return build_batch(offset, epoch, 1_000_000 + offset, [(None, bytes([offset % 250 + 1]) * size)])


def new_log(folder: Path, segment_bytes: int = 10_000_000, fs: FileSystem = POSIX) -> SegmentList:
    return SegmentList(folder, SegmentLimits(segment_bytes=segment_bytes), [first_segment(folder, 0, fs)], fs)


def flush(log: SegmentList) -> None:
    dirty, folder_is_dirty = log.take_dirty()
    log.make_durable(dirty, folder_is_dirty=folder_is_dirty)


def write_log(
    folder: Path, batches: Sequence[LogBatch], segment_bytes: int = 10_000_000, durable: int | None = 0
) -> bytes:
    """Write and close a log; answers its first segment. All below `durable` is said to be flushed; None for a log that
    says nothing of it, such as Kafka's."""
    log = new_log(folder, segment_bytes)
    log.append(batches)
    flush(log)
    log.close()
    set_recovery_point(folder, durable)
    return (folder / FIRST).read_bytes()


def set_recovery_point(folder: Path, offset: int | None) -> None:
    (folder / "recovery-point").unlink(missing_ok=True)
    if offset is not None:
        point = RecoveryPoint(folder)
        point.put(offset)
        point.close()


def pass_over(_found: ScannedBatch) -> None:
    """A `BatchReader` that wants nothing."""


def recover(folder: Path, read_batch: BatchReader = pass_over, fs: FileSystem = POSIX) -> RecoveredLog:
    """What a start finds, with its files open."""
    known = KnownDurable(read_recovery_point(folder, fs), read_epochs(folder, fs))
    return recover_segments(folder, known, read_batch, fs)


FOLDER = Path("/disk/log")


def recovered_batches(fs: FaultFileSystem, folder: Path = FOLDER) -> list[LogBatch]:
    """The batches that a start finds in the folder."""
    found: list[LogBatch] = []
    recovered = recover(folder, lambda each: found.append(log_batch(bytes(each.data))), fs)
    recovered.close()
    assert recovered.damage is None
    return found
