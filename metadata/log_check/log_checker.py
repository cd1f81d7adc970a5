"""Checks the batches of a whole log, segment after segment, and replays them to compare each snapshot with the log.

Fed with what `walk_batches` finds; does no input or output, and holds no more than some batches and two images.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kquorum.metadata.log_check import remedies
from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.log_check.indexes import IndexWalk
from kquorum.metadata.log_check.snapshot_comparison import LoadedSnapshot, LogEnd, SnapshotComparison
from kquorum.metadata.log_check.state_replay import RecordedHash
from kquorum.snapshots.naming import SnapshotId
from kquorum.wire.batch_rules import header_fault, record_fault
from kquorum.wire.control_records import decode_control_record
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import Damage, ScannedBatch
from kquorum.wire.record_batch import Record, read_records


@dataclass(slots=True)
class LogFacts:
    """What the batches said: `epochs` are (epoch, start offset); the end offset is that of the last sound batch.

    `has_unread_segment`: the system did not let us read one, so what is in it is not known to be damaged.
    """

    start_offset: int | None = None
    end_offset: int | None = None
    segment_count: int = 0
    batch_count: int = 0
    record_count: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    is_damaged: bool = False
    ends_torn: bool = False
    has_unread_segment: bool = False


@dataclass(slots=True)
class _Segment:
    file: str
    is_last: bool
    indexes: Sequence[IndexWalk]
    expected: int | None


class LogChecker:
    """`load` reads a snapshot (None where it has no image); it is asked for each at most once. `has_come_up_to` says
    whether a log that is being written has reached an offset meanwhile. `recorded` are hashes to compare the replay
    with."""

    def __init__(
        self,
        findings: Findings,
        snapshots: Sequence[SnapshotId],
        load: Callable[[SnapshotId], LoadedSnapshot | None],
        has_come_up_to: Callable[[int], bool] = lambda _: False,
        recorded: Sequence[RecordedHash] = (),
    ) -> None:
        self.facts = LogFacts()
        self._findings = findings
        self.comparison = SnapshotComparison(findings, snapshots, load, recorded)
        self._segment = _Segment("", True, (), None)
        self._has_come_up_to = has_come_up_to
        self._next_offset: int | None = None
        self._gap: tuple[int, int] | None = None
        self._epoch = -1

    def begin_segment(
        self, file: str, base_offset: int | None, *, is_last: bool, indexes: Sequence[IndexWalk] = ()
    ) -> None:
        """`base_offset` is that of the file's name; None for a file with any other name."""
        self._findings.checked(Check.SEGMENTS)
        facts = self.facts
        is_first = not facts.segment_count
        facts.segment_count += 1
        if is_first:
            facts.start_offset = facts.end_offset = base_offset
        elif base_offset is not None and self._next_offset is not None and base_offset != self._next_offset:
            self._gap = (self._next_offset, base_offset)
            self.comparison.lose(f"records before offset {base_offset} are missing")
        expected = base_offset if base_offset is not None else self._next_offset
        self._segment = _Segment(file, is_last, indexes, expected)
        if is_first and base_offset is not None:
            self.comparison.begin(base_offset)

    def take(self, found: ScannedBatch | Damage) -> None:
        """The next batch of the segment, or what stands in its place."""
        self._maybe_tell_gap(found)
        if isinstance(found, Damage):
            self._take_damage(found)
        else:
            self._take_batch(found)

    def pass_over(self, reason: str) -> None:
        """The segment cannot be read at all."""
        segment = self._segment
        self._add(
            Check.SEGMENTS, Severity.DAMAGE, segment.file, reason, remedies.UNREADABLE, None, segment.expected
        )
        self.facts.is_damaged = self.facts.has_unread_segment = True
        self.comparison.lose(f"{segment.file} cannot be read")
        segment.expected = None
        for index in segment.indexes:
            index.pass_over()

    def end_segment(self) -> None:
        self._maybe_tell_gap(None)
        for index in self._segment.indexes:
            index.finish()
        self._next_offset = self._segment.expected

    def finish(self) -> None:
        facts = self.facts
        self.comparison.finish(
            LogEnd(
                offset=facts.end_offset,
                epoch=facts.epochs[-1][0] if facts.epochs else None,
                is_damaged=bool(facts.segment_count) and self._next_offset is None,
            ),
            self._has_come_up_to,
        )

    def _maybe_tell_gap(self, first: ScannedBatch | Damage | None) -> None:
        """A segment does not go on where the one before it ends: now its first batch says whether its name is right."""
        if self._gap is None:
            return
        (due, begins), self._gap = self._gap, None
        if isinstance(first, ScannedBatch) and first.header.base_offset == due:
            reason = f"by its name the segment begins at offset {begins}, but its first batch is at {due}"
            severity, remedy = Severity.VIOLATION, remedies.FETCH_AGAIN
        elif begins < due:
            reason = f"the segment begins at offset {begins}, but the one before it ends at {due}"
            severity, remedy = Severity.VIOLATION, remedies.FETCH_AGAIN
        else:
            reason = f"offsets {due} to {begins - 1} are missing before it: {due:020d}.log should be there"
            severity, remedy = Severity.DAMAGE, remedies.MISSING_FILE
        self._add(Check.SEGMENTS, severity, self._segment.file, reason, remedy, 0, begins)

    def _take_damage(self, damage: Damage) -> None:
        segment = self._segment
        is_torn = damage.kind == "torn" and segment.is_last
        kind = "torn" if is_torn else "corrupt"
        remedy = remedies.TORN if is_torn else remedies.FETCH_AGAIN
        self._findings.checked(Check.BATCHES)
        self._add(
            Check.BATCHES,
            Severity.DAMAGE,
            segment.file,
            f"{kind}: {damage.reason}",
            remedy,
            damage.position,
            segment.expected,
        )
        self.facts.is_damaged = True
        self.facts.ends_torn = is_torn
        self.comparison.lose(f"the log is {kind} behind offset {segment.expected}")
        segment.expected = None
        for index in segment.indexes:
            index.pass_over()

    def _take_batch(self, found: ScannedBatch) -> None:
        header, facts = found.header, self.facts
        facts.batch_count += 1
        self._findings.checked(Check.BATCHES)
        is_in_place = self._check_place(found)
        for index in self._segment.indexes:
            index.observe(found.position, header) if is_in_place else index.pass_over()
        records = self._read(found)
        if records is None:
            self.comparison.lose(f"the batch at offset {header.base_offset} cannot be read")
        else:
            facts.record_count += len(records)
            self._findings.checked(Check.RECORDS, len(records))
            self._replay(found, records)
        if is_in_place:
            facts.end_offset = header.next_offset
            self.comparison.reach(self._segment.file, header)

    def _check_place(self, found: ScannedBatch) -> bool:
        """Offsets go on without a gap, leader epochs never go back; answers whether the offset can be believed."""
        header, segment = found.header, self._segment
        self._findings.checked(Check.OFFSETS)
        is_in_place = segment.expected is None or header.base_offset == segment.expected
        if not is_in_place:
            reason = f"the batch begins at offset {header.base_offset}, but {segment.expected} is due"
            self._fault(Check.OFFSETS, found, reason)
            self.comparison.lose(f"offsets do not go on at {segment.expected}")
            # Either this offset is wrong or batches are missing before it: let the next batch say which.
            segment.expected = None
        else:
            segment.expected = header.next_offset
        if self.facts.start_offset is None:
            self.facts.start_offset = header.base_offset
            self.comparison.begin(header.base_offset)
        epoch = header.partition_leader_epoch
        if epoch < self._epoch:
            self._fault(
                Check.EPOCHS, found, f"the batch is of leader epoch {epoch}, after one of {self._epoch}"
            )
        elif epoch > self._epoch:
            self.facts.epochs.append((epoch, header.base_offset))
            self._findings.checked(Check.EPOCHS)
        self._epoch = epoch
        reason_or_none = header_fault(header)
        if reason_or_none is not None:
            self._fault(Check.BATCHES, found, reason_or_none)
        return is_in_place

    def _read(self, found: ScannedBatch) -> tuple[Record, ...] | None:
        try:
            records = read_records(found.data, 0, found.header)
        except DecodeError as error:
            reason = f"the checksum is right, but the records cannot be read: {error}"
            self._fault(Check.RECORDS, found, reason, Severity.DAMAGE)
            return None
        reason_or_none = record_fault(found.header, records)
        if reason_or_none is not None:
            self._fault(Check.RECORDS, found, reason_or_none)
        return records

    def _replay(self, found: ScannedBatch, records: tuple[Record, ...]) -> None:
        if not found.header.is_control:
            self._findings.checked(Check.METADATA, len(records))
            self.comparison.take(self._segment.file, found.position, found.header, found.data, records)
            return
        self._findings.checked(Check.CONTROL, len(records))
        try:
            controls = [decode_control_record(record.key, record.value) for record in records]
        except DecodeError as error:
            self._fault(Check.CONTROL, found, str(error), Severity.DAMAGE)
            return
        self.comparison.take_controls(controls, found.header.partition_leader_epoch)

    def _fault(
        self, check: Check, found: ScannedBatch, reason: str, severity: Severity = Severity.VIOLATION
    ) -> None:
        remedy = remedies.FETCH_AGAIN if check in (Check.OFFSETS, Check.EPOCHS) else remedies.WRITER
        self._add(
            check, severity, self._segment.file, reason, remedy, found.position, found.header.base_offset
        )

    def _add(
        self,
        check: Check,
        severity: Severity,
        file: str,
        reason: str,
        remedy: str,
        position: int | None,
        offset: int | None,
    ) -> None:
        self._findings.add(
            Finding(
                check=check,
                severity=severity,
                file=file,
                reason=reason,
                remedy=remedy,
                position=position,
                offset=offset,
            )
        )
