"""The snapshots in the log's folder (KIP-630): their names and checks, and how they come in and go out.

Names are Kafka's: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`, with `.part` while the file is written and
`.deleted` while it is removed. The log may begin only where a snapshot ends.

A snapshot that comes in is written to a `.part` file, checked from end to end once it is complete, flushed, renamed,
and its name flushed. So a file under the final name is always whole, whenever the power fails.
"""

import errno
import logging
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kquorum.raft.ready import SnapshotChunk
from kquorum.raft.voters import QuorumRecord, check_voter_sets, quorum_records
from kquorum.storage.damage_aside import DAMAGED_SUFFIX
from kquorum.storage.durable_files import list_names, rename_durably
from kquorum.storage.errors import FsyncFailed, StorageFailed, StorageFull, storage_failure
from kquorum.storage.file_system import POSIX, READ_LISTED, FileSystem
from kquorum.storage.mapped_file import map_file
from kquorum.wire.control_records import SnapshotFooterRecord, SnapshotHeaderRecord, decode_control_record
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import OffsetAndEpoch, log_batch
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches

# A snapshot that was checked is not checked again for this many times as long as that took.
CHECK_PAUSE = 9
FIRST_VOTERS = OffsetAndEpoch(0, 0)
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
# Files that were half written or marked for removal when the process ended, beside the storage's own
# (`storage.retired_files.remove_leftovers`).
LEFTOVERS = re.compile(
    r"\d{20}-\d{10}.*\.checkpoint\.(part|deleted)|(quorum-state|partition\.metadata|replaced-by-snapshot)\.tmp"
)
logger = logging.getLogger(__name__)


def snapshot_path(folder: Path, snapshot: OffsetAndEpoch) -> Path:
    return folder / f"{snapshot.offset:020}-{snapshot.epoch:010}.checkpoint"


def list_snapshots(folder: Path, fs: FileSystem = POSIX) -> tuple[OffsetAndEpoch, ...]:
    """All finished snapshots by name, the oldest first: epochs count before offsets. The bootstrap one is (0, 0)."""
    matches = (_NAME.fullmatch(name) for name in list_names(folder, fs))
    found = (OffsetAndEpoch(int(match[1]), int(match[2])) for match in matches if match is not None)
    return tuple(sorted(found, key=lambda each: (each.epoch, each.offset)))


def check_snapshots(folder: Path, fs: FileSystem = POSIX) -> tuple[OffsetAndEpoch, ...]:
    """The sound snapshots, oldest first. A damaged one gets the suffix `.damaged`: a search for snapshots must
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
    check_voter_sets(quorum_records(batch))


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


# In and out


class SnapshotUnsound(Exception):
    """What was received is no snapshot; nothing of it is kept, and it has to be fetched again."""


class SnapshotGone(Exception):
    """No snapshot of that name is here, any more at least."""


class SnapshotDamaged(SnapshotGone):
    """It was here, and is of no use."""


@dataclass(slots=True)
class _Incoming:
    snapshot_id: OffsetAndEpoch
    part: Path
    descriptor: int
    size: int = 0


class SnapshotStore:
    """Satisfies raft.adapters.driver_ports.SnapshotPort. All methods belong to one thread, not the loop's."""

    def __init__(
        self,
        folder: Path,
        fs: FileSystem = POSIX,
        objection: Callable[[Path, OffsetAndEpoch], str | None] = lambda _part, _snapshot_id: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`objection` says why the state machine cannot do with a file that is a whole snapshot; None if it can."""
        self._folder = folder
        self._fs = fs
        self._objection = objection
        self._incoming: _Incoming | None = None
        self._now_s = now_s
        # Until when a snapshot that was found whole is not checked again.
        self._whole_until_s: dict[OffsetAndEpoch, float] = {}

    def read(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[bytes, int]:
        """Up to `max_bytes` from `position`, and the whole file's size in bytes.

        Reading from 0 checks it first: no replica should fetch gigabytes that cannot be loaded. Checks take a tenth of
        the thread's time at most, however often a replica begins. A damaged one is set aside. Raises SnapshotGone or
        StorageFailed.
        """
        path = snapshot_path(self._folder, snapshot_id)
        if position == 0:
            self._check(path, snapshot_id)
        try:
            descriptor = self._fs.open(path, READ_LISTED)
            try:
                size = self._fs.size(descriptor)
                return self._fs.pread(descriptor, max_bytes, position), size
            finally:
                self._fs.close(descriptor)
        except FileNotFoundError as error:
            raise SnapshotGone(f"{path} is gone") from error
        except OSError as error:
            raise storage_failure("read", path, error) from error

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        """The next bytes; position 0 begins a new file in the place of one that was under way.

        Raises StorageFull (nothing is kept then: it begins again at 0; nor is it begun where there is less space than
        the whole file takes), SnapshotUnsound for what follows, or StorageFailed.
        """
        try:
            incoming = self._begin(chunk) if chunk.position == 0 else self._incoming
            if incoming is None or (incoming.snapshot_id, incoming.size) != (
                chunk.snapshot_id,
                chunk.position,
            ):
                raise SnapshotUnsound(f"what comes before byte {chunk.position} of the snapshot was not kept")
            rest = memoryview(chunk.data)
            while rest:
                rest = rest[self._fs.write(incoming.descriptor, rest) :]
            incoming.size += len(chunk.data)
        except OSError as error:
            part = self._part_of(chunk.snapshot_id)
            self.drop()
            raise storage_failure("write", part, error) from error

    def finish(self, snapshot_id: OffsetAndEpoch) -> None:
        """Put a complete file under its name, durable on return.

        Raises SnapshotUnsound, StorageFull (nothing is kept then either), StorageFailed or FsyncFailed.
        """
        incoming = self._incoming
        if incoming is None or incoming.snapshot_id != snapshot_id:
            raise SnapshotUnsound("the snapshot that came in was not kept")
        self._flush(incoming)
        problem = problem_of(incoming.part, snapshot_id.epoch, self._fs)
        if problem is not None:
            self.drop()
            raise SnapshotUnsound(
                f"the snapshot that came in as {incoming.part.name} is not whole: {problem}"
            )
        objection = self._objection(incoming.part, snapshot_id)
        if objection is not None:
            self.drop()
            raise SnapshotUnsound(
                f"the snapshot that came in as {incoming.part.name} cannot be loaded: {objection}"
            )
        self._fs.close(incoming.descriptor)
        self._incoming = None
        try:
            rename_durably(incoming.part, snapshot_path(self._folder, snapshot_id), self._fs)
        except StorageFull:
            self._unlink(incoming.part)
            raise

    def drop(self) -> None:
        """Forget what was under way."""
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            self._fs.close(incoming.descriptor)
            self._unlink(incoming.part)

    def _unlink(self, part: Path) -> None:
        with suppress(OSError):
            self._fs.unlink(part)

    def _check(self, path: Path, snapshot_id: OffsetAndEpoch) -> None:
        """Retention may take the file away at any moment."""
        begun_s = self._now_s()
        self._whole_until_s = {
            known: until_s for known, until_s in self._whole_until_s.items() if begun_s < until_s
        }
        if snapshot_id in self._whole_until_s:
            return
        try:
            problem = problem_of(path, snapshot_id.epoch, self._fs)
            if problem is None:
                now_s = self._now_s()
                self._whole_until_s[snapshot_id] = now_s + CHECK_PAUSE * (now_s - begun_s)
                return
            set_snapshot_aside(self._folder, snapshot_id, problem, self._fs)
        except StorageFailed as error:
            if not isinstance(error.error, FileNotFoundError):
                raise
            raise SnapshotGone(f"{path} is gone") from error
        raise SnapshotDamaged(f"{path} cannot be served: {problem}")

    def _begin(self, chunk: SnapshotChunk) -> _Incoming:
        self.drop()
        self._check_space(chunk.size)
        snapshot_id = chunk.snapshot_id
        part = self._part_of(snapshot_id)
        descriptor = self._fs.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._incoming = _Incoming(snapshot_id, part, descriptor)
        return self._incoming

    def _check_space(self, size: int) -> None:
        """A leader may claim any size: the others that write to this disk must not have to make way for it."""
        free_bytes = self._fs.free_bytes(self._folder)
        if size > free_bytes:
            reason = f"the leader says that it has {size} bytes, and {free_bytes} are free"
            raise OSError(errno.ENOSPC, reason)

    def _part_of(self, snapshot_id: OffsetAndEpoch) -> Path:
        """The node's own snapshot of the same name may be being written: this one has a name of its own."""
        path = snapshot_path(self._folder, snapshot_id)
        return path.with_name(f"{path.stem}-fetched{path.suffix}.part")

    def _flush(self, incoming: _Incoming) -> None:
        try:
            self._fs.fsync(incoming.descriptor)
        except OSError as error:
            raise FsyncFailed(incoming.part, error) from error
