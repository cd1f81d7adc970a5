"""SQL on the tables of an audit in DuckDB: queries, and nothing but queries.

DuckDB parses a text before it runs, and says of each statement what it is. The connection itself reaches no file but
those of the tables (`DuckTables.shut`), whatever a query calls.
"""

import re
from typing import Final

import duckdb

from kquorum.spark_replay.engine.duckdb_tables import DuckTables
from kquorum.spark_replay.engine.on_duckdb import DuckFrame, quoted_name
from kquorum.spark_replay.questions.sql import NO_QUERY, BadSql, distinct_names, no_such_column, no_such_table

_COLUMN: Final = re.compile(r"[Cc]olumn \"([^\"]+)\"")
_NEAR: Final = re.compile(r"Candidate bindings: (.*)")
# The names of columns that DuckDB takes for words of SQL.
_SYNTAX_HINT: Final = '; the columns "offset" and "left" are written in double quotes'
_TABLE: Final = re.compile(r"Table with name (\S+) does not exist")
_PLACE: Final = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)


def make_views(tables: DuckTables, source: str | None = None) -> None:
    """Each table as a view of its name, of one log or of all. From then on the connection reaches nothing else."""
    tables.shut(source)


def query(tables: DuckTables, text: str) -> DuckFrame:
    """What the query says, on the views of `make_views`. Raises BadSql."""
    connection = tables.connection
    try:
        statements = connection.extract_statements(text)
        if not statements:
            raise BadSql(NO_QUERY)
        if len(statements) > 1:
            raise BadSql(f"one query can be asked at a time, and these are {len(statements)}")
        kind = statements[0].type
        if kind != duckdb.StatementType.SELECT:
            word = str(kind).rpartition(".")[2].replace("_", " ").lower()
            raise BadSql(f"only queries can be asked, and {word} is none")
        inner = statements[0].query.strip().rstrip(";")
        found = connection.sql(inner).columns
        names = distinct_names(found)
        # A comment at the end of the query ends with its line.
        sql = f"(SELECT * FROM ({inner}\n) AS q({', '.join(map(quoted_name, names))}))"
        return DuckFrame(connection, sql, names)
    except duckdb.Error as error:
        raise BadSql(what_is_wrong(error, tables)) from None


def what_is_wrong(error: duckdb.Error, tables: DuckTables) -> str:
    """One line: DuckDB's own, with the nearest names that there are."""
    text = str(error)
    place = _place(text)
    if found := _TABLE.search(text):
        return no_such_table(found[1].strip('"!'), tables.manifest.rows) + place
    if "not found in FROM clause" in text and (found := _COLUMN.search(text)):
        near = _NEAR.search(text)
        names = re.findall(r"\"([^\"]+)\"", near[1]) if near else []
        return no_such_column(found[1], names) + place
    first = re.sub(r"^[A-Za-z ]+ Error: ", "", text.strip().splitlines()[0]).rstrip(".!")
    if "syntax error" in first:
        first += _SYNTAX_HINT
    return first + place


def _place(text: str) -> str:
    found = _PLACE.search(text)
    if found is None:
        return ""
    # The caret stands below the line as it is printed, behind `LINE 1: `.
    column = len(found[3]) - len(f"LINE {found[1]}: ") + 1
    return f" (line {found[1]}, character {max(column, 1)})"
