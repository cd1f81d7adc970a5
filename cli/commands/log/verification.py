"""All checks over the files of one metadata log: its batches and snapshots, and the small files beside them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from logging import NullHandler
from pathlib import Path

from kquorum.cli.commands.log.files import FileCopy, MetadataLogFiles, has_come_up_to
from kquorum.cli.commands.log.states import add_unreadable, check_misplaced, load_if_readable
from kquorum.metadata.log_check import remedies
from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.log_check.indexes import IndexFault, IndexWalk, OffsetIndexWalk, TimeIndexWalk
from kquorum.metadata.log_check.log_checker import LogChecker, LogFacts
from kquorum.metadata.log_check.small_files import (
    epoch_faults,
    epoch_file_fault,
    partition_metadata_fault,
    text_fault,
)
from kquorum.metadata.log_check.snapshot_comparison import LoadedSnapshot
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from kquorum.raft.adapters.quorum_state_file import decode_quorum_state
from kquorum.raft.adapters.replacement_mark import FILE_NAME as REPLACEMENT_MARK
from kquorum.raft.adapters.replacement_mark import Replacement, replacement_under_way
from kquorum.snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, DELETED_SUFFIX, PART_SUFFIX, SnapshotId
from kquorum.spark_replay.decode.files import read_listed
from kquorum.spark_replay.decode.sources import LogFile
from kquorum.storage.corruption_marker import FILE_NAME as CORRUPTION_MARKER
from kquorum.storage.corruption_marker import CorruptionMarker, read_corruption_marker
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import PosixFileSystem
from kquorum.storage.leader_epoch_checkpoint import FILE_NAME as EPOCH_CHECKPOINT
from kquorum.storage.leader_epoch_checkpoint import decode_epochs
from kquorum.storage.meta_properties import FILE_NAME as META_PROPERTIES
from kquorum.storage.meta_properties import decode_meta_properties
from kquorum.storage.recovery_point import FILE_NAME as RECOVERY_POINT
from kquorum.storage.recovery_point import logger as recovery_point_logger
from kquorum.storage.recovery_point import read_recovery_point
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.log_batch import OffsetAndEpoch

# A node logs that its recovery point is damaged; here that is a finding. Without a handler, Python would write it to
# standard error.
recovery_point_logger.addHandler(NullHandler())


DAMAGED_SUFFIX = ".damaged"
PARTITION_METADATA = "partition.metadata"
_LEFTOVER_SUFFIXES = (PART_SUFFIX, DELETED_SUFFIX, ".deleted", ".rolling", ".tmp", ".swap", ".cleaned")


class _ListedFiles(PosixFileSystem):
    """Reads small files without following a link at any place of their paths."""

    def read(self, path: Path) -> bytes:
        return read_listed(path)


_LISTED = _ListedFiles()


class SideFiles:
    """Checks what lies beside the segments of one folder."""

    def __init__(
        self,
        log: MetadataLogFiles,
        folder: Path,
        facts: LogFacts,
        findings: Findings,
    ) -> None:
        """Reads `recovery-point` and what is noted of a repair, before the log is read; the rest is read by `check`,
        when `facts` are known."""
        self._log = log
        self._folder = folder
        self._facts = facts
        self._findings = findings
        self._durable_end: int | None = None
        self._recovery_point_error: OSError | None = None
        self._marker: CorruptionMarker | None = None
        self._replacement: Replacement | None = None
        with suppress(StorageFailed):
            # A file that cannot be read at all is reported as a leftover file.
            self._marker = read_corruption_marker(folder, _LISTED)
            self._replacement = replacement_under_way(folder, _LISTED)
        try:
            self._durable_end = read_recovery_point(folder, _LISTED)
        except StorageFailed as error:
            self._recovery_point_error = error.error

    def check(self) -> None:
        self._check_recovery_point()
        self._read(self._folder / EPOCH_CHECKPOINT, Check.EPOCH_CHECKPOINT, self._check_epochs)
        self._read(self._folder / QUORUM_STATE, Check.QUORUM_STATE, self._check_quorum_state)
        self._read(self._folder / PARTITION_METADATA, Check.PARTITION_METADATA, self._check_partition)
        self._read(self._folder.parent / META_PROPERTIES, Check.META_PROPERTIES, decode_meta_properties)
        self._check_leftovers()
        self._check_log_start()

    def _check_recovery_point(self) -> None:
        if not (self._folder / RECOVERY_POINT).exists():
            self._findings.skip(
                Check.RECOVERY_POINT, "there is none: how much of the log was durable is not known"
            )
            return
        self._findings.checked(Check.RECOVERY_POINT)
        if self._recovery_point_error is not None:
            self._unreadable(Check.RECOVERY_POINT, RECOVERY_POINT, self._recovery_point_error)
            return
        end_offset = self._end_offset
        if self._durable_end is None:
            reason = "it cannot be read, so it is not known how much of the log was durable"
            self._add(Check.RECOVERY_POINT, Severity.VIOLATION, RECOVERY_POINT, reason, remedies.REBUILT)
        elif end_offset < self._durable_end and self._facts.has_unread_segment:
            reason = "not compared with the end of the log, as a segment cannot be read"
            self._findings.skip(Check.RECOVERY_POINT, reason)
        elif end_offset < self._durable_end and (self._marker is not None or self._replacement is not None):
            file = CORRUPTION_MARKER if self._marker is not None else REPLACEMENT_MARK
            reason = f"not compared with the end of the log, which lacks records as {file} says"
            self._findings.skip(Check.RECOVERY_POINT, reason)
        elif end_offset < self._durable_end:
            reason = f"all below offset {self._durable_end} was durable, but the log ends at {end_offset}"
            self._add(
                Check.RECOVERY_POINT,
                Severity.DAMAGE,
                RECOVERY_POINT,
                reason,
                remedies.FETCH_AGAIN,
                end_offset,
            )

    @property
    def _end_offset(self) -> int:
        """Where the log ends; of an empty one, where it begins."""
        return self._facts.end_offset or max(
            (file.base_offset or 0 for file in self._log.segments), default=0
        )

    def _read(self, path: Path, check: Check, parse: Callable[[bytes], object]) -> None:
        """Parse a file; one that cannot be read or makes no sense (ValueError) is damaged."""
        try:
            content = read_listed(path)
        except FileNotFoundError:
            self._missing(path, check)
            return
        except OSError as error:
            self._findings.checked(check)
            self._unreadable(check, path.name, error)
            return
        self._findings.checked(check)
        try:
            reason = text_fault(content)
            if reason is not None:
                raise ValueError(reason)
            parse(content)
        except ValueError as error:
            remedy = _DAMAGED_REMEDIES[check]
            self._add(check, Severity.DAMAGE, path.name, f"it cannot be read: {error}", remedy)

    def _missing(self, path: Path, check: Check) -> None:
        is_of_a_node = (self._folder / PARTITION_METADATA).exists() or (
            self._folder / EPOCH_CHECKPOINT
        ).exists()
        if check is Check.QUORUM_STATE and is_of_a_node and self._facts.batch_count:
            reason = "there is a log, but no election state: the node no longer knows what it voted"
            self._add(check, Severity.VIOLATION, path.name, reason, remedies.ELECTION_STATE)
        else:
            self._findings.skip(check, "there is none")

    def _check_epochs(self, content: bytes) -> None:
        facts = self._facts
        reason_or_none = epoch_file_fault(content)
        if reason_or_none is not None:
            raise ValueError(reason_or_none)
        written = decode_epochs(content)
        if facts.is_damaged and not facts.ends_torn:
            self._findings.skip(Check.EPOCH_CHECKPOINT, "not compared with the batches, as some are damaged")
            return
        ends = [snapshot_id.end_offset for snapshot_id in self._log.snapshots]
        end_offset = facts.end_offset or 0
        for reason in epoch_faults(
            written, facts.epochs, log_end_offset=end_offset, snapshot_end_offsets=ends
        ):
            self._add(Check.EPOCH_CHECKPOINT, Severity.VIOLATION, EPOCH_CHECKPOINT, reason, remedies.REBUILT)

    def _check_quorum_state(self, content: bytes) -> None:
        state = decode_quorum_state(content)
        last = max((epoch for epoch, _ in self._facts.epochs), default=0)
        if state.leader_epoch < last:
            reason = f"its epoch is {state.leader_epoch}, but the log holds records of epoch {last}"
            self._add(Check.QUORUM_STATE, Severity.VIOLATION, QUORUM_STATE, reason, remedies.ELECTION_STATE)

    def _check_partition(self, content: bytes) -> None:
        reason = partition_metadata_fault(content)
        if reason is not None:
            self._add(
                Check.PARTITION_METADATA,
                Severity.VIOLATION,
                PARTITION_METADATA,
                reason,
                remedies.OWN_FOLDER,
            )

    def _check_leftovers(self) -> None:
        for path in sorted(self._folder.iterdir()):
            if path.is_file() and not path.is_symlink() and path.name.endswith(_LEFTOVER_SUFFIXES):
                self._findings.checked(Check.LEFTOVERS)
                reason = "half written or half deleted when the node stopped"
                self._add(Check.LEFTOVERS, Severity.NOTE, path.name, reason, remedies.DELETED_AT_START)
            elif path.name.endswith(DAMAGED_SUFFIX):
                self._tell_set_aside(path.name)
            elif path.name == CORRUPTION_MARKER:
                self._tell_repair()
            elif path.name == REPLACEMENT_MARK:
                self._tell_replacement()

    def _tell_set_aside(self, file: str) -> None:
        self._findings.checked(Check.LEFTOVERS)
        if self._marker is not None and file.endswith(f".log{DAMAGED_SUFFIX}"):
            reason = f"the node found it damaged and set it aside, and its repair is not finished ({CORRUPTION_MARKER})"
            self._add(Check.LEFTOVERS, Severity.NOTE, file, reason, remedies.STILL_NEEDED)
        else:
            reason = "the node found it damaged and repaired itself"
            self._add(Check.LEFTOVERS, Severity.NOTE, file, reason, remedies.SET_ASIDE)

    def _tell_repair(self) -> None:
        """That the log ends below what is known to be lost is damage; above that, the node alone can find out."""
        self._findings.checked(Check.LEFTOVERS)
        end_offset, lost_until = self._end_offset, 0 if self._marker is None else self._marker.end_offset
        reason = "a repair was begun, and is not finished: "
        if end_offset < lost_until:
            severity, at = Severity.DAMAGE, end_offset
            reason += f"offsets {end_offset} to {lost_until - 1} may be missing still, and more behind them"
        else:
            severity, at = Severity.NOTE, None
            known = (
                "all that is known to have been lost is here again"
                if lost_until
                else "what was lost is not known"
            )
            reason += f"{known}; the node has yet to hear from its leader whether there was more"
        self._add(Check.LEFTOVERS, severity, CORRUPTION_MARKER, reason, remedies.FETCH_AGAIN, at)

    def _tell_replacement(self) -> None:
        """The node stopped while it dropped its log for a snapshot."""
        found, end_offset = self._replacement, self._end_offset
        self._findings.checked(Check.LEFTOVERS)
        first = min((file.base_offset or 0 for file in self._log.segments), default=None)
        if found is None or found.is_finished(first):
            reason = "it says nothing any more: the log begins where the snapshot ends that it names"
            self._add(Check.LEFTOVERS, Severity.NOTE, REPLACEMENT_MARK, reason, remedies.DELETED_AT_START)
        elif any(found.can_go_on_at(_offset_and_epoch(each)) for each in self._log.snapshots):
            reason = "the node stopped while it replaced its log by a snapshot; at its next start it goes on with that"
            self._add(Check.LEFTOVERS, Severity.NOTE, REPLACEMENT_MARK, reason, remedies.DELETED_AT_START)
        else:
            damage = found.as_damage(end_offset).with_log(self._folder, end_offset, 0)
            reason = (
                f"{damage.reason}; offsets {damage.start_offset} to {damage.end_offset - 1} are lost here"
            )
            self._add(
                Check.LEFTOVERS, Severity.DAMAGE, REPLACEMENT_MARK, reason, remedies.FETCH_AGAIN, end_offset
            )

    def _check_log_start(self) -> None:
        start = self._facts.start_offset
        if not start:
            return
        self._findings.checked(Check.LOG_START)
        if not any(snapshot_id.end_offset >= start for snapshot_id in self._log.snapshots):
            reason = f"the log begins at offset {start}, and no snapshot holds what was before"
            file = self._log.segments[0].name
            self._add(Check.LOG_START, Severity.VIOLATION, file, reason, remedies.EMPTY_FOLDER, start)

    def _unreadable(self, check: Check, file: str, error: OSError) -> None:
        add_unreadable(self._findings, check, file, error, then=_DAMAGED_REMEDIES[check])

    def _add(
        self,
        check: Check,
        severity: Severity,
        file: str,
        reason: str,
        remedy: str,
        offset: int | None = None,
    ) -> None:
        self._findings.add(
            Finding(check=check, severity=severity, file=file, reason=reason, remedy=remedy, offset=offset)
        )


def _offset_and_epoch(snapshot_id: SnapshotId) -> OffsetAndEpoch:
    return OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch)


_DAMAGED_REMEDIES = {
    Check.RECOVERY_POINT: remedies.REBUILT,
    Check.EPOCH_CHECKPOINT: remedies.REBUILT,
    Check.QUORUM_STATE: remedies.ELECTION_STATE,
    Check.PARTITION_METADATA: remedies.OWN_FOLDER,
    Check.META_PROPERTIES: remedies.FORMAT_AGAIN,
}
Advance = Callable[[int], None]
_ADVANCE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    log: MetadataLogFiles
    facts: LogFacts
    findings: Findings


def verify_log(log: MetadataLogFiles, advance: Advance, *, keep: int) -> Verified:
    """The function calls `advance` with the bytes that it has checked; `keep` findings of each check are kept.

    Files that cannot be read are findings, the others are checked all the same. Raises OSError for the folder.
    """
    findings = Findings(keep)

    def load(snapshot_id: SnapshotId) -> LoadedSnapshot | None:
        path = log.snapshots[snapshot_id]
        loaded = load_if_readable(path, snapshot_id, findings)
        with suppress(FileNotFoundError):
            advance(path.stat().st_size)
        return loaded

    def has_grown_to(offset: int) -> bool:
        return log.folder is not None and has_come_up_to(log.folder, offset)

    checker = LogChecker(findings, tuple(log.snapshots), load, has_grown_to)
    # Before the log: a running node moves its recovery point after what that tells of is there.
    side_files = None if log.folder is None else SideFiles(log, log.folder, checker.facts, findings)
    check_misplaced(log, findings)
    for segment in log.segments:
        _check_segment(checker, log, segment, findings, advance)
    checker.finish()
    if log.bootstrap is not None:
        load_if_readable(log.bootstrap, BOOTSTRAP_SNAPSHOT_ID, findings, Check.BOOTSTRAP)
    if side_files is not None:
        side_files.check()
    return Verified(log, checker.facts, findings)


def _check_segment(
    checker: LogChecker, log: MetadataLogFiles, segment: LogFile, findings: Findings, advance: Advance
) -> None:
    # The indexes first: a running node writes the log before them, so what they name must be in the log then.
    indexes = [] if log.folder is None else _indexes(Path(segment.path), segment.base_offset or 0, findings)
    checker.begin_segment(
        segment.name,
        segment.base_offset,
        is_last=segment is log.segments[-1],
        indexes=[walk for walk, _ in indexes],
    )
    try:
        content = FileCopy(Path(segment.path))
    except FileNotFoundError:
        raise
    except OSError as error:
        checker.pass_over(f"it cannot be read: {error.strerror or error}")
        checker.end_segment()
        return
    reported = 0
    for found in walk_batches(content.view):
        checker.take(found)
        if found.position - reported >= _ADVANCE_BYTES:
            advance(found.position - reported)
            reported = found.position
            content.release_to(reported)
    checker.end_segment()
    advance(len(content.view) - reported)
    for walk, check in indexes:
        findings.checked(check, walk.entry_count)


def _indexes(segment: Path, base_offset: int, findings: Findings) -> list[tuple[IndexWalk, Check]]:
    """The index files that lie beside a segment; they may be missing."""
    made: list[tuple[IndexWalk, Check]] = []
    for suffix, check, walk in (
        (".index", Check.OFFSET_INDEX, OffsetIndexWalk),
        (".timeindex", Check.TIME_INDEX, TimeIndexWalk),
    ):
        path = segment.with_suffix(suffix)
        try:
            view = FileCopy(path).view
        except FileNotFoundError:
            findings.skip(check, f"{path.name}: there is none")
        except OSError as error:
            add_unreadable(findings, check, path.name, error, then=remedies.REBUILT)
        else:
            made.append((walk(view, base_offset, _reporter(path.name, check, findings)), check))
    return made


def _reporter(file: str, check: Check, findings: Findings) -> Callable[[IndexFault], None]:
    def report(fault: IndexFault) -> None:
        findings.add(
            Finding(
                check=check,
                severity=Severity.VIOLATION,
                file=file,
                reason=fault.reason,
                remedy=remedies.REBUILT,
                position=fault.position,
                offset=fault.offset,
            )
        )

    return report
