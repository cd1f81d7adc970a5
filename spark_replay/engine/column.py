"""An expression over the columns of a frame, as a tree that each engine makes its own query of.

The names and meanings are PySpark's: a question reads as PySpark code, and `on_spark` and `on_duckdb` translate it.
NULLs sort first ascending and last descending, comparisons with NULL are NULL, and texts are compared by their UTF-8
bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

OPERATORS: Final = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "AND",
    "or": "OR",
}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """`kind` says what it is: a column, a literal, an operator or a function by its PySpark name; `args` are its parts,
    columns or plain values. `name` is what it is called in the frame that it makes a column of."""

    kind: str
    args: tuple[Any, ...]
    name: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def alias(self, name: str) -> "Column":
        return replace(self, name=name)

    def __getitem__(self, name: str) -> "Column":
        """A field of a struct."""
        return Column("field", (self, name), name)

    def cast(self, data_type: str) -> "Column":
        """`data_type` as Spark writes it: `long`, `array<string>`."""
        return Column("cast", (self, data_type), self.name)

    def isin(self, *values: object) -> "Column":
        listed = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        return Column("isin", (self, *map(_value, listed)))

    def between(self, lowest: object, highest: object) -> "Column":
        """Both inclusive."""
        return (self >= lowest) & (self <= highest)

    def isNull(self) -> "Column":  # noqa: N802 - PySpark's name
        return Column("isnull", (self,))

    def isNotNull(self) -> "Column":  # noqa: N802
        return Column("isnotnull", (self,))

    def eqNullSafe(self, other: object) -> "Column":  # noqa: N802
        """Equality for which NULL equals NULL; never NULL."""
        return Column("eq_null_safe", (self, _value(other)))

    def startswith(self, other: object) -> "Column":
        return Column("startswith", (self, _value(other)))

    def rlike(self, pattern: str) -> "Column":
        """Whether the regular expression is found in the text."""
        return Column("rlike", (self, _value(pattern)))

    def over(self, window: "WindowSpec") -> "Column":
        return Column("over", (self, window), self.name)

    def when(self, condition: "Column", value: object) -> "Column":
        assert self.kind == "when"
        return replace(self, args=(*self.args, (condition, _value(value))))

    def otherwise(self, value: object) -> "Column":
        assert self.kind == "when"
        return replace(self, options={"otherwise": _value(value)})

    def desc(self) -> "Column":
        return Column("desc", (self,))

    def __eq__(self, other: object) -> "Column":  # type: ignore[override]
        return _binary("eq", self, other)

    def __ne__(self, other: object) -> "Column":  # type: ignore[override]
        return _binary("ne", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> "Column":
        return _binary("lt", self, other)

    def __le__(self, other: object) -> "Column":
        return _binary("le", self, other)

    def __gt__(self, other: object) -> "Column":
        return _binary("gt", self, other)

    def __ge__(self, other: object) -> "Column":
        return _binary("ge", self, other)

    def __add__(self, other: object) -> "Column":
        return _binary("add", self, other)

    def __sub__(self, other: object) -> "Column":
        return _binary("sub", self, other)

    def __mul__(self, other: object) -> "Column":
        return _binary("mul", self, other)

    def __truediv__(self, other: object) -> "Column":
        """Of whole numbers too the exact quotient, as a double."""
        return _binary("div", self, other)

    def __and__(self, other: "Column") -> "Column":
        return _binary("and", self, other)

    def __or__(self, other: "Column") -> "Column":
        return _binary("or", self, other)

    def __invert__(self) -> "Column":
        return Column("not", (self,))

    def __bool__(self) -> bool:
        raise TypeError("a column has no truth of its own: combine conditions by &, | and ~")


ColumnOrName = Column | str


def _binary(kind: str, left: object, right: object) -> Column:
    return Column(kind, (left, _value(right)))


def _value(value: object) -> Column:
    """A plain value as a literal."""
    return value if isinstance(value, Column) else Column("lit", (value,))


def literal(value: object) -> Column:
    return _value(value)


def named(value: ColumnOrName) -> Column:
    """A text is the name of a column, with dots before the fields of a struct."""
    if isinstance(value, Column):
        return value
    return Column("col", (value,), value.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The rows that a window function looks at: all of the partition, or with an order those up to the current row and
    its peers; `is_up_to_here` is without the peers behind it."""

    partition: tuple[Column, ...] = ()
    order: tuple[Column, ...] = ()
    is_up_to_here: bool = False

    def orderBy(self, *columns: ColumnOrName) -> "WindowSpec":  # noqa: N802 - PySpark's name
        return replace(self, order=tuple(map(named, columns)))

    def up_to_here(self) -> "WindowSpec":
        """The rows from the first of the partition to the current one."""
        return replace(self, is_up_to_here=True)


class Window:
    """Makes window specifications, as PySpark's class of that name."""

    @staticmethod
    def partitionBy(*columns: ColumnOrName) -> WindowSpec:  # noqa: N802
        return WindowSpec(partition=tuple(map(named, columns)))

    @staticmethod
    def orderBy(*columns: ColumnOrName) -> WindowSpec:  # noqa: N802
        return WindowSpec(order=tuple(map(named, columns)))


Lambda = Callable[..., Column]
