"""Columns to Arrow, and the batches and damaged places of one file as columns.

The rows are those that `decode.batch_row` makes, in their order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kquorum.spark_replay.decode.record_rows import VALUE_COLUMNS, Kind, ValueReader, ValueRow, row_of_content
from kquorum.spark_replay.decode.records import Origin, control_content, undecodable_row
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import FileKind
from kquorum.wire.batch_runs import (
    CODEC_MASK,
    CONTROL,
    HEADER,
    LOG_APPEND_TIME,
    BatchRun,
    batch_of_run,
    plain_values,
)
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import SnapshotHeaderRecord
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, Record, read_records

_CODECS: Final = tuple(
    CompressionCodec(number).name.lower() if number <= CompressionCodec.ZSTD else "unknown"
    for number in range(CODEC_MASK + 1)
)

_LARGEST_MS: Final = (2**63 - 1) // 1000

Columns = Mapping[str, Any]
Numbers = NDArray[Any]


def record_batch(schema: Any, columns: Columns, count: int) -> Any:
    """A `pyarrow.RecordBatch` of `count` rows; a column is an array, one value for all rows, or missing for nulls."""
    return pa.RecordBatch.from_arrays(
        [_column(field.type, columns.get(field.name), count) for field in schema], schema=schema
    )


def _column(data_type: Any, values: Any, count: int) -> Any:
    if values is None:
        return pa.nulls(count, data_type)
    if isinstance(values, pa.Array):
        return values if values.type == data_type else values.cast(data_type)
    if isinstance(values, str | int):
        return pa.repeat(pa.scalar(values, data_type), count)
    return pa.array(values, data_type)


def timestamps(milliseconds: Numbers) -> Any:
    """As the timestamps of Spark, in microseconds; null for a time that is beyond these."""
    is_beyond = np.abs(milliseconds) > _LARGEST_MS
    microseconds = np.where(is_beyond, 0, milliseconds) * 1000
    return pa.array(microseconds, pa.timestamp("us", "UTC"), mask=is_beyond)


class BatchColumns:
    """Whole batches until they are taken as rows of the table `batches`."""

    def __init__(self) -> None:
        self._positions: list[Numbers] = []
        self._headers: list[Numbers] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, batch: ScannedBatch) -> None:
        self._positions.append(np.array([batch.position], np.int64))
        self._headers.append(np.frombuffer(bytes(batch.data[:HEADER_BYTES]), HEADER))
        self._count += 1

    def add_run(self, run: BatchRun) -> None:
        self._positions.append(run.positions)
        self._headers.append(run.headers)
        self._count += len(run)

    def take_headers(self) -> tuple[Numbers, Numbers]:
        """The positions of all, and their headers; empty afterwards."""
        taken = np.concatenate(self._positions), np.concatenate(self._headers)
        self._positions, self._headers, self._count = [], [], 0
        return taken

    def take(self) -> Columns:
        """Column by column; empty afterwards."""
        positions, headers = self.take_headers()
        base_offsets, attributes = native(headers["base_offset"]), native(headers["attributes"])
        timestamps_ms = native(headers["max_timestamp_ms"])
        return {
            "position": positions,
            "base_offset": base_offsets,
            "last_offset": base_offsets + headers["last_offset_delta"],
            "leader_epoch": native(headers["leader_epoch"]),
            "timestamp_ms": timestamps_ms,
            "timestamp": timestamps(timestamps_ms),
            "record_count": native(headers["record_count"]),
            "size_in_bytes": native(headers["batch_length"]) + np.int64(LOG_OVERHEAD_BYTES),
            "is_control": (attributes & CONTROL) != 0,
            "codec": pa.array(_CODECS).take(pa.array(attributes & CODEC_MASK)),
            "crc": headers["crc"].astype(np.int64),
        }


def native(numbers: Numbers) -> Numbers:
    """The same numbers in the byte order of this machine, one behind the other."""
    return numbers.astype(numbers.dtype.newbyteorder("="))


def damage_columns(rows: Sequence[DamageRow]) -> Columns:
    """Damaged places as rows of the table `damage`."""
    return dict(zip(DamageRow._fields, zip(*rows, strict=True), strict=True))


# The records of one file as Arrow columns: what is the same for a whole batch is repeated by numpy, not row by row.
#
# The rows are those that `decode.RecordDecoder` makes, in their order.

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

    Its only state between batches is the time at which a snapshot's records take effect, read from the header.
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


# A log file's records, batches and damaged places, collected and handed over as Arrow batches of one schema.

ROWS_PER_ARROW_BATCH: Final = 8192
# Rows of large records are handed over sooner: a row may be as large as a batch can be.
BYTES_GATHERED: Final = 32 * 1024 * 1024


class LogColumns:
    """What a scan of one file finds, of the kinds that `schemas` has Arrow schemas for (record, batch, damage); `fixed`
    are the columns which are the same in every row.

    Arrow batches have rows of one kind each, and at most ROWS_PER_ARROW_BATCH of them.
    """

    def __init__(
        self,
        schemas: Mapping[str, Any],
        origin: Origin,
        *,
        fixed: Mapping[str, str],
        show_secrets: bool,
        snapshot_timestamp_ms: int | None = None,
    ) -> None:
        self._schemas = schemas
        self._origin = origin
        self._fixed = {**fixed, "file": origin.file, "segment_base_offset": origin.segment_base_offset}
        self._batches = BatchColumns()
        self._damage: list[DamageRow] = []
        self._records = RecordColumns(
            origin, show_secrets=show_secrets, snapshot_timestamp_ms=snapshot_timestamp_ms
        )

    @property
    def is_full(self) -> bool:
        sizes = (len(self._records), len(self._batches), len(self._damage))
        return max(sizes) >= ROWS_PER_ARROW_BATCH or self._records.value_bytes >= BYTES_GATHERED

    def add(self, item: BatchRun | ScannedBatch | DamageRow) -> None:
        if isinstance(item, DamageRow):
            self._add_damage(item)
        elif isinstance(item, BatchRun):
            self._add_run(item)
        else:
            self._add_batch(item)

    def _add_run(self, run: BatchRun) -> None:
        if "batch" in self._schemas:
            self._batches.add_run(run)
        if "record" in self._schemas:
            found = self._records.add_run(run)
        elif "damage" in self._schemas:
            found = damage_in_run(run, self._origin)
        else:
            return
        for damage in found:
            self._add_damage(damage)

    def _add_batch(self, item: ScannedBatch) -> None:
        if "batch" in self._schemas:
            self._batches.add(item)
        if "record" in self._schemas:
            self._add_damage(self._records.add(item))
        elif "damage" in self._schemas:
            records = records_of(item, self._origin)
            self._add_damage(records if isinstance(records, DamageRow) else None)

    def _add_damage(self, damage: DamageRow | None) -> None:
        if damage is not None and "damage" in self._schemas:
            self._damage.append(damage)

    def take(self) -> Iterator[tuple[str, Any]]:
        """Everything added so far as `pyarrow.RecordBatch`es, each with its kind; nothing is left afterwards."""
        if count := len(self._records):
            yield from self._arrow_batches("record", self._records.take(), count)
        self._records.clear()
        if count := len(self._batches):
            yield from self._arrow_batches("batch", self._batches.take(), count)
        if self._damage:
            damage, self._damage = self._damage, []
            yield from self._arrow_batches("damage", damage_columns(damage), len(damage))

    def _arrow_batches(self, kind: str, columns: Columns, count: int) -> Iterator[tuple[str, Any]]:
        whole = record_batch(self._schemas[kind], {**columns, **self._fixed, "row_kind": kind}, count)
        for start in range(0, count, ROWS_PER_ARROW_BATCH):
            yield kind, whole.slice(start, ROWS_PER_ARROW_BATCH)
