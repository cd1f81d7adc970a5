"""What a snapshot file says of itself: its header, how many records it has and whether it is whole.

Checksums are checked, but only control records are taken apart: this costs a fraction of loading the snapshot.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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
from kquorum.wire.record_batch import read_records


@dataclass(slots=True)
class SnapshotOutline:
    """`record_count` counts data records; `fault` is None for a whole file."""

    epoch: int | None = None
    record_count: int = 0
    last_contained_log_timestamp_ms: int | None = None
    kraft_version: int = 0
    voter_count: int | None = None
    has_footer: bool = False
    fault: str | None = None


def outline_of(view: memoryview) -> SnapshotOutline:
    """Never raises for what is in the bytes."""
    outline = SnapshotOutline()
    for found in walk_batches(view):
        if isinstance(found, Damage):
            outline.fault = outline.fault or f"{found.kind} at byte {found.position}: {found.reason}"
            continue
        if outline.epoch is None:
            outline.epoch = found.header.partition_leader_epoch
        if not found.header.is_control:
            outline.record_count += found.header.record_count
            continue
        try:
            for control in _controls(found):
                _take(outline, control)
        except DecodeError as error:
            outline.fault = outline.fault or f"byte {found.position}: {error}"
    if outline.fault is None and outline.last_contained_log_timestamp_ms is None:
        outline.fault = "it is empty" if not len(view) else "it has no header"
    if outline.fault is None and not outline.has_footer:
        outline.fault = "it has no footer: cut off or never finished"
    return outline


def _controls(found: ScannedBatch) -> Iterator[ControlRecord]:
    for record in read_records(found.data, 0, found.header):
        yield decode_control_record(record.key, record.value)


def _take(outline: SnapshotOutline, control: ControlRecord) -> None:
    match control:
        case SnapshotHeaderRecord():
            outline.last_contained_log_timestamp_ms = control.last_contained_log_timestamp
        case KRaftVersionRecord():
            outline.kraft_version = control.k_raft_version
        case VotersRecord():
            outline.voter_count = len(control.voters)
        case SnapshotFooterRecord():
            outline.has_footer = True
