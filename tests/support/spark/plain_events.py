"""The records of a log one after the other, for the replay in plain Python: only the wire formats are shared.

Transactions are held back until they end, as Kafka's loader does it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kquorum.snapshots.naming import snapshot_id_of
from kquorum.wire.control_records import SnapshotHeaderRecord, decode_control_record
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.record_batch import read_records
from kquorum.wire.record_frame import decode_record


@dataclass(frozen=True)
class Event:
    """A record, the offset and time at which it takes effect, and the batch it came in (None in a snapshot)."""

    offset: int
    timestamp_ms: int
    record: Any
    quorum_epoch: int
    batch: int | None
    is_control: bool = False

    @property
    def kind(self) -> str:
        return type(self.record).__name__


def log_events(metadata_folder: Path) -> Iterator[Event]:
    """Everything that counts in the log: its oldest snapshot if it does not begin at offset 0, then the log behind it.

    A log from offset 0 may have a snapshot that ends there, made when the folder was formatted.
    """
    log = metadata_folder / "__cluster_metadata-0"
    segments = sorted(log.glob("*.log"))
    snapshots = sorted(log.glob("*.checkpoint"))
    if int(segments[0].stem) == 0:
        snapshots = [path for path in snapshots if _end_offset(path) == 0]
    first_offset = _end_offset(snapshots[0]) if snapshots else 0
    if snapshots:
        yield from _snapshot_events(snapshots[0], first_offset - 1)
    for event in segment_events(metadata_folder):
        if event.offset >= first_offset:
            yield event


def committed(events: Iterable[Event]) -> Iterator[Event]:
    """Without the control records, and without what was written in transactions that came to nothing.

    What a leader writes behind one that it neither ends nor aborts counts: the End was lost.
    """
    held_back: list[Event] | None = None
    behind: list[Event] = []
    is_behind = False
    for event in events:
        match event.kind:
            case "LeaderChangeMessage":
                is_behind = held_back is not None
            case _ if event.is_control:
                continue
            case "BeginTransactionRecord":
                yield from behind
                held_back, behind, is_behind = [], [], False
            case "AbortTransactionRecord":
                held_back, behind, is_behind = None, [], False
            case "EndTransactionRecord":
                yield from (*(held_back or ()), *behind)
                held_back, behind, is_behind = None, [], False
            case _ if held_back is not None:
                (behind if is_behind else held_back).append(event)
            case _:
                yield event
    yield from behind


def _end_offset(snapshot: Path) -> int:
    snapshot_id = snapshot_id_of(snapshot.name)
    assert snapshot_id is not None
    return snapshot_id.end_offset


def _batches(path: Path) -> Iterator[ScannedBatch]:
    return (item for item in scan_batches(path.read_bytes()) if isinstance(item, ScannedBatch))


def segment_events(metadata_folder: Path) -> Iterator[Event]:
    """Every record of the log itself, whether it counts or not."""
    segments = sorted((metadata_folder / "__cluster_metadata-0").glob("*.log"))
    for batch in (batch for segment in segments for batch in _batches(segment)):
        header = batch.header
        for record in read_records(batch.data, 0, header):
            try:
                decoded: Any = (
                    decode_control_record(record.key, record.value)
                    if header.is_control
                    else decode_record(record.value or b"")
                )
            except DecodeError:
                decoded = None  # of a type or version from the future
            yield Event(
                record.offset,
                record.timestamp_ms,
                decoded,
                header.partition_leader_epoch,
                header.base_offset,
                header.is_control,
            )


def _snapshot_events(path: Path, last_offset: int) -> Iterator[Event]:
    timestamp_ms = -1
    for batch in _batches(path):
        header = batch.header
        for record in read_records(batch.data, 0, header):
            decoded: Any
            if header.is_control:
                decoded = decode_control_record(record.key, record.value)
                if isinstance(decoded, SnapshotHeaderRecord):
                    timestamp_ms = decoded.last_contained_log_timestamp
            else:
                decoded = decode_record(record.value or b"")
            yield Event(
                last_offset, timestamp_ms, decoded, header.partition_leader_epoch, None, header.is_control
            )
