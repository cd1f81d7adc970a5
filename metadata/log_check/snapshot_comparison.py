"""Each snapshot against the log: its name against the batch it ends with, its image against the replay up to there.

The replay begins empty where the log begins at offset 0, else with the first sound snapshot at or behind the log's
start. Where the log is damaged it stops, and a later snapshot takes its place; snapshots that could not be compared are
listed with the reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.diff import StateChange, diff_images
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.log_check import remedies
from kquorum.metadata.log_check.audit_chain import AuditChain, AuditFault
from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.log_check.state_replay import (
    HashComparison,
    QuorumView,
    RecordedHash,
    ReplayFault,
    StateReplay,
    diff_voters,
    is_unknown_record,
)
from kquorum.snapshots.checking import SnapshotFault, SnapshotScan
from kquorum.snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kquorum.wire.audit_note import note_hash
from kquorum.wire.control_records import ControlRecord
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import BatchHeader, Record
from kquorum.wire.record_frame import decode_record
from kquorum.wire.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSnapshot:
    """`image` is whole only where `is_sound`; `unknown_count` counts records of types this program does not know.

    `last_audit_note` is the newest before the snapshot's end, where it holds one.
    """

    snapshot_id: SnapshotId
    image: MetadataImage
    quorum: QuorumView
    last_contained_log_timestamp_ms: int | None
    batch_count: int
    record_count: int
    unknown_count: int
    is_sound: bool
    last_audit_note: bytes | None = None


class SnapshotLoading:
    """Loads one snapshot; faults go to `report`, records of unknown types to `report_unknown` (number, text)."""

    def __init__(
        self,
        report: Callable[[SnapshotFault], None],
        report_unknown: Callable[[SnapshotFault], None],
    ) -> None:
        self._report = report
        self._report_unknown = report_unknown
        self._fault_count = 0
        self._unknown_count = 0
        self._delta = MetadataDelta(MetadataImage.empty())

    def load(self, view: memoryview, snapshot_id: SnapshotId | None) -> LoadedSnapshot:
        """Without an id (a file of another name) any epoch is right, and the image does not say where it stands."""
        scan = SnapshotScan(view, self._fault, epoch=None if snapshot_id is None else snapshot_id.epoch)
        snapshot_id = snapshot_id or BOOTSTRAP_SNAPSHOT_ID
        for found, records in scan.data_batches():
            for record in records:
                self._take(found.position, record)
        timestamp_ms = scan.last_contained_log_timestamp_ms
        provenance = Provenance(
            last_contained_offset=snapshot_id.end_offset - 1,
            last_contained_epoch=snapshot_id.epoch,
            timestamp_ms=-1 if timestamp_ms is None else timestamp_ms,
        )
        return LoadedSnapshot(
            snapshot_id=snapshot_id,
            image=self._delta.apply(provenance),
            quorum=QuorumView(
                leader_epoch=snapshot_id.epoch, kraft_version=scan.kraft_version, voters=scan.voters
            ),
            last_contained_log_timestamp_ms=timestamp_ms,
            batch_count=scan.batch_count,
            record_count=scan.record_count,
            unknown_count=self._unknown_count,
            is_sound=not self._fault_count,
            last_audit_note=self._delta.audit_notes[-1] if self._delta.audit_notes else None,
        )

    def _take(self, position: int, record: Record) -> None:
        value = record.value or b""
        try:
            self._delta.replay_of_snapshot(decode_record(value), record.offset)
        except DecodeError as error:
            fault = SnapshotFault(position, record.offset, str(error), is_damage=True)
            # A newer program's record is no fault of the file, but its image lacks it, so it is counted apart.
            if is_unknown_record(value):
                self._unknown_count += 1
                self._report_unknown(fault)
            else:
                self._fault(fault)
        except ReplayError as error:
            kind = type(error.record).__name__
            self._fault(SnapshotFault(position, record.offset, f"{kind} does not fit: {error.reason}"))

    def _fault(self, fault: SnapshotFault) -> None:
        self._fault_count += 1
        self._report(fault)


_DIFFERENCES_TOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """`offset` None: there is no segment; `epoch` None: no segment holds a record; `is_damaged`: more may have been
    behind `offset`."""

    offset: int | None
    epoch: int | None
    is_damaged: bool


class SnapshotComparison:
    def __init__(
        self,
        findings: Findings,
        snapshots: Sequence[SnapshotId],
        load: Callable[[SnapshotId], LoadedSnapshot | None],
        recorded: Sequence[RecordedHash] = (),
    ) -> None:
        self._findings = findings
        self._hashes = HashComparison(findings, recorded)
        self._load = load
        self._waiting = sorted(snapshots, key=lambda each: (each.end_offset, each.epoch))
        self._replay: StateReplay | None = None
        self._chain = AuditChain(self._report_audit)
        self._why_unknown = "there is no log"

    @property
    def replay(self) -> StateReplay | None:
        """As far as it has come; None where the log is damaged, or its beginning is not known."""
        return self._replay

    def begin(self, start_offset: int) -> None:
        """The log begins here."""
        if start_offset == 0:
            self._start(MetadataImage.empty(), QuorumView())
            self._chain.begin(None)
        else:
            self._why_unknown = f"the log begins at offset {start_offset}"
        while self._waiting and self._waiting[0].end_offset <= start_offset:
            self._take_at_start(self._waiting.pop(0), start_offset)

    def lose(self, reason: str) -> None:
        """What follows cannot be replayed onto what came before."""
        self._chain.lose()
        if self._replay is not None:
            self._replay.finish()
            self._replay, self._why_unknown = None, reason

    def take(
        self, file: str, position: int, header: BatchHeader, data: memoryview, records: Sequence[Record]
    ) -> None:
        self._chain.take(file, position, records)
        if self._replay is not None:
            for piece in self._hashes.pieces(records):
                self._replay.take(file, position, header, data, piece)
                if piece and piece[-1].offset < header.last_offset:
                    self._hashes.reach(piece[-1].offset, self._replay, self._why_unknown)
            self._findings.checked(Check.REPLAY, len(records))

    def take_controls(self, controls: Sequence[ControlRecord], epoch: int) -> None:
        if self._replay is not None:
            self._replay.take_controls(controls, epoch)

    def reach(self, file: str, header: BatchHeader) -> None:
        """The log was taken up to the end of this batch: the snapshots that end with or inside it are due."""
        self._hashes.reach(header.last_offset, self._replay, self._why_unknown)
        while self._waiting and self._waiting[0].end_offset <= header.next_offset:
            snapshot_id = self._waiting.pop(0)
            loaded = self._load(snapshot_id)
            if snapshot_id.end_offset <= header.base_offset:
                reason = "the record that it ends with is missing in the log"
                self._findings.skip(Check.SNAPSHOT_NAMES, f"{snapshot_id.file_name}: {reason}")
                self._not_compared(snapshot_id, reason)
                continue
            self._check_name(file, snapshot_id, header)
            if snapshot_id.end_offset == header.next_offset:
                self._compare(snapshot_id, loaded, header)
            else:
                self._not_compared(snapshot_id, "it ends inside a batch")

    def finish(self, end: LogEnd, has_come_up_to: Callable[[int], bool]) -> None:
        """The log has ended; what is left lies behind it."""
        for snapshot_id in self._waiting:
            loaded = self._load(snapshot_id)
            where = "there is no log" if end.offset is None else f"the log ends before it, at {end.offset}"
            if end.epoch is None or loaded is None or not loaded.is_sound:
                self._findings.skip(Check.SNAPSHOT_NAMES, f"{snapshot_id.file_name}: {where}")
            elif has_come_up_to(snapshot_id.end_offset):
                where = "the log came up to it after it was read"
                self._findings.skip(Check.SNAPSHOT_NAMES, f"{snapshot_id.file_name}: {where}")
            else:
                self._tell_ahead(snapshot_id, end)
            self._not_compared(snapshot_id, where)
        self._hashes.finish(
            lambda: "there is no log" if end.offset is None else f"the log ends at {end.offset}"
        )
        self._close()

    def _tell_ahead(self, snapshot_id: SnapshotId, end: LogEnd) -> None:
        """A snapshot is of what was committed, so a log with records has those below it, or was about to be emptied
        when the node stopped; where records were lost, they may be those that it stands for."""
        self._findings.checked(Check.SNAPSHOT_NAMES)
        ends = "can be read up to" if end.is_damaged else "ends at"
        reason = f"by its name it ends at offset {snapshot_id.end_offset}, but the log {ends} {end.offset}"
        if end.epoch is not None and snapshot_id.epoch >= end.epoch:
            reason += "; a node that starts here drops its log for it"
        severity = Severity.NOTE if end.is_damaged else Severity.VIOLATION
        self._add(Check.SNAPSHOT_NAMES, severity, snapshot_id, reason, remedies.AHEAD)

    def _start(self, image: MetadataImage, quorum: QuorumView) -> None:
        self._replay = StateReplay(image, quorum, self._report)

    def _take_at_start(self, snapshot_id: SnapshotId, start_offset: int) -> None:
        loaded = self._load(snapshot_id)
        if snapshot_id == BOOTSTRAP_SNAPSHOT_ID and start_offset == 0:
            self._findings.checked(Check.SNAPSHOT_NAMES)
            self._findings.skip(
                Check.SNAPSHOT_STATE, f"{snapshot_id.file_name}: it holds the first voters only"
            )
            if loaded is not None and self._replay is not None:
                self._replay.quorum = loaded.quorum
            return
        if snapshot_id.end_offset < start_offset:
            reason = f"it ends below the log's start, {start_offset}"
            self._note(Check.SNAPSHOT_NAMES, snapshot_id, reason, remedies.DELETED_AT_START)
            self._not_compared(snapshot_id, reason)
            return
        self._findings.skip(
            Check.SNAPSHOT_NAMES,
            f"{snapshot_id.file_name}: the log does not hold the record that it ends with",
        )
        self._not_compared(snapshot_id, self._why_unknown)
        self._maybe_rebase(loaded)

    def _check_name(self, file: str, snapshot_id: SnapshotId, header: BatchHeader) -> None:
        self._findings.checked(Check.SNAPSHOT_NAMES)
        if snapshot_id.end_offset != header.next_offset:
            reason = f"it ends inside the batch {header.base_offset} to {header.last_offset} of {file}"
            self._violation(Check.SNAPSHOT_NAMES, snapshot_id, reason, remedies.RENAME)
        if snapshot_id.epoch != header.partition_leader_epoch:
            reason = f"its name says epoch {snapshot_id.epoch}, the log has epoch {header.partition_leader_epoch} there"
            self._violation(Check.SNAPSHOT_NAMES, snapshot_id, reason, remedies.RENAME)

    def _compare(self, snapshot_id: SnapshotId, loaded: LoadedSnapshot | None, header: BatchHeader) -> None:
        if loaded is None or not loaded.is_sound:
            self._not_compared(snapshot_id, "the snapshot is damaged")
            return
        self._check_timestamp(snapshot_id, loaded, header)
        self._check_note(snapshot_id, loaded)
        if self._replay is None:
            self._not_compared(snapshot_id, self._why_unknown)
            self._maybe_rebase(loaded)
            return
        started = self._replay.transaction_start_offset
        if started is not None:
            reason = f"it was taken inside the transaction that began at offset {started}"
            self._violation(Check.SNAPSHOT_STATE, snapshot_id, reason, remedies.COMPARE)
        if self._replay.fault_count:
            self._not_compared(snapshot_id, "records before it could not be replayed")
        else:
            self._differences(snapshot_id, loaded, self._replay)

    def _maybe_rebase(self, loaded: LoadedSnapshot | None) -> None:
        if self._replay is None and loaded is not None and loaded.is_sound:
            self._start(loaded.image, loaded.quorum)
            if self._chain.last_hash is None and loaded.last_audit_note is not None:
                self._chain.begin(loaded.last_audit_note)

    def _check_note(self, snapshot_id: SnapshotId, loaded: LoadedSnapshot) -> None:
        """A snapshot carries the newest note, if a program wrote it that knows of notes."""
        note, last_hash = loaded.last_audit_note, self._chain.last_hash
        if note is not None and last_hash is not None and note_hash(note) != last_hash:
            reason = "the audit note that it carries is not the last one of the log below it"
            self._violation(Check.AUDIT_NOTES, snapshot_id, reason, remedies.CHANGED_NOTES)

    def _check_timestamp(self, snapshot_id: SnapshotId, loaded: LoadedSnapshot, header: BatchHeader) -> None:
        said = loaded.last_contained_log_timestamp_ms
        if said != header.max_timestamp_ms:
            reason = (
                f"its header says the last record is of time {said}, the log says {header.max_timestamp_ms}"
            )
            self._note(Check.SNAPSHOT_NAMES, snapshot_id, reason, remedies.HARMLESS_TIME)

    def _differences(self, snapshot_id: SnapshotId, loaded: LoadedSnapshot, replay: StateReplay) -> None:
        self._findings.checked(Check.SNAPSHOT_STATE)
        voters = diff_voters(replay.quorum, loaded.quorum)
        found = chain(voters, diff_images(replay.image, loaded.image))
        first = list(islice(found, _DIFFERENCES_TOLD))
        if not first:
            return
        rest = sum(1 for _ in found)
        text = "; ".join(_described(change) for change in first) + (f"; and {rest} more" if rest else "")
        unknown = replay.unknown_count + loaded.unknown_count
        without = f" ({counted(unknown, 'record')} of unknown types left out)" if unknown else ""
        count = len(first) + rest
        reason = f"{counted(count, 'difference')} from the replay{without}: {text}"
        self._violation(Check.SNAPSHOT_STATE, snapshot_id, reason, remedies.COMPARE)

    def _close(self) -> None:
        """The replay ends here: is a transaction open?"""
        if self._chain.note_count:
            self._findings.checked(Check.AUDIT_NOTES, self._chain.note_count)
        if self._replay is None:
            return
        started = self._replay.transaction_start_offset
        self._findings.checked(Check.TRANSACTIONS)
        if started is not None:
            reason = f"the transaction that began at offset {started} is still open where the log ends"
            self._findings.add(
                Finding(
                    check=Check.TRANSACTIONS,
                    severity=Severity.NOTE,
                    file="",
                    reason=reason,
                    remedy=remedies.NEXT_LEADER,
                    offset=started,
                )
            )

    def _report(self, fault: ReplayFault) -> None:
        remedy = remedies.NEWER_SOFTWARE if fault.severity is Severity.NOTE else remedies.WRITER
        self._findings.add(
            Finding(
                check=fault.check,
                severity=fault.severity,
                file=fault.file,
                reason=fault.reason,
                remedy=remedy,
                position=fault.position,
                offset=fault.offset,
            )
        )

    def _report_audit(self, fault: AuditFault) -> None:
        self._findings.add(
            Finding(
                check=Check.AUDIT_NOTES,
                severity=Severity.VIOLATION,
                file=fault.file,
                reason=fault.reason,
                remedy=remedies.CHANGED_NOTES,
                position=fault.position,
                offset=fault.offset,
            )
        )

    def _not_compared(self, snapshot_id: SnapshotId, reason: str) -> None:
        self._findings.skip(Check.SNAPSHOT_STATE, f"{snapshot_id.file_name}: {reason}")

    def _violation(self, check: Check, snapshot_id: SnapshotId, reason: str, remedy: str) -> None:
        self._add(check, Severity.VIOLATION, snapshot_id, reason, remedy)

    def _note(self, check: Check, snapshot_id: SnapshotId, reason: str, remedy: str) -> None:
        self._add(check, Severity.NOTE, snapshot_id, reason, remedy)

    def _add(
        self, check: Check, severity: Severity, snapshot_id: SnapshotId, reason: str, remedy: str
    ) -> None:
        self._findings.add(
            Finding(
                check=check,
                severity=severity,
                file=snapshot_id.file_name,
                reason=reason,
                remedy=remedy,
                offset=snapshot_id.end_offset,
            )
        )


def _described(change: StateChange) -> str:
    fields = ", ".join(f"{field.name} {field.before} -> {field.after}" for field in change.fields[:3])
    return f"{change.kind} {change.subject} {change.action}" + (f" ({fields})" if fields else "")
