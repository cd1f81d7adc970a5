"""A snapshot file to the image it stands for, with everything that is wrong with it on the way."""

from collections.abc import Callable
from dataclasses import dataclass

from metadata.image.delta import MetadataDelta
from metadata.image.errors import ReplayError
from metadata.image.image import MetadataImage, Provenance
from metadata.log_check.decoding import is_unknown_record
from metadata.log_check.quorum_view import QuorumView
from snapshots.checking import SnapshotFault, SnapshotScan
from snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from wire.errors import DecodeError
from wire.record_batch import Record
from wire.record_frame import decode_record


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
