"""How the answers of `audit ...` are given: tables on the terminal, JSON, CSV or Parquet.

What is shown on a terminal is limited, and says so; the files and JSON have everything, row by row as Spark hands it
over, so that no answer needs more memory than its largest piece.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, Row
from rich.text import Text

from cli.audit.answer_files import readable, write_csv, write_json, write_parquet
from cli.audit.cells import duration, ids, number, plain
from cli.audit.options import Output
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.output import complain, print_table, say
from spark_replay.audit import Progress
from wire.safe_text import safe_text

# Other commands find the cells here, too.
__all__ = ["Answer", "AnswerTable", "duration", "give", "ids", "number", "plain"]

Cells = Callable[[Row], Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """One table of an answer. `frame` has all rows, in order; `cells` makes what a terminal shows of a row.

    `columns`, `spare`, `folding` and `stacking` are those of `cli.output.print_table`. `total` is counted where it
    is None and rows are left out. `empty` is said where there are no rows. What `is_told` stands in the lines of
    the answer, and is shown as a table only when it is asked for by name. Of what has a `newest_first`, the frame
    from its end on, the last rows are shown where there are too many. What is not `is_counted` would take as long
    again to be counted. `shown` is what a terminal has instead of `frame`: the same with fewer rows.
    """

    name: str
    title: str
    frame: DataFrame
    columns: Sequence[str]
    cells: Cells
    spare: Sequence[str] = ()
    folding: str | None = None
    stacking: bool = False
    total: int | None = None
    empty: str = ""
    is_told: bool = False
    newest_first: DataFrame | None = None
    is_counted: bool = True
    shown: DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`head` is what JSON begins with; `lines` the same for people; `notes` go to standard error as warnings."""

    head: dict[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    tables: Sequence[AnswerTable] = ()


def give(answer: Answer, output: Output, progress: Progress) -> None:
    """Print or write the answer as it was asked for. Raises CliError."""
    answer = _chosen(answer, output.table)
    is_shown = not output.as_json and output.csv is None and output.parquet is None
    shown = _shown(answer, output.limit) if is_shown else []
    progress("")
    for note in answer.notes:
        complain(safe_text(note), style="yellow", label="note")
    if output.csv is not None:
        write_csv(answer.tables, output.csv)
    if output.parquet is not None:
        write_parquet(answer.tables, output.parquet)
    if output.as_json:
        write_json({**answer.head, "notes": list(answer.notes)}, answer.tables, sys.stdout)
    if is_shown:
        _show(answer, shown)
    sys.stdout.flush()


def _chosen(answer: Answer, name: str | None) -> Answer:
    if name is None:
        return answer
    tables = [table for table in answer.tables if table.name == name]
    if not tables:
        known = ", ".join(table.name for table in answer.tables)
        raise CliError(f"--table {name}: this answer has no such table, but {known}", status=ExitStatus.USAGE)
    return replace(answer, tables=[replace(table, is_told=False) for table in tables])


@dataclass(frozen=True, slots=True)
class _Shown:
    """The rows of a table that are printed, and how many there are in all; None for more, not counted."""

    table: AnswerTable
    rows: Sequence[Row]
    total: int | None


def _shown(answer: Answer, limit: int) -> list[_Shown]:
    """Everything is asked of Spark before the first line is printed."""
    return [_rows_shown(table, limit) for table in answer.tables if not table.is_told and table.total != 0]


def _rows_shown(table: AnswerTable, limit: int) -> _Shown:
    frame = readable(table.frame if table.shown is None else table.shown)
    if not limit:
        rows = frame.collect()
        return _Shown(table, rows, len(rows))
    if table.newest_first is not None:
        frame = readable(table.newest_first)
    rows = frame.limit(limit + 1).collect()
    total: int | None = len(rows)
    if len(rows) > limit:
        rows, total = rows[:limit], table.total
        if total is None and table.is_counted:
            total = (table.frame if table.shown is None else table.shown).count()
    return _Shown(table, rows if table.newest_first is None else rows[::-1], total)


def _show(answer: Answer, tables: Iterable[_Shown]) -> None:
    for line in answer.lines:
        say(safe_text(line))
    for shown in tables:
        _show_table(shown)


def _show_table(shown: _Shown) -> None:
    table = shown.table
    if not shown.rows:
        if table.empty:
            say(safe_text(table.empty))
        return
    cells = [[_cell(each) for each in table.cells(row)] for row in shown.rows]
    print_table(
        safe_text(table.title),
        table.columns,
        cells,
        spare=table.spare,
        folding=table.folding,
        stacking=table.stacking,
    )
    if shown.total is None or shown.total > len(shown.rows):
        where = "and" if table.newest_first is None else "these are the last, before them"
        more = "more" if shown.total is None else f"{shown.total - len(shown.rows):,} more of {shown.total:,}"
        say(f"... {where} {more}; --limit 0 shows all, --json, --csv and --parquet have all", style="dim")


def _cell(value: object) -> object:
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, Text):
        return Text(safe_text(value.plain), style=value.style)
    return value
