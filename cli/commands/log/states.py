"""The state of a metadata log at an offset or a time: from the nearest sound snapshot, or from offset 0, onwards.

A fault of a snapshot file becomes a finding; damage of the log where it is needed raises DamagedLog.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kquorum.cli.commands.log.files import FileCopy, MetadataLogFiles
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.log_check import remedies
from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.log_check.snapshot_comparison import LoadedSnapshot, SnapshotLoading
from kquorum.metadata.log_check.state_replay import QuorumView, ReplayFault, StateReplay
from kquorum.snapshots.checking import SnapshotFault
from kquorum.snapshots.naming import SnapshotId, snapshot_id_of
from kquorum.spark_replay.decode.sources import LogFile
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.control_records import decode_control_record
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import Damage, ScannedBatch
from kquorum.wire.record_batch import BatchHeader, read_records


def load_if_readable(
    path: Path, snapshot_id: SnapshotId | None, findings: Findings, check: Check = Check.SNAPSHOT_FILES
) -> LoadedSnapshot | None:
    """As `load_snapshot`; a file that the system does not let us read is a finding, too."""
    try:
        return load_snapshot(path, snapshot_id, findings, check)
    except FileNotFoundError:
        findings.skip(check, f"{path.name}: it was removed while the others were read")
    except OSError as error:
        is_bootstrap = check is Check.BOOTSTRAP
        then = remedies.FORMAT_AGAIN if is_bootstrap else remedies.OTHER_SNAPSHOT
        add_unreadable(findings, check, path.name, error, then=then)
    return None


def check_misplaced(log: MetadataLogFiles, findings: Findings) -> None:
    """Folders, links and pipes with the name of a segment or snapshot hide that a file is missing."""
    for path in log.misplaced:
        is_snapshot = snapshot_id_of(path.name) is not None
        findings.checked(Check.SNAPSHOT_FILES if is_snapshot else Check.SEGMENTS)
        findings.add(
            Finding(
                check=Check.SNAPSHOT_FILES if is_snapshot else Check.SEGMENTS,
                severity=Severity.DAMAGE,
                file=path.name,
                reason=f"it is {_what_it_is(path)} with the name of a {'snapshot' if is_snapshot else 'segment'}",
                remedy=remedies.NOT_A_SNAPSHOT if is_snapshot else remedies.NOT_A_FILE,
            )
        )


def _what_it_is(path: Path) -> str:
    if path.is_symlink():
        return "a symbolic link, which is not followed,"
    return "a folder" if path.is_dir() else "no file"


def add_unreadable(findings: Findings, check: Check, file: str, error: OSError, *, then: str) -> None:
    """A finding of what the system says, in place of the file's content; `then` is the remedy once a folder is out of
    the file's place."""
    is_folder = isinstance(error, IsADirectoryError)
    findings.add(
        Finding(
            check=check,
            severity=Severity.DAMAGE,
            file=file,
            reason="it is a folder, not a file"
            if is_folder
            else f"it cannot be read: {error.strerror or error}",
            remedy=f"move the folder away; {then}" if is_folder else remedies.UNREADABLE,
        )
    )


def load_snapshot(
    path: Path, snapshot_id: SnapshotId | None, findings: Findings, check: Check = Check.SNAPSHOT_FILES
) -> LoadedSnapshot:
    """Check and load one file; whatever is wrong with it becomes a finding. Without an id any epoch is right."""

    def finding(severity: Severity, fault: SnapshotFault, remedy: str, kind: Check = check) -> None:
        findings.add(
            Finding(
                check=kind,
                severity=severity,
                file=path.name,
                reason=fault.reason,
                remedy=remedy,
                position=fault.position,
                offset=fault.number,
            )
        )

    def report(fault: SnapshotFault) -> None:
        severity = Severity.DAMAGE if fault.is_damage else Severity.VIOLATION
        is_bootstrap = check is Check.BOOTSTRAP
        finding(severity, fault, remedies.FORMAT_AGAIN if is_bootstrap else remedies.OTHER_SNAPSHOT)

    def report_unknown(fault: SnapshotFault) -> None:
        finding(Severity.NOTE, fault, remedies.NEWER_SOFTWARE, Check.METADATA)

    findings.checked(check)
    return SnapshotLoading(report, report_unknown).load(FileCopy(path).view, snapshot_id)


_RELEASE_BYTES = 1 << 25


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of the log: before `offset`, or before the first batch of `time_ms` or later; with neither, its end."""

    offset: int | None = None
    time_ms: int | None = None

    def records_before(self, header: BatchHeader) -> int:
        """How many records of the batch come before this moment."""
        if self.time_ms is not None:
            return header.record_count if header.max_timestamp_ms < self.time_ms else 0
        if self.offset is None:
            return header.record_count
        return max(0, min(header.record_count, self.offset - header.base_offset))

    def is_behind(self, snapshot: LoadedSnapshot) -> bool:
        if self.time_ms is not None:
            timestamp_ms = snapshot.last_contained_log_timestamp_ms
            return timestamp_ms is not None and timestamp_ms < self.time_ms
        return self.offset is None or snapshot.snapshot_id.end_offset <= self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything below `offset`; while a transaction is open there, everything below its start.

    `last_header` is that of the last batch replayed (None right behind a snapshot), `since` says where the replay
    began, `faults` what would not be replayed, `last_audit_note` is the newest note that the state contains.
    """

    offset: int
    epoch: int
    timestamp_ms: int | None
    image: MetadataImage
    quorum: QuorumView
    since: str
    last_header: BatchHeader | None = None
    transaction_start_offset: int | None = None
    unknown_count: int = 0
    faults: tuple[ReplayFault, ...] = ()
    last_audit_note: bytes | None = None


class DamagedLog(CliError):
    """The log cannot be read up to where it is wanted."""

    def __init__(self, segment: LogFile, position: int, offset: int, reason: str) -> None:
        super().__init__(
            f"{segment.path} is damaged at byte {position}: {reason}; the state is known up to offset {offset}, "
            "and `kquorum log verify` tells all that is damaged",
            status=ExitStatus.DAMAGED_INPUT,
        )


def first_state(log: MetadataLogFiles) -> State:
    """The oldest state that the files hold: empty, or the oldest sound snapshot where the log begins later.

    Raises CliError where the log begins later and no snapshot is sound.
    """
    start = _start_of(log)
    if start == 0:
        return _empty_state(log)
    for snapshot_id in log.snapshots:
        if snapshot_id.end_offset >= start or not log.segments:
            loaded = _load(log, snapshot_id)
            if loaded.is_sound:
                return state_of_snapshot(loaded)
    raise CliError(
        f"{log.source}: the log begins at offset {start}, and no sound snapshot holds what was before",
        status=ExitStatus.DAMAGED_INPUT,
    )


def state_at(
    log: MetadataLogFiles, moment: Moment, warn: Callable[[str], None], since: State | None = None
) -> State:
    """The state at a moment. `since` is an earlier one to go on from where no snapshot is nearer.

    Raises CliError where the moment lies before or behind what the files hold, or behind damage.
    """
    if since is not None and moment.offset is not None and moment.offset < since.offset:
        reason = f"the oldest state that its files hold is that at offset {since.offset}"
        raise CliError(f"{log.source}: {reason}; ask for a later one", status=ExitStatus.USAGE)
    base = _nearest(log, moment, warn, since)
    state = _replayed(log, base, moment)
    if moment.offset is not None and moment.offset != state.offset:
        raise CliError(
            f"{log.source} ends at offset {state.offset}; offset {moment.offset} is behind that",
            status=ExitStatus.USAGE,
        )
    return state


def _nearest(
    log: MetadataLogFiles, moment: Moment, warn: Callable[[str], None], since: State | None
) -> State:
    for snapshot_id in reversed(log.snapshots):
        # From here on down, no snapshot is nearer than `since`.
        if since is not None and snapshot_id.end_offset <= since.offset:
            break
        if moment.offset is not None and snapshot_id.end_offset > moment.offset:
            continue
        # Only the content gives a snapshot's time, so each is loaded before its time is compared.
        loaded = _load(log, snapshot_id)
        if not moment.is_behind(loaded):
            continue
        if loaded.is_sound:
            return state_of_snapshot(loaded)
        warn(f"{snapshot_id.file_name} is damaged and passed over; `kquorum snapshot verify` says more")
    if since is not None:
        return since
    start = _start_of(log)
    if start == 0:
        return _empty_state(log)
    raise CliError(
        f"{log.source}: the log begins at offset {start}, and no sound snapshot reaches further back: the state "
        "asked for is gone; ask for a later one",
        status=ExitStatus.USAGE,
    )


def _replayed(log: MetadataLogFiles, base: State, moment: Moment) -> State:
    """Replay from the image of `base` on: a transaction that was open there is replayed from its start."""
    faults: list[ReplayFault] = []
    replay = StateReplay(base.image, base.quorum, faults.append)
    # Not `base.offset`: that lies behind it while a transaction is open, whose records no image has yet.
    offset, last = base.image.end_offset, base.last_header
    for segment, found, following in _batches(log, offset):
        wanted = moment.records_before(found.header)
        # By time, `wanted` may be 0 for a batch that `base` contains already: controllers' clocks may go back. Such
        # batches are replayed, or the open transaction would lack them.
        if wanted == 0 and found.header.base_offset >= base.offset:
            break
        _take(replay, segment, found, following, wanted)
        offset, last = found.header.base_offset + wanted, found.header
        if wanted < found.header.record_count:
            break
    replay.finish()
    return State(
        offset=max(offset, base.offset),
        epoch=base.epoch if last is None else last.partition_leader_epoch,
        timestamp_ms=base.timestamp_ms if last is None else last.max_timestamp_ms,
        image=replay.image,
        quorum=replay.quorum,
        since=base.since,
        last_header=last,
        transaction_start_offset=replay.transaction_start_offset,
        unknown_count=base.unknown_count + replay.unknown_count,
        faults=(*base.faults, *(fault for fault in faults if fault.severity > Severity.NOTE)),
        last_audit_note=replay.last_audit_note or base.last_audit_note,
    )


def _batches(log: MetadataLogFiles, start: int) -> Iterator[tuple[LogFile, ScannedBatch, int]]:
    """Every batch that reaches beyond `start`, with the first of its offsets wanted; ends at a torn end."""
    following = start
    for index, segment in enumerate(log.segments):
        is_last = index + 1 == len(log.segments)
        # The next segment begins at or below `start`, so this one holds nothing that is wanted.
        if not is_last and (log.segments[index + 1].base_offset or 0) <= start:
            continue
        for found in _sound_batches(segment, following, is_last=is_last):
            yield segment, found, following
            following = found.header.next_offset


def _sound_batches(segment: LogFile, following: int, *, is_last: bool) -> Iterator[ScannedBatch]:
    """The batches from `following` on; damage below that offset does not matter. Raises DamagedLog."""
    content = FileCopy(Path(segment.path))
    damage: Damage | None = None
    for found in walk_batches(content.view):
        content.release_to(found.position - _RELEASE_BYTES)
        if isinstance(found, Damage):
            damage = damage or found
            continue
        header = found.header
        if header.next_offset > following:
            if header.base_offset > following:
                reason = f"offset {header.base_offset} follows where {following} is due"
                position = found.position if damage is None else damage.position
                raise DamagedLog(segment, position, following, damage.reason if damage else reason)
            yield found
            following = header.next_offset
        # A batch that continues the offsets proves that the damage before it was below `following`.
        damage = None
    if damage is not None and not (is_last and damage.kind == "torn"):
        raise DamagedLog(segment, damage.position, following, damage.reason)


def _take(replay: StateReplay, segment: LogFile, found: ScannedBatch, following: int, wanted: int) -> None:
    header = found.header
    if header.partition_leader_epoch < 0:  # which the checksum does not cover
        epoch = header.partition_leader_epoch
        reason = (
            f"the batch at offset {header.base_offset} has the leader epoch {epoch}, and epochs begin at 0"
        )
        raise DamagedLog(segment, found.position, following, reason)
    try:
        records = read_records(found.data, 0, header)[following - header.base_offset : wanted]
        if header.is_control:
            controls = [decode_control_record(record.key, record.value) for record in records]
            replay.take_controls(controls, header.partition_leader_epoch)
        elif records:
            replay.take(segment.name, found.position, header, found.data, records)
    except DecodeError as error:
        raise DamagedLog(segment, found.position, following, str(error)) from None


def _load(log: MetadataLogFiles, snapshot_id: SnapshotId) -> LoadedSnapshot:
    return load_snapshot(log.snapshots[snapshot_id], snapshot_id, Findings())


def _start_of(log: MetadataLogFiles) -> int:
    """Where the log begins; without one, behind its snapshots."""
    if log.segments:
        return log.segments[0].base_offset or 0
    return max((each.end_offset for each in log.snapshots), default=0)


def _empty_state(log: MetadataLogFiles) -> State:
    voters = [each for each in log.snapshots if each.end_offset == 0]
    quorum = _load(log, voters[0]).quorum if voters else QuorumView()
    return State(
        offset=0, epoch=0, timestamp_ms=None, image=MetadataImage.empty(), quorum=quorum, since="offset 0"
    )


def state_of_snapshot(loaded: LoadedSnapshot) -> State:
    """The state right behind a snapshot."""
    return State(
        offset=loaded.snapshot_id.end_offset,
        epoch=loaded.snapshot_id.epoch,
        timestamp_ms=loaded.last_contained_log_timestamp_ms,
        image=loaded.image,
        quorum=loaded.quorum,
        since=loaded.snapshot_id.file_name,
        unknown_count=loaded.unknown_count,
        last_audit_note=loaded.last_audit_note,
    )
