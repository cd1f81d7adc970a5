"""Pieces of log files and their rows as Arrow batches, for the batch reader and the stream reader of `kraft_log`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    InputPartition,
)

from kquorum.spark_replay.decode import origin_of, snapshot_timestamp_ms
from kquorum.spark_replay.files import is_regular, map_file, read_listed
from kquorum.spark_replay.log_columns import LogColumns
from kquorum.spark_replay.runs import scan_runs
from kquorum.spark_replay.sources import FileKind, LogFile
from kquorum.spark_replay.splits import split_ranges
from kquorum.wire.batch_runs import BatchRun, one_by_one_if_compressed


@dataclass
class LogSplit(InputPartition):  # type: ignore[misc]
    """A piece of one file: the batches which begin in [start, end)."""

    file: LogFile
    start: int
    end: int


def splits_of(files: Iterable[LogFile], split_bytes: int) -> list[LogSplit]:
    """Pieces of about `split_bytes` of each file."""
    return [split for file in files for split in _splits(file, split_bytes)]


def _splits(file: LogFile, split_bytes: int) -> list[LogSplit]:
    if file.size_in_bytes <= split_bytes:
        return [LogSplit(file, 0, file.size_in_bytes)]
    index = Path(file.path).with_suffix(".index")
    index_bytes = read_listed(index) if file.kind is FileKind.LOG and is_regular(index) else b""
    ranges = split_ranges(map_file(file.path)[: file.size_in_bytes], index_bytes, split_bytes)
    return [LogSplit(file, start, end) for start, end in ranges]


def read_split(
    split: LogSplit, schemas: Mapping[str, Any], *, show_secrets: bool
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a split, of the kinds that `schemas` has Arrow schemas for, each batch with its kind."""
    file = split.file
    origin, view = origin_of(file), map_file(file.path)[: file.size_in_bytes]
    in_snapshot = file.kind is FileKind.SNAPSHOT and split.start > 0
    columns = LogColumns(
        schemas,
        origin,
        fixed={"source": file.source, "file_kind": str(file.kind)},
        show_secrets=show_secrets,
        snapshot_timestamp_ms=snapshot_timestamp_ms(view) if in_snapshot else None,
    )
    for item in scan_runs(view, origin, split.start, split.end):
        for piece in one_by_one_if_compressed(item) if isinstance(item, BatchRun) else (item,):
            columns.add(piece)
            if columns.is_full:
                yield from columns.take()
    yield from columns.take()
