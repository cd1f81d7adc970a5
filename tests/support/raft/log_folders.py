"""Log folders made for a test, and what a crash or a bad disk does to them."""

from pathlib import Path

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.control_records import SnapshotFooterRecord, SnapshotHeaderRecord, encode_control_record
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch, parse_batches
from kquorum.wire.record_batch import write_batch
from tests.support.storage.log_parts import batch

FIRST = "00000000000000000000.log"


def batches(start: int, end: int, epoch: int = 1, size: int = 60) -> list[LogBatch]:
    return [batch(offset, epoch, size) for offset in range(start, end)]


def write_log(
    folder: Path, written: list[LogBatch], *, segment_bytes: int = 10_000_000, durable: int | None = None
) -> bytes:
    """Write and close a log; answers its first segment. `durable` lowers the recovery point, as if no more had been
    flushed before a crash."""
    log = FileLog(folder, SegmentLimits(segment_bytes=segment_bytes))
    log.append(written)
    log.close()
    if durable is not None:
        set_recovery_point(folder, durable)
    return (folder / FIRST).read_bytes()


def set_recovery_point(folder: Path, offset: int | None) -> None:
    """None for a folder that says nothing of it, such as Kafka's."""
    (folder / "recovery-point").unlink()
    if offset is not None:
        point = RecoveryPoint(folder)
        point.put(offset)
        point.close()


def read_all(log: FileLog) -> list[LogBatch]:
    found: list[LogBatch] = []
    offset = log.log_start_offset
    while data := log.read(offset, 100_000):
        found.extend(parse_batches(data))
        offset = found[-1].next_offset
    return found


def snapshot_content(epoch: int = 1) -> bytes:
    """A whole snapshot with nothing in it."""
    records = (SnapshotHeaderRecord(last_contained_log_timestamp=1000), SnapshotFooterRecord())
    return b"".join(
        write_batch(
            base_offset=ordinal,
            leader_epoch=epoch,
            timestamp_ms=1000,
            records=[encode_control_record(record)],
            control=True,
        )
        for ordinal, record in enumerate(records)
    )


def write_snapshot(folder: Path, offset: int, epoch: int = 1) -> Path:
    path = snapshot_path(folder, OffsetAndEpoch(offset, epoch))
    path.write_bytes(snapshot_content(epoch))
    return path


def segment_offsets(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def flip(path: Path, position: int, mask: int = 0x10) -> bytes:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)
    return bytes(content)


def led(start: int, end: int, epoch: int) -> list[LogBatch]:
    """An epoch as a leader writes it."""
    return [
        build_batch(start, epoch, 1000, [(b"\0\0\0\2", b"\0\0\0")], control=True),
        *batches(start + 1, end, epoch),
    ]
