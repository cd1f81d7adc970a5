"""What the tables of the state are made from. The pass that writes `records` leaves it; the build removes it last.

Most of a log says nothing about its state, or is about partitions. So the records of partitions are kept apart, their
payload parsed: Arrow's JSON reader takes a third of the time of Spark's. The rest without plain NoOps, the stateful
records, is small. `epochs` has a row for each epoch of each split.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql.types import LongType, StructField, StructType

from kquorum.spark_replay.arrow_types import arrow_schema, arrow_type
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.spark_replay.decode.split_facts import STATEFUL, EpochSpan
from kquorum.spark_replay.tables.building.frames import PARSED
from kquorum.spark_replay.tables.partition_replay.columns import PARTITION_PAYLOAD, PARTITION_TYPES
from kquorum.spark_replay.tables.records import RECORDS

_NOT_NEEDED: Final = ("raw", "problem")
_OF_PARTITIONS: Final = (
    *("source", "file", "file_kind", "offset", "batch_base_offset", "leader_epoch"),
    *("state_offset", "state_timestamp_ms", "record_type", "topic_id", "partition_id"),
)
_SPAN: Final = ("start_offset", "start_ms", "records", "last_record_ms")

STATEFUL_RECORDS: Final = StructType([each for each in RECORDS if each.name not in _NOT_NEEDED])
PARTITIONS: Final = StructType(
    [*(RECORDS[name] for name in _OF_PARTITIONS), StructField(PARSED, PARTITION_PAYLOAD)]
)
EPOCHS: Final = StructType(
    [
        RECORDS["source"],
        StructField("epoch", RECORDS["leader_epoch"].dataType),
        *(StructField(name, LongType()) for name in _SPAN),
    ]
)
STAGED: Final[Mapping[str, StructType]] = {
    STATEFUL: STATEFUL_RECORDS,
    "partitions": PARTITIONS,
    "epochs": EPOCHS,
}

_PARSE: Final = pj.ParseOptions(
    explicit_schema=arrow_schema(PARTITION_PAYLOAD),
    newlines_in_values=False,
    unexpected_field_behavior="ignore",
)


def counted_from(file: LogFile, base: StateBase) -> int | None:
    """From which offset on the records of `file` make the state of its source; None if they do not."""
    if file.kind is FileKind.LOG:
        return base.from_offset
    return 0 if file.kind is FileKind.SNAPSHOT and file.name == base.snapshot else None


def staged(records: Any, source: str, file_kind: str, from_offset: int | None) -> Iterator[tuple[str, Any]]:
    """A `pyarrow.RecordBatch` of records as those for STATEFUL and `partitions`."""
    types, payload = records.column("record_type"), records.column("payload")
    is_partition = pc.is_in(types, pa.array(PARTITION_TYPES))
    is_noted = pc.fill_null(pc.match_substring(payload, '"audit_note"'), fill_value=False)
    is_plain = pc.and_not(pc.equal(types, "NoOpRecord"), is_noted)
    stateful = records.filter(pc.invert(pc.or_(is_partition, is_plain)))
    if stateful.num_rows:
        yield (
            STATEFUL,
            _chosen(stateful, arrow_schema(STATEFUL_RECORDS), {"source": source, "file_kind": file_kind}),
        )
    if from_offset is None:
        return
    counts = pc.and_(pc.is_valid(payload), pc.greater_equal(records.column("offset"), from_offset))
    partitions = records.filter(pc.and_(is_partition, counts))
    if partitions.num_rows:
        fixed = {"source": source, "file_kind": file_kind}
        yield "partitions", _chosen(partitions, arrow_schema(PARTITIONS), fixed)


def epoch_rows(source: str, epochs: Mapping[int, EpochSpan]) -> Any:
    """The spans of one split as a `pyarrow.RecordBatch`."""
    spans = epochs.values()
    columns = [
        [source] * len(epochs),
        list(epochs),
        *([getattr(span, name) for span in spans] for name in _SPAN),
    ]
    schema = arrow_schema(EPOCHS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chosen(records: Any, schema: Any, fixed: Mapping[str, str]) -> Any:
    columns = {
        **{name: records.column(name) for name in records.schema.names},
        **{name: pa.repeat(pa.scalar(value), records.num_rows) for name, value in fixed.items()},
    }
    if PARSED in schema.names:
        columns[PARSED] = _parsed(records.column("payload"))
    return pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)


def _parsed(payloads: Any) -> Any:
    """One JSON text for each row, none of them null, as a struct array of PARTITION_PAYLOAD."""
    count = len(payloads)
    rows = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), payloads)
    text = pc.binary_join(rows, "\n")[0].as_buffer()
    options = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
    table = pj.read_json(pa.BufferReader(text), read_options=options, parse_options=_PARSE)
    assert table.num_rows == count, (table.num_rows, count)
    data_type = arrow_type(PARTITION_PAYLOAD)
    (chunk,) = table.select([each.name for each in data_type]).combine_chunks().to_batches()
    return pa.StructArray.from_arrays(chunk.columns, fields=list(data_type))
