"""Questions on DuckDB: each frame is a query in DuckDB's SQL, which runs in this process.

A frame knows the names of its columns, and every column in the SQL stands behind the name of its table (`t."offset"`),
so that no alias of the same SELECT is taken for it. Of types it knows which columns are structs or lists (`Shape`):
DuckDB would bind the whole query to say so.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import duckdb

from kquorum.private_files import writing_named
from kquorum.spark_replay.engine.column import OPERATORS, Column, ColumnOrName, WindowSpec, named
from kquorum.spark_replay.engine.frame import Frame, Row

_ROWS_A_FETCH: Final = 10_000
_ISO_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%gZ"
_WHOLE_NUMBER: Final = r"^[\x00-\x20]*([+-]?[0-9]+)[\x00-\x20]*$"
_TYPES: Final = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "long": "BIGINT",
    "bigint": "BIGINT",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
}
_numbers = itertools.count()


class DuckRow(tuple[Any, ...]):  # noqa: SLOT001 - a tuple of any length takes no slots
    """A row, or a struct in one, with PySpark's way to ask for a value by its name."""

    names: tuple[str, ...]

    def __new__(cls, names: tuple[str, ...], values: Sequence[Any]) -> Self:
        made = super().__new__(cls, values)
        made.names = names
        return made

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except ValueError:
            raise AttributeError(name) from None

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        return dict(zip(self.names, self, strict=True))


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a column's type without asking DuckDB: the fields of a struct, the elements of a list."""

    fields: Mapping[str, "Shape"] | None = None
    element: "Shape | None" = None


SCALAR: Final = Shape()


def shape_of(kind: Any) -> Shape:
    """Of one of DuckDB's types."""
    if kind.id == "struct":
        return Shape(fields={name: shape_of(each) for name, each in kind.children})
    if kind.id in ("list", "array"):
        return Shape(element=shape_of(kind.children[0][1]))
    return SCALAR


class DuckFrame(Frame):
    """`sql` is the query, in parentheses or the name of a table. `shared` are queries that it refers to by name."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        sql: str,
        columns: Sequence[str],
        *,
        shapes: Callable[[], Mapping[str, Shape]] | None = None,
        shared: Mapping[str, str] | None = None,
    ) -> None:
        self._connection = connection
        self._columns = list(columns)
        self._types: dict[str, Any] | None = None
        self._make_shapes = shapes
        self._shapes: Mapping[str, Shape] | None = None
        self._shared = dict(shared or {})
        self.sql = sql

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def types(self) -> dict[str, Any]:
        """DuckDB's type of each column."""
        if self._types is None:
            relation = self._cursor().sql(self._query())
            self._types = dict(zip(self._columns, relation.types, strict=True))
        return self._types

    @property
    def shapes(self) -> Mapping[str, Shape]:
        if self._shapes is None:
            made = self._make_shapes
            asked = {name: shape_of(kind) for name, kind in self.types.items()} if made is None else made()
            self._shapes = asked
        return self._shapes

    def _query(self, what: str = "*") -> str:
        parts = ", ".join(f"{name} AS {sql}" for name, sql in self._shared.items())
        return (f"WITH {parts} " if parts else "") + f"SELECT {what} FROM {self.sql} AS t"

    def shared(self) -> "DuckFrame":
        name = f"shared_{next(_numbers)}"
        return DuckFrame(
            self._connection,
            name,
            self._columns,
            shapes=lambda: self.shapes,
            shared={**self._shared, name: self.sql},
        )

    def select(self, *columns: ColumnOrName) -> "DuckFrame":
        parts = [part for column in columns for part in self._selected(column)]
        return self._projected([(name, sql) for name, sql, _ in parts], [column for _, _, column in parts])

    def _selected(self, column: ColumnOrName) -> Iterator[tuple[str, str, Column]]:
        if isinstance(column, str) and column == "*":
            yield from ((name, f"t.{quoted_name(name)}", named(name)) for name in self._columns)
        elif isinstance(column, str) and column.endswith(".*"):
            struct = named(column.removesuffix(".*"))
            of = self._sql(struct)
            fields = self._compiler().shape(struct).fields
            assert fields is not None, f"{column}: no struct"
            yield from ((name, f"{of}.{quoted_name(name)}", struct[name]) for name in fields)
        else:
            found = named(column)
            yield found.name or found.kind, self._sql(found), found

    def _projected(
        self, parts: Sequence[tuple[str, str]], columns: Sequence[Column], *, more: str = ""
    ) -> "DuckFrame":
        """A SELECT of `parts`, names and SQL, which are `columns`."""
        names = [name for name, _ in parts]
        listed = ", ".join(f"{sql} AS {quoted_name(name)}" for name, sql in parts)

        def shapes() -> dict[str, Shape]:
            compiler = self._compiler()
            return {name: compiler.shape(column) for name, column in zip(names, columns, strict=True)}

        return self._made(f"SELECT {listed} FROM {self.sql} AS t{more}", names, shapes)

    def where(self, condition: ColumnOrName) -> "DuckFrame":
        return self._same(f"SELECT * FROM {self.sql} AS t WHERE {self._sql(named(condition))}")

    def withColumns(self, columns: Mapping[str, Column]) -> "DuckFrame":  # noqa: N802
        parts = {name: named(name) for name in self._columns} | dict(columns)
        return self._projected(
            [(name, self._sql(column)) for name, column in parts.items()], list(parts.values())
        )

    def withColumnsRenamed(self, names: Mapping[str, str]) -> "DuckFrame":  # noqa: N802
        return self.select(*(named(name).alias(names.get(name, name)) for name in self._columns))

    def drop(self, *names: str) -> "DuckFrame":
        return self.select(*(named(name) for name in self._columns if name not in names))

    def join(self, other: Frame, on: str | Sequence[str] | Column, how: str = "inner") -> "DuckFrame":
        assert isinstance(other, DuckFrame)
        keys = [] if isinstance(on, Column) else [on] if isinstance(on, str) else list(on)
        right = [name for name in other._columns if name not in keys]
        left = [*keys, *(name for name in self._columns if name not in keys)]
        listed = [f"l.{quoted_name(name)}" for name in left] + [f"r.{quoted_name(name)}" for name in right]
        if isinstance(on, Column):
            sides = dict.fromkeys(self._columns, "l") | dict.fromkeys(other._columns, "r")
            condition = _Compiler(self, sides).sql(on)
        else:
            condition = " AND ".join(f"l.{quoted_name(key)} = r.{quoted_name(key)}" for key in keys)
        return self._made(
            f"SELECT {', '.join(listed)} FROM {self.sql} AS l {how.upper()} JOIN {other.sql} AS r ON {condition}",
            [*left, *right],
            lambda: {**other.shapes, **self.shapes},
            other,
        )

    def crossJoin(self, other: Frame) -> "DuckFrame":  # noqa: N802
        assert isinstance(other, DuckFrame)
        sql = f"SELECT l.*, r.* FROM {self.sql} AS l CROSS JOIN {other.sql} AS r"
        columns = [*self._columns, *other._columns]
        return self._made(sql, columns, lambda: {**other.shapes, **self.shapes}, other)

    def unionAll(self, other: Frame) -> "DuckFrame":  # noqa: N802
        assert isinstance(other, DuckFrame)
        sql = f"SELECT * FROM {self.sql} AS l UNION ALL SELECT * FROM {other.sql} AS r"
        return self._made(sql, self._columns, lambda: self.shapes, other)

    def unionByName(self, other: Frame) -> "DuckFrame":  # noqa: N802
        assert isinstance(other, DuckFrame)
        more = [name for name in other._columns if name not in self._columns]
        sql = f"SELECT * FROM {self.sql} AS l UNION ALL BY NAME SELECT * FROM {other.sql} AS r"
        columns = [*self._columns, *more]
        return self._made(sql, columns, lambda: {**other.shapes, **self.shapes}, other)

    def groupBy(self, *columns: ColumnOrName) -> "DuckGrouped":  # noqa: N802
        return DuckGrouped(self, [named(each) for each in columns])

    def rollup(self, *columns: ColumnOrName) -> "DuckGrouped":
        return DuckGrouped(self, [named(each) for each in columns], is_rollup=True)

    def orderBy(self, *columns: ColumnOrName) -> "DuckFrame":  # noqa: N802
        order = self._compiler().order(named(each) for each in columns)
        return self._same(f"SELECT * FROM {self.sql} AS t ORDER BY {order}")

    def limit(self, rows: int) -> "DuckFrame":
        return self._same(f"SELECT * FROM {self.sql} AS t LIMIT {int(rows)}")

    def distinct(self) -> "DuckFrame":
        return self._same(f"SELECT DISTINCT * FROM {self.sql} AS t")

    def readable(self) -> "DuckFrame":
        times = [name for name, kind in self.types.items() if str(kind).startswith("TIMESTAMP")]
        parts = {name: f"t.{quoted_name(name)}" for name in self._columns}
        for name in times:
            parts[name] = f"strftime(make_timestamp(epoch_us({parts[name]})), '{_ISO_FORMAT}')"
        if not times:
            return self
        listed = ", ".join(f"{sql} AS {quoted_name(name)}" for name, sql in parts.items())
        return self._same(f"SELECT {listed} FROM {self.sql} AS t")

    def broadcast(self) -> "DuckFrame":
        return self

    def kinds(self) -> dict[str, str]:
        return {name: _kind(str(kind)) for name, kind in self.types.items()}

    def collect(self) -> Sequence[Row]:
        result = self._run()
        return list(map(self._converter(result), result.fetchall()))

    def rows(self) -> Iterator[Row]:
        result = self._run()
        convert = self._converter(result)
        while fetched := result.fetchmany(_ROWS_A_FETCH):
            yield from map(convert, fetched)

    def count(self) -> int:
        (found,) = self._cursor().execute(self._query("count(*)")).fetchall()
        return int(found[0])

    @contextmanager
    def kept(self) -> Iterator["DuckFrame"]:
        table = self.as_table()
        try:
            yield table
        finally:
            self._cursor().execute(f"DROP TABLE {table.sql}")

    def as_table(self) -> "DuckFrame":
        """The same rows, computed now; they stay as long as the connection."""
        name = quoted_name(f"kept_{next(_numbers)}")
        self._cursor().execute(f"CREATE TABLE {name} AS {self._query()}")
        return DuckFrame(self._connection, name, self._columns, shapes=lambda: self.shapes)

    def write_parquet(self, folder: Path) -> None:
        # Not by DuckDB's COPY, which a connection that may not reach files refuses.
        import pyarrow.parquet as pq

        folder.mkdir()
        reader: Any = self._cursor().sql(self._query()).to_arrow_reader(_ROWS_A_FETCH)
        with (
            writing_named(folder / "part-00000.zstd.parquet") as file,
            pq.ParquetWriter(file, reader.schema, compression="zstd") as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)

    def _run(self) -> duckdb.DuckDBPyConnection:
        return self._cursor().execute(self._query())

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A result is read from its own connection, whatever is asked meanwhile."""
        return self._connection.cursor()

    def _converter(self, result: duckdb.DuckDBPyConnection) -> Callable[[Sequence[Any]], DuckRow]:
        names = tuple(self._columns)
        assert result.description is not None
        converters = [(place, _conversion(each[1])) for place, each in enumerate(result.description)]
        needed = [(place, convert) for place, convert in converters if convert is not None]

        def convert_row(values: Sequence[Any]) -> DuckRow:
            if needed:
                values = list(values)
                for place, convert in needed:
                    values[place] = convert(values[place])
            return DuckRow(names, values)

        return convert_row

    def _made(
        self,
        sql: str,
        columns: Sequence[str],
        shapes: Callable[[], Mapping[str, Shape]],
        other: "DuckFrame | None" = None,
    ) -> "DuckFrame":
        shared = self._shared if other is None else {**self._shared, **other._shared}
        return DuckFrame(self._connection, f"({sql})", columns, shapes=shapes, shared=shared)

    def _same(self, sql: str) -> "DuckFrame":
        """Of rows with the same columns."""
        return self._made(sql, self._columns, lambda: self.shapes)

    def _compiler(self) -> "_Compiler":
        return _Compiler(self, dict.fromkeys(self._columns, "t"))

    def _sql(self, column: Column) -> str:
        return self._compiler().sql(column)


def _kind(name: str) -> str:
    if name.startswith(("STRUCT", "MAP")):
        return "nested"
    is_number = "[" not in name and any(part in name for part in ("INT", "DOUBLE", "FLOAT", "DECIMAL"))
    return "number" if is_number and name != "INTERVAL" else "nested" if "STRUCT" in name else "other"


class DuckGrouped:
    def __init__(self, frame: DuckFrame, keys: Sequence[Column], *, is_rollup: bool = False) -> None:
        self._frame = frame
        self._keys = keys
        self._is_rollup = is_rollup

    def agg(self, *columns: Column) -> DuckFrame:
        frame = self._frame
        keys = [frame._sql(key) for key in self._keys]
        every = [*self._keys, *columns]
        grouped = f"ROLLUP ({', '.join(keys)})" if self._is_rollup else ", ".join(keys)
        parts = [(str(each.name), frame._sql(each)) for each in every]
        return frame._projected(parts, every, more=f" GROUP BY {grouped}" if keys else "")

    def count(self) -> DuckFrame:
        return self.agg(Column("count", (), "count"))


def _conversion(kind: Any) -> Callable[[Any], Any] | None:
    """What makes rows of the structs in a value of this type; None where there are none."""
    if kind.id == "struct":
        fields = kind.children
        names = tuple(name for name, _ in fields)
        inner = [_conversion(each) for _, each in fields]

        def struct(value: Any) -> Any:
            if value is None:
                return None
            parts = [
                value[name] if convert is None else convert(value[name])
                for name, convert in zip(names, inner, strict=True)
            ]
            return DuckRow(names, parts)

        return struct
    if kind.id in ("list", "array"):
        each = _conversion(kind.children[0][1])
        return None if each is None else lambda value: None if value is None else [each(v) for v in value]
    return None


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal_text(value: str) -> str:
    """A text in SQL; chr(0) cannot be written in one."""
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def duck_type(spark_type: str) -> str:
    """DuckDB's name of a type that Spark calls `spark_type`: `array<string>` is `VARCHAR[]`."""
    text = spark_type.strip()
    if text.startswith("array<"):
        return duck_type(text[len("array<") : -1]) + "[]"
    if text.startswith("struct<"):
        fields = [each.split(":", 1) for each in text[len("struct<") : -1].split(",")]
        return "STRUCT(" + ", ".join(f"{quoted_name(name)} {duck_type(kind)}" for name, kind in fields) + ")"
    return _TYPES[text]


class _Compiler:
    """Expressions over the columns of `frame`, each behind the name of the table that it is in (`sides`)."""

    def __init__(self, frame: DuckFrame, sides: Mapping[str, str]) -> None:
        self._frame = frame
        self._sides = sides

    def sql(self, column: Column) -> str:
        kind, args = column.kind, column.args
        if kind in OPERATORS:
            return f"({self.sql(args[0])} {OPERATORS[kind]} {self.sql(args[1])})"
        if kind in _PLAIN:
            return f"{_PLAIN[kind]}({', '.join(map(self.sql, args))})"
        made: str = getattr(self, f"_{kind}")(*args, **column.options)
        return made

    def order(self, columns: Iterator[Column]) -> str:
        """NULLs first ascending, and last descending."""
        parts = []
        for column in columns:
            is_down = column.kind == "desc"
            sql = self._sortable(column.args[0] if is_down else column)
            parts.append(f"{sql} {'DESC NULLS LAST' if is_down else 'ASC NULLS FIRST'}")
        return ", ".join(parts)

    def _sortable(self, column: Column) -> str:
        """Of a struct a key that sorts as its fields do, NULLs first."""
        sql, shape = self.sql(column), self.shape(column)
        return sql if shape.fields is None else _struct_key(sql, shape.fields)

    def shape(self, column: Column) -> Shape:
        """What the questions' structs and lists are; of other expressions `SCALAR`."""
        kind, args = column.kind, column.args
        if kind == "col":
            first, *fields = args[0].split(".")
            shape = self._frame.shapes.get(first, SCALAR)
            for field in fields:
                shape = (shape.fields or {}).get(field, SCALAR)
            return shape
        if kind == "struct":
            return Shape(fields={str(each.name): self.shape(each) for each in args})
        if kind == "field":
            return (self.shape(args[0]).fields or {}).get(args[1], SCALAR)
        if kind == "cast":
            return _shape_named(args[1])
        if kind == "when":
            return next((found for _, value in args if (found := self.shape(value)) != SCALAR), SCALAR)
        if kind in ("collect_list", "collect_set", "array"):
            return Shape(element=self.shape(args[0]) if args else SCALAR)
        if kind in ("get", "explode"):
            return self.shape(args[0]).element or SCALAR
        if kind == "transform":
            return Shape(element=SCALAR)
        if kind in _KEEPING:
            return self.shape(args[0])
        return SCALAR

    def _col(self, path: str) -> str:
        first, *fields = path.split(".")
        if first not in self._sides:
            raise KeyError(f"there is no column {first} among {', '.join(self._sides)}")
        return ".".join([self._sides[first], *map(quoted_name, (first, *fields))])

    def _field(self, struct: Column, name: str) -> str:
        return f"({self.sql(struct)}).{quoted_name(name)}"

    def _sql_text(self, text: str) -> str:
        """Within a lambda."""
        return text

    def _lit(self, value: object) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
        assert isinstance(value, str)
        return literal_text(value)

    def _cast(self, column: Column, data_type: str) -> str:
        return f"CAST({self.sql(column)} AS {duck_type(data_type)})"

    def _isin(self, column: Column, *values: Column) -> str:
        if not values:
            return "FALSE"
        return f"({self.sql(column)} IN ({', '.join(map(self.sql, values))}))"

    def _isnull(self, column: Column) -> str:
        return f"({self.sql(column)} IS NULL)"

    def _isnotnull(self, column: Column) -> str:
        return f"({self.sql(column)} IS NOT NULL)"

    def _eq_null_safe(self, left: Column, right: Column) -> str:
        return f"({self.sql(left)} IS NOT DISTINCT FROM {self.sql(right)})"

    def _not(self, column: Column) -> str:
        return f"(NOT {self.sql(column)})"

    def _when(self, *branches: tuple[Column, Column], otherwise: Column | None = None) -> str:
        parts = [f"WHEN {self.sql(condition)} THEN {self.sql(value)}" for condition, value in branches]
        last = "" if otherwise is None else f" ELSE {self.sql(otherwise)}"
        return f"(CASE {' '.join(parts)}{last} END)"

    def _over(self, column: Column, window: WindowSpec) -> str:
        parts = []
        if window.partition:
            parts.append(f"PARTITION BY {', '.join(map(self.sql, window.partition))}")
        if window.order:
            parts.append(f"ORDER BY {self.order(iter(window.order))}")
        if window.is_up_to_here:
            parts.append("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
        return f"({self._windowed(column)} OVER ({' '.join(parts)}))"

    def _windowed(self, column: Column) -> str:
        if column.kind == "sum":
            return f"sum({self.sql(column.args[0])})"
        return self.sql(column)

    def _lag(self, column: Column, offset: int, default: object) -> str:
        return f"lag({self.sql(column)}, {offset}, {self._lit(default)})"

    def _lead(self, column: Column, offset: int, default: object) -> str:
        return f"lead({self.sql(column)}, {offset}, {self._lit(default)})"

    def _last_known(self, column: Column) -> str:
        return f"last_value({self.sql(column)} IGNORE NULLS)"

    def _concat(self, *columns: Column) -> str:
        return "(" + " || ".join(map(self.sql, columns)) + ")"

    def _concat_ws(self, *columns: Column, separator: str) -> str:
        return f"concat_ws({', '.join([self._lit(separator), *map(self.sql, columns)])})"

    def _floor(self, column: Column) -> str:
        return f"CAST(floor({self.sql(column)}) AS BIGINT)"

    def _pmod(self, dividend: Column, divisor: Column) -> str:
        by = self.sql(divisor)
        return f"((({self.sql(dividend)} % {by}) + {by}) % {by})"

    def _try_subtract(self, left: Column, right: Column) -> str:
        return f"TRY({self.sql(left)} - {self.sql(right)})"

    def _try_int(self, column: Column) -> str:
        return f"TRY_CAST(regexp_extract({self.sql(column)}, '{_WHOLE_NUMBER}', 1) AS INTEGER)"

    def _struct(self, *columns: Column) -> str:
        fields = ", ".join(f"{self._lit(column.name)}: {self.sql(column)}" for column in columns)
        return f"{{{fields}}}"

    def _array(self, *columns: Column) -> str:
        return f"[{', '.join(map(self.sql, columns))}]"

    def _get(self, column: Column, index: Column) -> str:
        return f"list_extract({self.sql(column)}, CAST({self.sql(index)} AS BIGINT) + 1)"

    def _slice(self, column: Column, start: int, length: int) -> str:
        return f"list_slice({self.sql(column)}, {start}, {start + length - 1})"

    def _array_contains(self, column: Column, value: Column) -> str:
        of = self.sql(column)
        return f"(CASE WHEN {of} IS NOT NULL THEN list_contains({of}, {self.sql(value)}) END)"

    def _array_except(self, left: Column, right: Column) -> str:
        of, other = self.sql(left), self.sql(right)
        each, place = _variables()
        found = (
            f"list_filter({of}, lambda {each}, {place}: {_is_first(of, each, place)} "
            f"AND {_place_in(other, each)} IS NULL)"
        )
        return f"(CASE WHEN {other} IS NOT NULL THEN {found} END)"

    def _array_distinct(self, column: Column) -> str:
        of = self.sql(column)
        each, place = _variables()
        return f"list_filter({of}, lambda {each}, {place}: {_is_first(of, each, place)})"

    def _array_compact(self, column: Column) -> str:
        (each, _) = _variables()
        return f"list_filter({self.sql(column)}, lambda {each}: {each} IS NOT NULL)"

    def _array_join(self, column: Column, separator: str) -> str:
        return f"array_to_string({self.sql(column)}, {self._lit(separator)})"

    def _sort_array(self, column: Column, *, asc: bool) -> str:
        of = self.sql(column)
        order = "'ASC', 'NULLS FIRST'" if asc else "'DESC', 'NULLS LAST'"
        element = self.shape(column).element or SCALAR
        if element.fields is None:
            return f"list_sort({of}, {order})"
        each, _ = _variables()
        key = _struct_key(each, element.fields)
        keyed = f"list_transform({of}, lambda {each}: {{'key': {key}, 'value': {each}}})"
        return f"list_transform(list_sort({keyed}, {order}), lambda {each}: {each}.value)"

    def _explode(self, column: Column) -> str:
        return f"unnest({self.sql(column)})"

    def _filter(self, column: Column, *, function: Callable[..., Column]) -> str:
        (each, _) = _variables()
        body = self.sql(function(Column("sql_text", (each,))))
        return f"list_filter({self.sql(column)}, lambda {each}: {body})"

    def _transform(self, column: Column, *, function: Callable[..., Column]) -> str:
        each, place = _variables()
        if len(inspect.signature(function).parameters) == 1:
            body = self.sql(function(Column("sql_text", (each,))))
            return f"list_transform({self.sql(column)}, lambda {each}: {body})"
        arguments = Column("sql_text", (each,)), Column("sql_text", (f"({place} - 1)",))
        return f"list_transform({self.sql(column)}, lambda {each}, {place}: {self.sql(function(*arguments))})"

    def _first_known(self, column: Column) -> str:
        return f"any_value({self.sql(column)})"

    def _count(self, column: Column | None = None) -> str:
        return "count(*)" if column is None else f"count({self.sql(column)})"

    def _count_if(self, condition: Column) -> str:
        return f"count(*) FILTER (WHERE {self.sql(condition)})"

    def _count_distinct(self, *columns: Column) -> str:
        parts = [self.sql(each) for each in columns]
        if len(parts) == 1:
            return f"count(DISTINCT {parts[0]})"
        known = " AND ".join(f"{part} IS NOT NULL" for part in parts)
        return f"count(DISTINCT row({', '.join(parts)})) FILTER (WHERE {known})"

    def _sum(self, column: Column) -> str:
        return f"CAST(sum({self.sql(column)}) AS BIGINT)"

    def _min(self, column: Column) -> str:
        return self._extreme("min", column)

    def _max(self, column: Column) -> str:
        return self._extreme("max", column)

    def _extreme(self, name: str, column: Column) -> str:
        sql, fields = self.sql(column), self.shape(column).fields
        return f"{name}({sql})" if fields is None else f"arg_{name}({sql}, {_struct_key(sql, fields)})"

    def _min_by(self, column: Column, order: Column) -> str:
        return f"arg_min_null({self.sql(column)}, {self._sortable(order)})"

    def _max_by(self, column: Column, order: Column) -> str:
        return f"arg_max_null({self.sql(column)}, {self._sortable(order)})"

    def _mode(self, column: Column) -> str:
        counts = f"histogram({self.sql(column)})"
        return f"map_keys({counts})[list_position(map_values({counts}), list_max(map_values({counts})))]"

    def _median(self, column: Column) -> str:
        return f"quantile_disc({self.sql(column)}, 0.5)"

    def _collect_list(self, column: Column) -> str:
        sql = self.sql(column)
        return f"coalesce(list({sql}) FILTER (WHERE {sql} IS NOT NULL), [])"

    def _collect_set(self, column: Column) -> str:
        sql = self.sql(column)
        return f"coalesce(list(DISTINCT {sql}) FILTER (WHERE {sql} IS NOT NULL), [])"


# Functions whose value has the type of their first argument.
_KEEPING: Final = frozenset(
    {
        *("coalesce", "greatest", "least", "lag", "lead", "over", "first_known", "last_known", "min", "max"),
        *("min_by", "max_by", "mode", "sort_array", "slice", "filter", "concat"),
        *("array_except", "array_distinct", "array_compact"),
    }
)
_PLAIN: Final = {
    "coalesce": "coalesce",
    "greatest": "greatest",
    "least": "least",
    "startswith": "starts_with",
    "rlike": "regexp_matches",
    "size": "len",
    "flatten": "flatten",
    "grouping": "grouping",
}


def _variables() -> tuple[str, str]:
    """Names for the element and its place in a lambda, which no other lambda has."""
    number = next(_numbers)
    return f"each_{number}", f"place_{number}"


def _place_in(of: str, each: str) -> str:
    """Where the list `of` has `each` first, counted from 1, which may be NULL; NULL where it has it not."""
    value, _ = _variables()
    nulls = f"list_transform({of}, lambda {value}: {value} IS NULL)"
    place = f"CASE WHEN {each} IS NULL THEN list_position({nulls}, TRUE) ELSE list_position({of}, {each}) END"
    return f"nullif(({place}), 0)"


def _is_first(of: str, each: str, place: str) -> str:
    return f"{_place_in(of, each)} = {place}"


def _struct_key(sql: str, fields: Mapping[str, Shape]) -> str:
    """Sorts structs field by field, NULLs first; NULL for NULL."""
    parts = [f"({sql}).{quoted_name(name)}, 'ASC NULLS FIRST'" for name in fields]
    return f"(CASE WHEN {sql} IS NOT NULL THEN create_sort_key({', '.join(parts)}) END)"


def _shape_named(spark_type: str) -> Shape:
    text = spark_type.strip()
    if text.startswith("array<"):
        return Shape(element=_shape_named(text[len("array<") : -1]))
    if text.startswith("struct<"):
        fields = (each.split(":", 1) for each in text[len("struct<") : -1].split(","))
        return Shape(fields={name: _shape_named(kind) for name, kind in fields})
    return SCALAR
