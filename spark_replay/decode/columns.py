"""Columns to Arrow, and the batches and damaged places of one file as columns.

The rows are those that `decode.batch_row` makes, in their order.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kquorum.spark_replay.rows import DamageRow
from kquorum.wire.batch_runs import CODEC_MASK, CONTROL, HEADER, BatchRun
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES

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
