"""The rows of log files, as the reader gives them to Spark."""

from typing import Any

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.decode.columns import ROWS_PER_ARROW_BATCH
from kquorum.spark_replay.decode.sources import LogFile
from kquorum.spark_replay.source import (
    ROW_KINDS,
    KraftLogReader,
)
from kquorum.spark_replay.tables.building.source_rows import SOURCE_ROWS

Rows = dict[str, list[dict[str, Any]]]


WHOLE = 1 << 40


def in_columns(
    *files: LogFile, rows: str = "all", split_bytes: int = WHOLE, show_secrets: bool = False
) -> Rows:
    reader = KraftLogReader(
        SOURCE_ROWS, files, ROW_KINDS[rows], split_bytes=split_bytes, show_secrets=show_secrets
    )
    found: Rows = {"record": [], "batch": [], "damage": []}
    for split in reader.partitions():
        for batch in reader.read(split):
            assert batch.schema == arrow_schema(SOURCE_ROWS)
            assert 0 < batch.num_rows <= ROWS_PER_ARROW_BATCH
            for row in batch.to_pylist():
                found[row["row_kind"]].append(row)
    return found
