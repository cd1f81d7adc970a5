"""The work of `audit sql`: a query on the tables."""

from collections import Counter

from pyspark.errors import PySparkException
from pyspark.sql import Row

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, plain
from kquorum.cli.commands.audit.query import OpenedTables
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.questions.sql import BadSql, make_views, query, what_is_wrong

_NUMBERS = ("int", "bigint", "smallint", "tinyint", "double", "float", "decimal")
_LONG = frozenset({"payload", "comment", "data_type", "reason", "problem"})


def answer_sql(tables: OpenedTables, source: str | None, text: str) -> Answer:
    """Raises CliError for what is no query of the tables."""
    make_views(tables, source)
    try:
        frame = query(tables.spark, text)
        frame = frame.toDF(*_distinct(frame.columns))
        kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    except BadSql as error:
        raise CliError(f"SQL: {error}", status=ExitStatus.USAGE) from None
    columns = [_mark(name, kind) + name for name, kind in zip(frame.columns, kinds, strict=True)]
    table = AnswerTable(
        name="rows",
        title="",
        frame=frame,
        columns=columns,
        cells=_cells,
        empty="no rows",
        is_counted=False,
    )
    return Answer(tables=[table])


def failed_sql(error: PySparkException) -> CliError:
    """Of a query that failed while it ran."""
    return CliError(f"SQL: {what_is_wrong(error)}", status=ExitStatus.USAGE)


def _mark(name: str, kind: str) -> str:
    """How `make_table` lays the column out: numbers to the right, and what is long for words on several lines."""
    if kind.startswith(_NUMBERS):
        return "#"
    return "~" if "struct" in kind or "map" in kind or name in _LONG else ""


def _distinct(names: list[str]) -> list[str]:
    """JSON has each name once."""
    counts, found = Counter[str](), []
    for name in names:
        counts[name] += 1
        found.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return found


def _cells(row: Row) -> list[object]:
    return [_cell(value) for value in row]


def _cell(value: object) -> object:
    """Numbers as they are stored: users copy offsets from the answer of a query."""
    known = plain(value)
    if known is None or isinstance(known, bool):
        return "" if known is None else str(known).lower()
    if isinstance(known, list) and not any(isinstance(each, dict | list) for each in known):
        return "[" + ", ".join("null" if each is None else str(each) for each in known) + "]"
    return str(known)
