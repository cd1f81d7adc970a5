"""The functions that questions use, under PySpark's names and with its meaning.

A text is the name of a column, except where PySpark takes a literal (`when`, `lit`). What an aggregate sees of NULLs
is as in PySpark: `count_if` and `count` are 0 of nothing, `collect_list` leaves NULLs out, `max_by` skips rows whose
order is NULL, and the largest and smallest struct are found field by field.
"""

from collections.abc import Callable
from typing import Any

from kquorum.spark_replay.engine.column import Column, ColumnOrName, literal, named


def col(name: str) -> Column:
    return named(name)


def lit(value: object) -> Column:
    return literal(value)


def when(condition: Column, value: object) -> Column:
    return Column("when", ((condition, literal(value)),))


def desc(column: ColumnOrName) -> Column:
    return named(column).desc()


def _call(name: str, *args: Any, **options: Any) -> Column:
    return Column(name, args, options=options)


def coalesce(*columns: ColumnOrName) -> Column:
    return _call("coalesce", *map(named, columns))


def greatest(*columns: ColumnOrName) -> Column:
    return _call("greatest", *map(named, columns))


def least(*columns: ColumnOrName) -> Column:
    return _call("least", *map(named, columns))


def concat(*columns: ColumnOrName) -> Column:
    """Of texts or of arrays; NULL if one of them is."""
    return _call("concat", *map(named, columns))


def concat_ws(separator: str, *columns: ColumnOrName) -> Column:
    """Without those that are NULL."""
    return _call("concat_ws", *map(named, columns), separator=separator)


def floor(column: ColumnOrName) -> Column:
    return _call("floor", named(column))


def pmod(dividend: ColumnOrName, divisor: Column) -> Column:
    """The remainder, never negative."""
    return _call("pmod", named(dividend), divisor)


def try_subtract(left: ColumnOrName, right: ColumnOrName) -> Column:
    """NULL where the difference does not fit."""
    return _call("try_subtract", named(left), named(right))


def try_int(column: ColumnOrName) -> Column:
    """The int that a text of decimal digits spells; NULL for any other text."""
    return _call("try_int", named(column))


def struct(*columns: ColumnOrName) -> Column:
    parts = tuple(map(named, columns))
    assert all(part.name for part in parts), "the fields of a struct need names"
    return _call("struct", *parts)


def array(*columns: ColumnOrName) -> Column:
    return _call("array", *map(named, columns))


def size(column: ColumnOrName) -> Column:
    """Of an array; NULL of NULL."""
    return _call("size", named(column))


def get(column: ColumnOrName, index: object) -> Column:
    """The element, counted from 0; NULL where there is none."""
    return _call("get", named(column), literal(index))


def slice(column: ColumnOrName, start: int, length: int) -> Column:  # noqa: A001
    """From the element `start`, counted from 1."""
    return _call("slice", named(column), start=start, length=length)


def array_contains(column: ColumnOrName, value: object) -> Column:
    return _call("array_contains", named(column), literal(value))


def array_except(left: ColumnOrName, right: ColumnOrName) -> Column:
    """The elements of `left` that are not in `right`, each once, in order."""
    return _call("array_except", named(left), named(right))


def array_distinct(column: ColumnOrName) -> Column:
    return _call("array_distinct", named(column))


def array_compact(column: ColumnOrName) -> Column:
    """Without NULLs."""
    return _call("array_compact", named(column))


def array_join(column: ColumnOrName, separator: str) -> Column:
    return _call("array_join", named(column), separator=separator)


def sort_array(column: ColumnOrName, asc: bool = True) -> Column:
    return _call("sort_array", named(column), asc=asc)


def flatten(column: ColumnOrName) -> Column:
    return _call("flatten", named(column))


def explode(column: ColumnOrName) -> Column:
    """A row for each element; none for an empty array and for NULL."""
    return _call("explode", named(column))


def filter(column: ColumnOrName, function: Callable[[Column], Column]) -> Column:  # noqa: A001
    return _call("filter", named(column), function=function)


def transform(column: ColumnOrName, function: Callable[..., Column]) -> Column:
    """`function` gets the element, and if it takes a second argument the place, counted from 0."""
    return _call("transform", named(column), function=function)


def lag(column: ColumnOrName, offset: int = 1, default: object = None) -> Column:
    return _call("lag", named(column), offset=offset, default=default)


def lead(column: ColumnOrName, offset: int = 1, default: object = None) -> Column:
    return _call("lead", named(column), offset=offset, default=default)


def first_known(column: ColumnOrName) -> Column:
    """Aggregate: a value that is not NULL, if there is one; any, so for groups that have at most one."""
    return _call("first_known", named(column))


def last_known(column: ColumnOrName) -> Column:
    """Over a window: the last value that is not NULL."""
    return _call("last_known", named(column))


def count(column: ColumnOrName) -> Column:
    """Of rows by `*`, else of values that are not NULL."""
    is_of_rows = isinstance(column, str) and column == "*"
    return _call("count", *(() if is_of_rows else (named(column),)))


def count_if(condition: ColumnOrName) -> Column:
    return _call("count_if", named(condition))


def count_distinct(*columns: ColumnOrName) -> Column:
    """Without rows in which one of them is NULL."""
    return _call("count_distinct", *map(named, columns))


def sum(column: ColumnOrName) -> Column:  # noqa: A001
    """Of whole numbers."""
    return _call("sum", named(column))


def min(column: ColumnOrName) -> Column:  # noqa: A001
    return _call("min", named(column))


def max(column: ColumnOrName) -> Column:  # noqa: A001
    return _call("max", named(column))


def min_by(column: ColumnOrName, order: ColumnOrName) -> Column:
    return _call("min_by", named(column), named(order))


def max_by(column: ColumnOrName, order: ColumnOrName) -> Column:
    return _call("max_by", named(column), named(order))


def mode(column: ColumnOrName) -> Column:
    """The most frequent value; of several the smallest."""
    return _call("mode", named(column))


def median(column: ColumnOrName) -> Column:
    """Of the two in the middle the lower one."""
    return _call("median", named(column))


def collect_list(column: ColumnOrName) -> Column:
    """In no order."""
    return _call("collect_list", named(column))


def collect_set(column: ColumnOrName) -> Column:
    return _call("collect_set", named(column))


def grouping(column: ColumnOrName) -> Column:
    """Whether a row of a rollup is of all values of that key: 1 or 0."""
    return _call("grouping", named(column))
