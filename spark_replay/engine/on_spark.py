"""Questions on Spark: each frame is a DataFrame, each expression a Column of PySpark's."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampType

from kquorum.spark_replay.engine.column import OPERATORS, Column, ColumnOrName, WindowSpec, named
from kquorum.spark_replay.engine.frame import Frame, Row

_ISO_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
_NUMBERS = ("int", "bigint", "smallint", "tinyint", "double", "float", "decimal")
# A whole number as Kafka's configs take it: Java trims what is no larger than a blank.
WHOLE_NUMBER = r"^[\x00-\x20]*([+-]?[0-9]+)[\x00-\x20]*$"


class SparkFrame(Frame):
    """`spark` is the DataFrame, with all that Spark can do."""

    def __init__(self, spark: DataFrame) -> None:
        self.spark = spark

    @property
    def columns(self) -> list[str]:
        return list(self.spark.columns)

    def select(self, *columns: ColumnOrName) -> "SparkFrame":
        return SparkFrame(self.spark.select(*map(_column_or_star, columns)))

    def where(self, condition: ColumnOrName) -> "SparkFrame":
        return SparkFrame(self.spark.where(spark_column(named(condition))))

    def withColumns(self, columns: Mapping[str, Column]) -> "SparkFrame":  # noqa: N802
        return SparkFrame(
            self.spark.withColumns({name: spark_column(each) for name, each in columns.items()})
        )

    def withColumnsRenamed(self, names: Mapping[str, str]) -> "SparkFrame":  # noqa: N802
        return SparkFrame(self.spark.withColumnsRenamed(dict(names)))

    def drop(self, *names: str) -> "SparkFrame":
        return SparkFrame(self.spark.drop(*names))

    def join(self, other: Frame, on: str | Sequence[str] | Column, how: str = "inner") -> "SparkFrame":
        condition = spark_column(on) if isinstance(on, Column) else on if isinstance(on, str) else list(on)
        return SparkFrame(self.spark.join(_frame(other), condition, how))

    def crossJoin(self, other: Frame) -> "SparkFrame":  # noqa: N802
        return SparkFrame(self.spark.crossJoin(_frame(other)))

    def unionAll(self, other: Frame) -> "SparkFrame":  # noqa: N802
        return SparkFrame(self.spark.unionAll(_frame(other)))

    def unionByName(self, other: Frame) -> "SparkFrame":  # noqa: N802
        return SparkFrame(self.spark.unionByName(_frame(other), allowMissingColumns=True))

    def groupBy(self, *columns: ColumnOrName) -> "SparkGrouped":  # noqa: N802
        return SparkGrouped(self.spark.groupBy(*_all(columns)))

    def rollup(self, *columns: ColumnOrName) -> "SparkGrouped":
        return SparkGrouped(self.spark.rollup(*_all(columns)))

    def orderBy(self, *columns: ColumnOrName) -> "SparkFrame":  # noqa: N802
        return SparkFrame(self.spark.orderBy(*_all(columns)))

    def limit(self, rows: int) -> "SparkFrame":
        return SparkFrame(self.spark.limit(rows))

    def distinct(self) -> "SparkFrame":
        return SparkFrame(self.spark.distinct())

    def readable(self) -> "SparkFrame":
        """PySpark would hand timestamps over in the zone of this machine, without saying so."""
        fields = self.spark.schema.fields
        times = [field.name for field in fields if isinstance(field.dataType, TimestampType)]
        quoted = {name: f"`{name.replace('`', '``')}`" for name in times}
        return SparkFrame(
            self.spark.withColumns({name: F.date_format(F.col(quoted[name]), _ISO_FORMAT) for name in times})
        )

    def broadcast(self) -> "SparkFrame":
        return SparkFrame(F.broadcast(self.spark))

    def shared(self) -> "SparkFrame":
        return self

    def kinds(self) -> dict[str, str]:
        return {each.name: _kind(each.dataType.simpleString()) for each in self.spark.schema.fields}

    def collect(self) -> Sequence[Row]:
        return cast(Sequence[Row], self.spark.collect())

    def rows(self) -> Iterator[Row]:
        return cast(Iterator[Row], self.spark.toLocalIterator())

    def count(self) -> int:
        return int(self.spark.count())

    @contextmanager
    def kept(self) -> Iterator["SparkFrame"]:
        kept = self.spark.persist()
        try:
            yield SparkFrame(kept)
        finally:
            kept.unpersist()

    def write_parquet(self, folder: Path) -> None:
        self.spark.write.parquet(str(folder))


def _kind(name: str) -> str:
    if name.startswith(_NUMBERS):
        return "number"
    return "nested" if "struct" in name or "map" in name else "other"


class SparkGrouped:
    def __init__(self, grouped: GroupedData) -> None:
        self._grouped = grouped

    def agg(self, *columns: Column) -> SparkFrame:
        return SparkFrame(self._grouped.agg(*_all(columns)))

    def count(self) -> SparkFrame:
        return SparkFrame(self._grouped.count())


def _frame(frame: Frame) -> DataFrame:
    assert isinstance(frame, SparkFrame)
    return frame.spark


def _all(columns: Sequence[ColumnOrName]) -> list[SparkColumn]:
    return [spark_column(named(each)) for each in columns]


def _column_or_star(column: ColumnOrName) -> SparkColumn | str:
    return column if isinstance(column, str) and column.endswith("*") else spark_column(named(column))


def spark_column(column: Column) -> SparkColumn:
    """The expression as PySpark's."""
    made = _made(column)
    is_as_named = column.kind == "col" and column.args[0] == column.name
    return made if column.name is None or is_as_named else made.alias(column.name)


def _made(column: Column) -> SparkColumn:
    kind, args = column.kind, column.args
    if kind == "spark":  # within a lambda
        return cast(SparkColumn, args[0])
    if kind == "col":
        return F.col(args[0])
    if kind == "lit":
        return F.lit(args[0])
    if kind in OPERATORS:
        return _operated(kind, spark_column(args[0]), spark_column(args[1]))
    if kind == "when":
        return _when(column)
    if kind == "over":
        return spark_column(args[0]).over(_window(args[1]))
    if kind in _METHODS:
        first, *others = args
        return _METHODS[kind](spark_column(first), *map(_maybe_column, others))
    parts = [spark_column(each) for each in args]
    if kind in _SPECIAL:
        return cast(SparkColumn, _SPECIAL[kind](*parts, **column.options))
    return cast(SparkColumn, getattr(F, kind)(*parts, **column.options))


def _maybe_column(value: object) -> object:
    return spark_column(value) if isinstance(value, Column) else value


def _operated(kind: str, left: SparkColumn, right: SparkColumn) -> SparkColumn:
    operations = {
        "eq": lambda: left == right,
        "ne": lambda: left != right,
        "lt": lambda: left < right,
        "le": lambda: left <= right,
        "gt": lambda: left > right,
        "ge": lambda: left >= right,
        "add": lambda: left + right,
        "sub": lambda: left - right,
        "mul": lambda: left * right,
        "div": lambda: left / right,
        "and": lambda: left & right,
        "or": lambda: left | right,
    }
    return operations[kind]()


def _when(column: Column) -> SparkColumn:
    (condition, value), *others = column.args
    made = F.when(spark_column(condition), spark_column(value))
    for condition, value in others:
        made = made.when(spark_column(condition), spark_column(value))
    return made.otherwise(spark_column(column.options["otherwise"])) if column.options else made


def _window(window: WindowSpec) -> Any:
    made = SparkWindow.partitionBy(*_all(window.partition)).orderBy(*_all(window.order))
    if window.is_up_to_here:
        return made.rowsBetween(SparkWindow.unboundedPreceding, SparkWindow.currentRow)
    return made


def _lambda(function: Any) -> Any:
    """PySpark counts the parameters of a function, and `index` it gives the place of the element."""
    if len(inspect.signature(function).parameters) == 1:
        return lambda each: spark_column(function(Column("spark", (each,))))
    return lambda each, index: spark_column(function(Column("spark", (each,)), Column("spark", (index,))))


_METHODS: dict[str, Any] = {
    "field": lambda column, name: column[name],
    "cast": lambda column, data_type: column.cast(data_type),
    "isin": lambda column, *values: column.isin(*values),
    "isnull": lambda column: column.isNull(),
    "isnotnull": lambda column: column.isNotNull(),
    "eq_null_safe": lambda column, other: column.eqNullSafe(other),
    "startswith": lambda column, other: column.startswith(other),
    "rlike": F.rlike,
    "not": lambda column: ~column,
    "desc": lambda column: column.desc(),
}
_SPECIAL: dict[str, Any] = {
    "try_int": lambda column: F.regexp_extract(column, WHOLE_NUMBER, 1).try_cast("int"),
    "count": lambda *columns: F.count(*columns) if columns else F.count("*"),
    "concat_ws": lambda *columns, separator: F.concat_ws(separator, *columns),
    "array_join": lambda column, separator: F.array_join(column, delimiter=separator),
    "filter": lambda column, function: F.filter(column, _lambda(function)),
    "transform": lambda column, function: F.transform(column, _lambda(function)),
    "first_known": lambda column: F.first(column, ignorenulls=True),
    "last_known": lambda column: F.last(column, ignorenulls=True),
    "mode": lambda column: F.mode(column, deterministic=True),
    "median": lambda column: F.percentile_approx(column, 0.5),
}
