"""Runs of rows that belong together, as numbers of rows: what has no vectorised form in Arrow."""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
# Numbers of rows; -1 for none.
Rows: TypeAlias = NDArray[np.int64]


def starts_of(*columns: Any) -> Mask:
    """True where a row differs from the row before in one of the columns; the first row starts a run."""
    count = len(columns[0])
    starts = np.zeros(count, np.bool_)
    starts[:1] = True
    for column in columns:
        codes = column if pa.types.is_integer(column.type) else column.dictionary_encode().indices
        numbers = longs(codes, np.iinfo(np.int64).min)
        starts[1:] |= numbers[1:] != numbers[:-1]
    return starts


def first_rows(starts: Mask) -> Rows:
    """For each row the first of its run."""
    rows: Rows = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
    return rows


def carried_from(mask: Mask, first: Rows) -> Rows:
    """For each row the last one up to it, itself included, and not before `first`, where `mask` is set."""
    rows: Rows = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))
    return np.where(rows >= first, rows, -1)


def taken(column: Any, rows: Rows) -> Any:
    """The column's values at these rows, null for none."""
    missing = rows < 0
    return column.take(pa.array(rows, mask=missing) if missing.any() else pa.array(rows))


def is_valid(column: Any) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def longs(column: Any, missing: int) -> Rows:
    """Integers as 64 bits, `missing` for null."""
    numbers: Rows = pc.fill_null(column.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)
    return numbers


def list_sizes(column: Any) -> Rows:
    """The lengths of lists; 0 for null."""
    return longs(pc.list_value_length(column), 0)


def lists_differ(left: Any, right: Any) -> Mask:
    """Where two lists of integers, neither of them null, are not equal in length, values and order."""
    both = is_valid(left) & is_valid(right)
    differ: Mask = list_sizes(left) != list_sizes(right)
    same = both & ~differ
    left_same, right_same = left.filter(pa.array(same)), right.filter(pa.array(same))
    row_of = np.repeat(np.flatnonzero(same), list_sizes(left_same))
    unequal = longs(left_same.flatten(), 0) != longs(right_same.flatten(), 0)
    differ[row_of[unequal]] = True
    return differ & both
