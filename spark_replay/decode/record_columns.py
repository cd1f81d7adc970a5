"""The records of one file as Arrow columns: what is the same for a whole batch is repeated by numpy, not row by row.

The rows are those that `decode.RecordDecoder` makes, in their order.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kquorum.spark_replay.columns import BatchColumns, Columns, Numbers, native, timestamps
from kquorum.spark_replay.decode import Origin, control_content, undecodable_row
from kquorum.spark_replay.record_rows import VALUE_COLUMNS, Kind, ValueReader, ValueRow, row_of_content
from kquorum.spark_replay.rows import DamageRow
from kquorum.spark_replay.sources import FileKind
from kquorum.wire.batch_runs import CONTROL, LOG_APPEND_TIME, BatchRun, batch_of_run, plain_values
from kquorum.wire.control_records import SnapshotHeaderRecord
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.record_batch import Record, read_records

_LARGEST: Final = 2**63 - 1


def records_of(batch: ScannedBatch, origin: Origin) -> Sequence[Record] | DamageRow:
    """The batch's records; a damage row instead if they cannot be taken apart."""
    try:
        records = read_records(batch.data, 0, batch.header)
        for record in records:
            if not (abs(record.offset) <= _LARGEST and abs(record.timestamp_ms) <= _LARGEST):
                raise DecodeError("an offset or a timestamp is larger than there can be")
    except DecodeError as error:
        return undecodable_row(batch, origin, error)
    return records


def damage_in_run(run: BatchRun, origin: Origin) -> list[DamageRow]:
    """A row for each batch whose records cannot be taken apart."""
    is_plain, _ = plain_values(run)
    read = [records_of(batch_of_run(run, place), origin) for place in np.flatnonzero(~is_plain).tolist()]
    return [row for row in read if isinstance(row, DamageRow)]


class RecordColumns:
    """The records of batches, in order, until they are taken as rows of the table `records`.

    It remembers one thing between batches: the time as of which a snapshot's records count, which its header tells.
    """

    def __init__(
        self, origin: Origin, *, show_secrets: bool = False, snapshot_timestamp_ms: int | None = None
    ) -> None:
        self._origin = origin
        self._show_secrets = show_secrets
        self._row_of = ValueReader(show_secrets=show_secrets).row
        self._snapshot_timestamp_ms = snapshot_timestamp_ms
        self.clear()

    def clear(self) -> None:
        """`_counts`, as the batches, are of each batch that was added; `value_bytes` is of all; the rest is of each
        record."""
        self._batches = BatchColumns()
        self._counts: list[Numbers] = []
        self._offsets: list[Numbers] = []
        self._timestamps_ms: list[Numbers] = []
        self._state_timestamps_ms: list[int | None] = []
        self._rows: list[ValueRow] = []
        self.value_bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, batch: ScannedBatch) -> DamageRow | None:
        """Add the batch's records; a damage row instead if they cannot be taken apart."""
        before = len(self._rows)
        damage = self._add_read(batch)
        self._batches.add(batch)
        self._counts.append(np.array([len(self._rows) - before]))
        return damage

    def add_run(self, run: BatchRun) -> list[DamageRow]:
        """Add the records of many batches; a damage row for each whose records cannot be taken apart."""
        counts = run.headers["record_count"].astype(np.intp)
        is_plain, values = plain_values(run)
        self._batches.add_run(run)
        damage: list[DamageRow | None] = []
        taken = 0
        for start, stop, is_stretch_plain in _stretches(is_plain):
            if is_stretch_plain:
                count = int(counts[start:stop].sum())
                self._add_values(run.headers[start:stop], counts[start:stop], values[taken : taken + count])
                taken += count
                continue
            for place in range(start, stop):
                before = len(self._rows)
                damage.append(self._add_read(batch_of_run(run, place)))
                counts[place] = len(self._rows) - before
        self._counts.append(counts)
        return [row for row in damage if row is not None]

    def _add_values(self, headers: Numbers, counts: Numbers, values: Sequence[bytes]) -> None:
        """Of batches whose records have one timestamp each, and the offsets from their base offsets on."""
        firsts = np.cumsum(counts) - counts
        deltas = np.arange(len(values)) - np.repeat(firsts, counts)
        is_fixed = (headers["attributes"] & LOG_APPEND_TIME) != 0
        timestamps_ms = np.where(is_fixed, headers["max_timestamp_ms"], headers["base_timestamp_ms"])
        self._offsets.append(np.repeat(native(headers["base_offset"]), counts) + deltas)
        self._timestamps_ms.append(np.repeat(native(timestamps_ms), counts))
        self._rows += map(self._row_of, values)
        self.value_bytes += sum(map(len, values))
        if self._origin.kind is FileKind.SNAPSHOT:
            self._state_timestamps_ms += [self._snapshot_timestamp_ms] * len(values)

    def _add_read(self, batch: ScannedBatch) -> DamageRow | None:
        records = records_of(batch, self._origin)
        if isinstance(records, DamageRow):
            return records
        is_control = batch.header.is_control
        self._offsets.append(np.array([record.offset for record in records], np.int64))
        self._timestamps_ms.append(np.array([record.timestamp_ms for record in records], np.int64))
        self.value_bytes += sum(len(record.value or b"") for record in records)
        for record in records:
            self._rows.append(self._control_row(record) if is_control else self._row_of(record.value or b""))
            if self._origin.kind is FileKind.SNAPSHOT:
                self._state_timestamps_ms.append(self._snapshot_timestamp_ms)
        return None

    def _control_row(self, record: Record) -> ValueRow:
        content = control_content(record)
        if isinstance(content.entity, SnapshotHeaderRecord):
            self._snapshot_timestamp_ms = content.entity.last_contained_log_timestamp
        return row_of_content(content, show_secrets=self._show_secrets)

    def take(self) -> Columns:
        """Column by column, of one record or more; empty afterwards."""
        kinds, *values = zip(*self._rows, strict=True)
        columns = {
            **self._of_batches(),
            **_of_kinds(kinds),
            **dict(zip(VALUE_COLUMNS, values, strict=True)),
            **self._of_records(),
        }
        self.clear()
        return columns

    def _of_batches(self) -> Columns:
        positions, headers = self._batches.take_headers()
        counts = np.concatenate(self._counts)
        of_batches = {
            "position": positions,
            "batch_base_offset": native(headers["base_offset"]),
            "leader_epoch": native(headers["leader_epoch"]),
            "is_control": (headers["attributes"] & CONTROL) != 0,
        }
        return {name: np.repeat(values, counts) for name, values in of_batches.items()}

    def _of_records(self) -> Columns:
        offsets = pa.array(np.concatenate(self._offsets), pa.int64())
        times = np.concatenate(self._timestamps_ms)
        timestamps_ms = pa.array(times, pa.int64())
        columns = {"offset": offsets, "timestamp_ms": timestamps_ms, "timestamp": timestamps(times)}
        match self._origin.kind:
            case FileKind.LOG:
                columns |= {"state_offset": offsets, "state_timestamp_ms": timestamps_ms}
            case FileKind.SNAPSHOT:
                assert self._origin.end_offset is not None
                columns |= {"state_offset": self._origin.end_offset - 1}
                columns |= {"state_timestamp_ms": pa.array(self._state_timestamps_ms, pa.int64())}
        return columns


def _stretches(is_plain: Numbers) -> Iterator[tuple[int, int, bool]]:
    """Where batches of a kind begin and end, and whether they are plain."""
    changes = (np.flatnonzero(is_plain[1:] != is_plain[:-1]) + 1).tolist()
    for start, stop in zip([0, *changes], [*changes, len(is_plain)], strict=True):
        yield start, stop, bool(is_plain[start])


def _of_kinds(kinds: Sequence[Kind]) -> Columns:
    numbers: dict[Kind, int] = {}
    places = pa.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], pa.int32())
    of_each = zip(Kind._fields, zip(*numbers, strict=True), strict=True)
    types = {"record_type": pa.string(), "api_key": pa.int32(), "version": pa.int32()}
    return {name: pa.array(values, types[name]).take(places) for name, values in of_each}
