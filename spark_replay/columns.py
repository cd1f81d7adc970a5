"""Collects rows of several kinds and hands them over as one Arrow batch of the union of their columns."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from spark_replay.rows import RecordRow, Row

# `json.dumps` with options makes an encoder for each call.
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def payload_text(payload: Mapping[str, object] | None) -> str | None:
    """A record's fields as compact JSON."""
    return None if payload is None else _ENCODE(payload)


class ColumnBuffer:
    """Rows by kind until they are taken; `fixed` holds the columns which are the same in every row."""

    def __init__(self, schema: Any, fixed: Mapping[str, str]) -> None:
        self._schema = schema
        self._fixed = fixed
        self._rows: dict[str, list[Row]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, kind: str, row: Row) -> None:
        self._rows.setdefault(kind, []).append(row)
        self._count += 1

    def take(self) -> Any:
        """Everything added so far as one `pyarrow.RecordBatch`; the buffer is empty afterwards."""
        tables = [self._table(kind, rows) for kind, rows in self._rows.items()]
        self._rows, self._count = {}, 0
        (batch,) = pa.concat_tables(tables).combine_chunks().to_batches()
        return batch

    def _table(self, kind: str, rows: list[Row]) -> Any:
        names = rows[0]._fields
        values: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
        if isinstance(rows[0], RecordRow):
            values["payload"] = [payload_text(payload) for payload in values["payload"]]
        fixed = {**self._fixed, "row_kind": kind}
        return pa.table(
            [self._column(field, values, fixed, len(rows)) for field in self._schema], schema=self._schema
        )

    def _column(self, field: Any, values: Mapping[str, Any], fixed: Mapping[str, str], count: int) -> Any:
        if field.name in values:
            return pa.array(values[field.name], field.type)
        if field.name in fixed:
            return pa.repeat(pa.scalar(fixed[field.name], field.type), count)
        return pa.nulls(count, field.type)
