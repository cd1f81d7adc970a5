"""The snapshots in the log's folder, as far as the log depends on them: it may begin only where one ends.

Names are Kafka's: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`, with `.part` while it is written and
`.deleted` while it is removed.
"""

import logging
import re
from dataclasses import replace
from pathlib import Path

from raft.quorum_records import QuorumRecord, VotersAt, quorum_records
from storage.damage_aside import DAMAGED_SUFFIX
from storage.durable_files import list_names, remove_file, rename_durably
from storage.file_system import POSIX, FileSystem
from storage.mapped_file import map_file
from wire.control_records import SnapshotFooterRecord, SnapshotHeaderRecord, decode_control_record
from wire.errors import DecodeError
from wire.log_batch import OffsetAndEpoch, log_batch
from wire.log_scan import Damage, ScannedBatch, scan_batches

FIRST_VOTERS = OffsetAndEpoch(0, 0)
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
# Ours and Kafka's: half written, or marked for removal.
_LEFT_OVER = re.compile(
    r"\d{20}-\d{10}.*\.checkpoint\.(part|deleted)|\d{20}\.(log|index|timeindex|snapshot|txnindex)\.deleted"
    r"|(quorum-state|leader-epoch-checkpoint|partition\.metadata|recovery-point|damaged-range|replaced-by-snapshot)\.tmp"
)
logger = logging.getLogger(__name__)


def snapshot_path(folder: Path, snapshot: OffsetAndEpoch) -> Path:
    return folder / f"{snapshot.offset:020}-{snapshot.epoch:010}.checkpoint"


def list_snapshots(folder: Path, fs: FileSystem = POSIX) -> tuple[OffsetAndEpoch, ...]:
    """All finished snapshots by name, the oldest first: epochs count before offsets. The bootstrap one is (0, 0)."""
    matches = (_NAME.fullmatch(name) for name in list_names(folder, fs))
    found = (OffsetAndEpoch(int(match[1]), int(match[2])) for match in matches if match is not None)
    return tuple(sorted(found, key=lambda each: (each.epoch, each.offset)))


def remove_leftovers(folder: Path, fs: FileSystem = POSIX) -> None:
    """Remove what was never finished, and what was marked for removal when the process ended."""
    for name in list_names(folder, fs):
        if _LEFT_OVER.fullmatch(name):
            logger.info("removed %s, left over from before", folder / name)
            remove_file(folder / name, fs)


def check_snapshots(folder: Path, fs: FileSystem = POSIX) -> tuple[OffsetAndEpoch, ...]:
    """The sound snapshots, oldest first. A damaged one gets the suffix `.damaged`: whoever looks for a snapshot must
    not find it, and it can be written or fetched again. The bootstrap one is left to `read_quorum_checkpoint`."""
    sound = []
    for snapshot in list_snapshots(folder, fs):
        path = snapshot_path(folder, snapshot)
        problem = None if snapshot == FIRST_VOTERS else problem_of(path, snapshot.epoch, fs)
        if problem is None:
            sound.append(snapshot)
        else:
            set_snapshot_aside(folder, snapshot, problem, fs)
    return tuple(sound)


def set_snapshot_aside(folder: Path, snapshot: OffsetAndEpoch, reason: str, fs: FileSystem = POSIX) -> None:
    """Have it no longer count as a snapshot, durably; raises StorageFailed or FsyncFailed."""
    path = snapshot_path(folder, snapshot)
    target = path.with_name(path.name + DAMAGED_SUFFIX)
    logger.warning("%s is not a whole snapshot: %s; it is kept as %s", path, reason, target.name)
    rename_durably(path, target, fs)


def problem_of(path: Path, epoch: int, fs: FileSystem = POSIX) -> str | None:
    """Why a file is not a whole snapshot of that epoch (header, sound batches without a gap, footer); None if it is."""
    last: ScannedBatch | None = None
    try:
        for found in scan_batches(memoryview(map_file(path, fs)), base_offset=0):
            if isinstance(found, Damage):
                return f"at byte {found.position}: {found.reason}"
            if found.header.partition_leader_epoch != epoch:
                return f"a batch is of leader epoch {found.header.partition_leader_epoch}, not {epoch}"
            if last is None and not isinstance(_control(found, 0), SnapshotHeaderRecord):
                return "it does not begin with a snapshot header"
            if found.header.is_control:
                _check_control_batch(found)
            last = found
        if last is None:
            return "it is empty"
        if not isinstance(_control(last, -1), SnapshotFooterRecord):
            return "its footer is missing, so it was never finished"
    except DecodeError as error:
        return str(error)
    return None


def _check_control_batch(found: ScannedBatch) -> None:
    """Raises DecodeError where a record cannot be read: the voters must be known once the log is gone."""
    batch = log_batch(bytes(found.data))
    for record in batch.records:
        decode_control_record(record.key, record.value)
    for said in quorum_records(batch):
        if isinstance(said, VotersAt) and len(said.voters) == 0:
            raise DecodeError("its voter set is empty")


def _control(found: ScannedBatch, index: int) -> object:
    """The first or last record of a control batch; None of an empty one, or of any other."""
    if not found.header.is_control:
        return None
    records = log_batch(bytes(found.data)).records
    return decode_control_record(records[index].key, records[index].value) if records else None


def snapshot_quorum_records(
    folder: Path, snapshot: OffsetAndEpoch, fs: FileSystem = POSIX
) -> tuple[QuorumRecord, ...]:
    """What a sound snapshot says of kraft.version and voters, at the last offset that it contains."""
    found: list[QuorumRecord] = []
    for scanned in scan_batches(memoryview(map_file(snapshot_path(folder, snapshot), fs))):
        if isinstance(scanned, ScannedBatch) and scanned.header.is_control:
            records = quorum_records(log_batch(bytes(scanned.data)))
            found.extend(replace(record, offset=snapshot.offset - 1) for record in records)
    return tuple(found)
