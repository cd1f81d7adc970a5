"""Where the state of each log begins: at its first record, or at the snapshot that stands in for what was removed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kquorum.spark_replay.decode.files import map_listed
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.wire.control_records import (
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    decode_control_record_lenient,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.record_batch import read_records


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBase:
    """State of `source` = the records of `snapshot` (a file name, or None), then the log from `from_offset` on."""

    source: str
    snapshot: str | None
    from_offset: int


def state_bases(
    files: Iterable[LogFile], is_whole: Callable[[str], bool] | None = None
) -> tuple[StateBase, ...]:
    """One base for each source; `is_whole` answers for snapshots by their paths (default: `is_whole_snapshot`)."""
    ordered = sorted(files, key=lambda file: file.source)
    return tuple(
        _base(source, list(group), is_whole or is_whole_snapshot)
        for source, group in groupby(ordered, key=lambda file: file.source)
    )


def _base(source: str, files: list[LogFile], is_whole: Callable[[str], bool]) -> StateBase:
    """The earliest whole snapshot which the log continues without a gap, as it gives the longest history.

    A log from offset 0 needs none, but formatting may have left one that ends there, which holds the first voters
    (KIP-853). Without a log the newest snapshot is all there is.
    """
    starts = [file.base_offset or 0 for file in files if file.kind is FileKind.LOG]
    snapshots = sorted(
        (file for file in files if file.kind is FileKind.SNAPSHOT),
        key=lambda file: (file.end_offset or 0, file.epoch or 0),
    )
    log_start = min(starts, default=0)
    candidates = [file for file in snapshots if (file.end_offset or 0) >= log_start]
    if starts and log_start == 0:
        candidates = [file for file in candidates if file.end_offset == 0]
    for file in candidates if starts else reversed(candidates):
        if is_whole(file.path):
            return StateBase(source=source, snapshot=file.name, from_offset=file.end_offset or 0)
    return StateBase(source=source, snapshot=None, from_offset=log_start)


def is_whole_snapshot(path: str | Path) -> bool:
    """Whether it is sound from header to footer; Kafka's reader does not notice a missing footer."""
    first: ScannedBatch | None = None
    last: ScannedBatch | None = None
    for item in scan_batches(map_listed(path)):
        if isinstance(item, Damage):
            return False
        first, last = first or item, item
    if first is None or last is None:
        return False
    return _begins_with(first, SnapshotHeaderRecord) and _begins_with(last, SnapshotFooterRecord)


def _begins_with(batch: ScannedBatch, kind: type[object]) -> bool:
    if not batch.header.is_control:
        return False
    try:
        records = read_records(batch.data, 0, batch.header)
    except DecodeError:
        return False
    if not records:
        return False
    return isinstance(decode_control_record_lenient(records[0].key, records[0].value).record, kind)
