"""Replays batches that were read already into images, and says which record of which file would not go in."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadata.image.errors import ReplayError
from metadata.image.image import MetadataImage
from metadata.loader import MetadataLoader
from metadata.log_check.decoding import is_unknown_record
from metadata.log_check.findings import Check, Severity
from metadata.log_check.quorum_view import QuorumView
from wire.control_records import ControlRecord
from wire.log_batch import LogBatch
from wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from wire.record_batch import HEADER_BYTES, BatchHeader, Record

# One image is made per so many records: enough to make its cost small, few enough to hold in memory.
_RECORDS_AT_A_TIME = 32_768
_TRANSACTION_MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


@dataclass(frozen=True, slots=True)
class ReadBatch(LogBatch):
    """A batch whose records were split already; of `data` only the header is kept."""

    split_records: tuple[Record, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        return self.split_records


@dataclass(frozen=True, slots=True)
class ReplayFault:
    """A record that could not be decoded (METADATA) or contradicts the state (REPLAY, TRANSACTIONS)."""

    check: Check
    severity: Severity
    file: str
    position: int
    offset: int
    reason: str


class StateReplay:
    """The image and the quorum as of the last batch taken, from `image` on.

    `unknown_count` counts records of unknown types, which an image lacks; `fault_count` everything graver.
    """

    def __init__(
        self, image: MetadataImage, quorum: QuorumView, report: Callable[[ReplayFault], None]
    ) -> None:
        self._loader = MetadataLoader(image, on_fault=self._on_fault)
        self._report = report
        self._waiting: list[LogBatch] = []
        self._waiting_records = 0
        self._places: list[tuple[int, str, int]] = []
        self.quorum = quorum
        self.unknown_count = 0
        self.fault_count = 0

    def take(
        self, file: str, position: int, header: BatchHeader, data: memoryview, records: Sequence[Record]
    ) -> None:
        """Replay a data batch, or as many of its records as are given."""
        self._places.append((header.base_offset, file, position))
        self._waiting.append(
            ReadBatch(
                base_offset=header.base_offset,
                last_offset=records[-1].offset if records else header.last_offset,
                leader_epoch=header.partition_leader_epoch,
                is_control=header.is_control,
                data=bytes(data[:HEADER_BYTES]),
                split_records=tuple(records),
            )
        )
        self._waiting_records += len(records)
        if self._waiting_records >= _RECORDS_AT_A_TIME:
            self._flush()

    def take_controls(self, controls: Sequence[ControlRecord], epoch: int) -> None:
        self.quorum = self.quorum.after(controls, epoch)

    @property
    def image(self) -> MetadataImage:
        """As of the last batch; while a transaction is open, as of the record before it."""
        self._flush()
        return self._loader.image

    @property
    def transaction_start_offset(self) -> int | None:
        self._flush()
        return self._loader.transaction_start_offset

    @property
    def last_audit_note(self) -> bytes | None:
        """The newest that came by in what the image contains."""
        self._flush()
        return self._loader.last_audit_note

    def finish(self) -> None:
        """Replay what waits, so that every fault is reported."""
        self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._loader.handle_commit(self._waiting)
            self._waiting, self._places, self._waiting_records = [], [], 0

    def _on_fault(self, error: ReplayError) -> None:
        _, file, position = self._places[
            bisect_right(self._places, error.offset, key=lambda place: place[0]) - 1
        ]
        check, severity, reason = _classified(error)
        if severity is Severity.NOTE:
            self.unknown_count += 1
        else:
            self.fault_count += 1
        self._report(ReplayFault(check, severity, file, position, error.offset, reason))


def _classified(error: ReplayError) -> tuple[Check, Severity, str]:
    record = error.record
    if record is None or isinstance(record, bytes):
        if record is not None and is_unknown_record(record):
            return Check.METADATA, Severity.NOTE, error.reason
        return Check.METADATA, Severity.DAMAGE, f"the record cannot be read: {error.reason}"
    reason = f"{type(record).__name__}: {error.reason}"
    if isinstance(record, _TRANSACTION_MARKERS):
        return Check.TRANSACTIONS, Severity.VIOLATION, reason
    return Check.REPLAY, Severity.VIOLATION, reason
