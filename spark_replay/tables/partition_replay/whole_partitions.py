"""Sorted events of partitions in batches of any size, cut anew so that none cuts through a partition."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kquorum.spark_replay.tables.partition_columns import TOPIC
from kquorum.spark_replay.tables.row_runs import first_rows, starts_of

ROWS_AT_ONCE: Final = 65_536


def whole_partitions(batches: Iterable[Any], rows_at_once: int = ROWS_AT_ONCE) -> Iterator[Any]:
    """RecordBatches of `EVENTS`, sorted, of at least so many rows where there are; none goes on in the next one.

    What is told of a topic is repeated before each batch that begins within it.
    """
    waiting: list[Any] = []
    count, enough = 0, rows_at_once
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= enough:
            whole, rest = _without_last_partition(_joined(waiting))
            if whole.num_rows:
                yield whole
            waiting, count = [rest], rest.num_rows
            # A partition longer than a batch is not looked through again with every batch.
            enough = max(rows_at_once, 2 * count)
    if count:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _without_last_partition(events: Any) -> tuple[Any, Any]:
    """The events before those of the last partition, and those, after what is told of their topic."""
    new_topic = starts_of(events.column("source"), events.column("topic_id"))
    starts = np.flatnonzero(new_topic | starts_of(events.column("partition_id")))
    last = int(starts[-1])
    topic = int(first_rows(new_topic)[last])
    rest = events.slice(last)
    if topic < last and events.column("record_type")[topic].as_py() == TOPIC:
        rest = _joined([events.slice(topic, 1), rest])
    return events.slice(0, last), rest
