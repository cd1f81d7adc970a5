"""The rows of a log made one by one, as `log dump` makes them and the audit once did: the measure of its columns."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kquorum.spark_replay.decode.columns import ROWS_PER_ARROW_BATCH
from kquorum.spark_replay.decode.records import RecordDecoder, batch_row, origin_of, scan
from kquorum.spark_replay.decode.rows import BatchRow, DamageRow, RecordRow
from kquorum.spark_replay.decode.sources import LogFile
from kquorum.wire.primitives import Buffer

_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def rows_of(buffer: Buffer, file: LogFile) -> Iterator[tuple[str, RecordRow | BatchRow | DamageRow]]:
    """Every row with its kind: record, batch or damage."""
    origin = origin_of(file)
    decoder = RecordDecoder(origin)
    for item in scan(buffer, origin):
        if isinstance(item, DamageRow):
            yield "damage", item
            continue
        yield "batch", batch_row(item, origin)
        for row in decoder.rows(item):
            yield ("damage" if isinstance(row, DamageRow) else "record"), row


def arrow_batches(schema: Any, buffer: Buffer, file: LogFile) -> Iterator[Any]:
    """The same as Arrow batches, rows of several kinds in one."""
    rows: dict[str, list[RecordRow | BatchRow | DamageRow]] = {}
    count = 0
    for kind, row in rows_of(buffer, file):
        rows.setdefault(kind, []).append(row)
        count += 1
        if count >= ROWS_PER_ARROW_BATCH:
            yield _arrow_batch(schema, rows, file)
            rows, count = {}, 0
    if rows:
        yield _arrow_batch(schema, rows, file)


def _arrow_batch(schema: Any, rows: dict[str, list[RecordRow | BatchRow | DamageRow]], file: LogFile) -> Any:
    tables = [_table(schema, kind, of_kind, file) for kind, of_kind in rows.items()]
    (batch,) = pa.concat_tables(tables).combine_chunks().to_batches()
    return batch


def _table(schema: Any, kind: str, rows: list[RecordRow | BatchRow | DamageRow], file: LogFile) -> Any:
    values: dict[str, Any] = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    if "payload" in values:
        values["payload"] = [None if each is None else _ENCODE(each) for each in values["payload"]]
    fixed = {"source": file.source, "file_kind": str(file.kind), "row_kind": kind}
    columns = [
        pa.array(values[field.name], field.type)
        if field.name in values
        else pa.repeat(pa.scalar(fixed[field.name], field.type), len(rows))
        if field.name in fixed
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
