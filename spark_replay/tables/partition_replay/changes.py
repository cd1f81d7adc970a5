"""Rows of `partition_history` beside what the partition was before: what the tables of changes are made of."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.tables.partition_columns import BEFORE, CHANGES, MOMENT
from kquorum.spark_replay.tables.row_runs import Mask, is_valid, lists_differ, longs, starts_of

_SCHEMA: Final = arrow_schema(CHANGES)


def changes_of(history: Any) -> Any:
    """The rows with another leader or ISR than the row before them of their partition, which they have as `old_*`.

    The first row of a partition is its creation and no change. `history` is a RecordBatch of rows of
    `partition_history`, all those of each partition that is in it, in their order.
    """
    starts = starts_of(*map(history.column, ("source", "topic_id", "partition_id")))
    after = np.flatnonzero(~starts)
    differ = _leaders_differ(history, after)
    rest = after[~differ]
    isr = history.column("isr")
    others = lists_differ(isr.take(pa.array(rest)), isr.take(pa.array(rest - 1)))
    differ[~differ] = others
    now = history.take(pa.array(after[differ]))
    before = history.take(pa.array(after[differ] - 1))
    columns = [
        before.column(BEFORE[name]) if name in BEFORE else now.column(MOMENT.get(name, name))
        for name in _SCHEMA.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _leaders_differ(history: Any, after: Any) -> Mask:
    leader = history.column("leader")
    numbers, valid = longs(leader, 0), is_valid(leader)
    differ: Mask = (numbers[after] != numbers[after - 1]) & valid[after] & valid[after - 1]
    return differ
