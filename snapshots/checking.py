"""Everything that can be wrong with a snapshot file as such, told fault by fault while its records are read.

The reader that a node uses gives up at the first fault; this one goes on, to say all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kquorum.wire.batch_rules import header_fault, record_fault
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control_record,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import Damage, ScannedBatch
from kquorum.wire.record_batch import HEADER_BYTES, Record, read_records


@dataclass(frozen=True, slots=True)
class SnapshotFault:
    """`number` is that of the record in the file; `is_damage` tells bytes that cannot be read from a broken rule."""

    position: int
    number: int | None
    reason: str
    is_damage: bool = False


class SnapshotScan:
    """Read `data_batches` to the end; what the file says and what is wrong with it is known after that.

    `record_count` counts data records, `epoch` is the one that every batch must have (None: any).
    """

    def __init__(
        self, view: memoryview, report: Callable[[SnapshotFault], None], *, epoch: int | None = None
    ) -> None:
        self._view = view
        self._report = report
        self._epoch = epoch
        self._expected: int | None = 0
        self._is_open = False
        self.has_footer = False
        self.batch_count = 0
        self.record_count = 0
        self.last_contained_log_timestamp_ms: int | None = None
        self.kraft_version = 0
        self.voters: VotersRecord | None = None

    def data_batches(self) -> Iterator[tuple[ScannedBatch, tuple[Record, ...]]]:
        """Every readable data batch with its records, in order."""
        for found in walk_batches(self._view):
            if isinstance(found, Damage):
                self._fault(
                    found.position,
                    f"{found.kind}: {found.reason}",
                    number=self._expected,
                    is_damage=True,
                )
                self._expected = None
                continue
            records = self._read(found)
            if records is None:
                continue
            if found.header.is_control:
                self._take_controls(found, records)
                continue
            if not self._is_open and self.batch_count == 1:
                self._fault(found.position, "the file does not begin with a snapshot header", number=0)
            self.record_count += len(records)
            yield found, records
        self._check_end()

    def _read(self, found: ScannedBatch) -> tuple[Record, ...] | None:
        """The records after all checks of the batch; None where they cannot be read."""
        self.batch_count += 1
        header, position = found.header, found.position
        if self.has_footer:
            self._fault(position, "a batch follows the footer", number=header.base_offset)
        if self._expected is not None and header.base_offset != self._expected:
            reason = f"the batch begins with record {header.base_offset}, but {self._expected} is due"
            self._fault(position, reason, number=self._expected)
        if self._epoch is not None and header.partition_leader_epoch != self._epoch:
            reason = (
                f"the batch is of epoch {header.partition_leader_epoch}, the file's name says {self._epoch}"
            )
            self._fault(position, reason, number=header.base_offset)
        self._expected = header.next_offset
        reason_or_none = header_fault(header)
        if reason_or_none is not None:
            self._fault(position, reason_or_none, number=header.base_offset)
        try:
            records = read_records(found.data, 0, header)
        except DecodeError as error:
            reason = f"the checksum is right, but the records cannot be read: {error}"
            self._fault(position, reason, number=header.base_offset, is_damage=True)
            return None
        reason_or_none = record_fault(header, records)
        if reason_or_none is not None:
            self._fault(position, reason_or_none, number=header.base_offset)
        return records

    def _take_controls(self, found: ScannedBatch, records: tuple[Record, ...]) -> None:
        try:
            controls = [decode_control_record(record.key, record.value) for record in records]
        except DecodeError as error:
            self._fault(found.position, str(error), number=found.header.base_offset, is_damage=True)
            return
        number = found.header.base_offset
        if self.batch_count == 1:
            self._take_header(found.position, controls)
        elif any(isinstance(control, SnapshotFooterRecord) for control in controls):
            if len(controls) > 1:
                self._fault(found.position, "the footer is not alone in its batch", number=number)
            self.has_footer = True
        else:
            names = ", ".join(type(control).__name__ for control in controls)
            self._fault(found.position, f"a control batch in the middle holds {names}", number=number)

    def _take_header(self, position: int, controls: list[ControlRecord]) -> None:
        if not controls or not isinstance(controls[0], SnapshotHeaderRecord):
            self._fault(position, "the file does not begin with a snapshot header", number=0)
        self._is_open = True
        for control in controls:
            if isinstance(control, SnapshotHeaderRecord):
                self.last_contained_log_timestamp_ms = control.last_contained_log_timestamp
            elif isinstance(control, KRaftVersionRecord):
                self.kraft_version = control.k_raft_version
            elif isinstance(control, VotersRecord):
                self.voters = control
            else:
                self._fault(position, f"the header's batch holds a {type(control).__name__}", number=0)

    def _check_end(self) -> None:
        if len(self._view) < HEADER_BYTES:
            if not len(self._view):
                self._fault(0, "the file is empty", number=0, is_damage=True)
        elif not self.has_footer:
            reason = "the footer is missing: the file was cut off or never finished"
            self._fault(len(self._view), reason, number=self._expected, is_damage=True)

    def _fault(self, position: int, reason: str, *, number: int | None, is_damage: bool = False) -> None:
        self._report(SnapshotFault(position, number, reason, is_damage))
