"""The work of `audit sql`: a query on the tables."""

from typing import Final

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, give, plain
from kquorum.cli.commands.audit.options import Output
from kquorum.cli.commands.audit.query import AskedTables, chosen_source
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.engine.frame import Frame, Row
from kquorum.spark_replay.questions.sql import BadSql

_LONG: Final = frozenset({"payload", "comment", "data_type", "reason", "problem"})


class SqlSession:
    """The tables as views for one query after the other, on the engine that has them."""

    def __init__(self, tables: AskedTables, source: str | None) -> None:
        """`source` narrows the views to one log. Raises CliError for one that is not there."""
        from kquorum.spark_replay.engine.duckdb_tables import DuckTables

        self.tables = tables
        chosen = None if source is None else chosen_source(tables.manifest, source)
        if isinstance(tables, DuckTables):
            from kquorum.spark_replay.questions import duck_sql

            duck_sql.make_views(tables, chosen)
        else:
            from kquorum.cli.commands.audit.spark_tables import OpenedTables
            from kquorum.spark_replay.questions import spark_sql

            assert isinstance(tables, OpenedTables)
            spark_sql.make_views(tables, chosen)

    def names(self) -> dict[str, list[str]]:
        """The tables, each with its columns."""
        return {name: self.tables.frame(name).columns for name in self.tables.manifest.rows}

    def give(self, text: str, output: Output) -> None:
        """Print or write the answer. Raises CliError for what is no query of the tables, or fails."""
        from kquorum.spark_replay.engine.duckdb_tables import DuckTables

        tables = self.tables
        try:
            if isinstance(tables, DuckTables):
                import duckdb

                from kquorum.spark_replay.questions import duck_sql

                try:
                    give(answer_sql(duck_sql.query(tables, text)), output, tables.progress)
                except duckdb.InterruptException:
                    raise KeyboardInterrupt from None
                except duckdb.Error as error:
                    raise BadSql(duck_sql.what_is_wrong(error, tables)) from None
            else:
                from pyspark.errors import PySparkException

                from kquorum.cli.commands.audit.spark_tables import OpenedTables
                from kquorum.spark_replay.questions import spark_sql

                assert isinstance(tables, OpenedTables)
                try:
                    frame = spark_sql.query(tables.spark, text)
                    give(answer_sql(spark_sql.as_frame(frame)), output, tables.progress)
                except PySparkException as error:
                    raise BadSql(spark_sql.what_is_wrong(error)) from None
        except BadSql as error:
            raise CliError(f"SQL: {error}", status=ExitStatus.USAGE) from None


def answer_sql(frame: Frame) -> Answer:
    columns = [_mark(name, kind) + name for name, kind in frame.kinds().items()]
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


def _mark(name: str, kind: str) -> str:
    """How `make_table` lays the column out: numbers to the right, and what is long for words on several lines."""
    if kind == "number":
        return "#"
    return "~" if kind == "nested" or name in _LONG else ""


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
