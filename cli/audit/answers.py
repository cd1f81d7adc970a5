"""How the answers of `audit ...` are given: tables on the terminal, JSON, CSV or Parquet.

What is shown on a terminal is limited, and says so; the files and JSON have everything, row by row as Spark hands it
over, so that no answer needs more memory than its largest piece.
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import DataFrame, Row
from rich.text import Text

from cli.audit.options import Output
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.output import complain, print_table, say
from spark_replay.audit import Progress

Cells = Callable[[Row], Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """One table of an answer. `frame` has all rows, in order; `cells` makes what a terminal shows of a row.

    `columns`, `spare` and `folding` are those of `cli.output.make_table`. `total` is counted where it is None and rows
    are left out. `empty` is said where there are no rows. What `is_told` stands in the lines of the answer, and is
    shown as a table only when it is asked for by name. Of what has a `newest_first`, the frame from its end on, the
    last rows are shown where there are too many.
    """

    name: str
    title: str
    frame: DataFrame
    columns: Sequence[str]
    cells: Cells
    spare: Sequence[str] = ()
    folding: str | None = None
    total: int | None = None
    empty: str = ""
    is_told: bool = False
    newest_first: DataFrame | None = None


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
        complain(safe(note), style="yellow", label="note")
    if output.csv is not None:
        _give_csv(answer, output.csv)
    if output.parquet is not None:
        _give_parquet(answer, output.parquet)
    if output.as_json:
        _give_json(answer, sys.stdout)
    if is_shown:
        _show(answer, shown)
    sys.stdout.flush()


def safe(text: str) -> str:
    """Text from a log, for a terminal: what is no letter, sign or blank is shown as its escape."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def plain(value: object) -> Any:
    """A value of Spark's as JSON knows it."""
    if isinstance(value, Row):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def ids(values: Iterable[int] | None) -> str:
    return "" if values is None else " ".join(map(str, values))


def number(value: int | None) -> str:
    """An id, an offset or an epoch, which nobody reads with commas."""
    return "" if value is None else str(value)


def duration(milliseconds: int | None) -> str:
    """`1 d 02:03:04`, `02:03:04` or `4.250 s`."""
    if milliseconds is None:
        return ""
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.3f} s"
    seconds = milliseconds // 1000
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    text = f"{hours:02d}:{minutes:02d}:{seconds % 60:02d}"
    return f"{days} d {text}" if days else text


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
    """The rows of a table that are printed, and how many there are in all."""

    table: AnswerTable
    rows: Sequence[Row]
    total: int


def _shown(answer: Answer, limit: int) -> list[_Shown]:
    """Everything is asked of Spark before the first line is printed."""
    return [_rows_shown(table, limit) for table in answer.tables if not table.is_told and table.total != 0]


def _rows_shown(table: AnswerTable, limit: int) -> _Shown:
    if not limit:
        rows = table.frame.collect()
        return _Shown(table, rows, len(rows))
    is_tail = table.newest_first is not None
    rows = (table.newest_first or table.frame).limit(limit + 1).collect()
    total = len(rows)
    if total > limit:
        rows, total = rows[:limit], table.frame.count() if table.total is None else table.total
    return _Shown(table, rows[::-1] if is_tail else rows, total)


def _show(answer: Answer, tables: Iterable[_Shown]) -> None:
    for line in answer.lines:
        say(safe(line))
    for shown in tables:
        _show_table(shown)


def _show_table(shown: _Shown) -> None:
    table = shown.table
    if not shown.rows:
        if table.empty:
            say(safe(table.empty))
        return
    cells = [[_cell(each) for each in table.cells(row)] for row in shown.rows]
    print_table(safe(table.title), table.columns, cells, spare=table.spare, folding=table.folding)
    if shown.total > len(shown.rows):
        where = "and" if table.newest_first is None else "these are the last, before them"
        say(
            f"... {where} {shown.total - len(shown.rows):,} more of {shown.total:,}; --limit 0 shows all, --json, "
            "--csv and --parquet have all",
            style="dim",
        )


def _cell(value: object) -> object:
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, Text):
        return Text(safe(value.plain), style=value.style)
    return value


def _give_json(answer: Answer, out: TextIO) -> None:
    """One object: the head, the notes, then each table as a list, written row by row."""
    head = {**answer.head, "notes": list(answer.notes)}
    out.write("{\n")
    parts = [f"  {_encode(name)}: {_encode(value)}" for name, value in head.items()]
    out.write(",\n".join(parts))
    for table in answer.tables:
        out.write(f",\n  {_encode(table.name)}: [")
        is_first = True
        for row in _rows(table):
            out.write(("" if is_first else ",") + "\n    " + _encode(plain(row)))
            is_first = False
        out.write("]" if is_first else "\n  ]")
    out.write("\n}\n")


def _encode(value: object) -> str:
    """JSON that a terminal may be shown: non-ASCII letters stay, control characters of any kind are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _rows(table: AnswerTable) -> Iterator[Row]:
    return iter(table.frame.toLocalIterator())


def _give_csv(answer: Answer, target: str) -> None:
    if target == "-":
        if len(answer.tables) != 1:
            raise CliError(
                f"--csv -: this answer has the tables {', '.join(table.name for table in answer.tables)}; choose one "
                "by --table, or name a folder for all",
                status=ExitStatus.USAGE,
            )
        _write_csv(answer.tables[0], sys.stdout)
        return
    path = Path(target)
    try:
        if len(answer.tables) == 1 and not path.is_dir():
            _write_csv_file(answer.tables[0], path)
            return
        path.mkdir(parents=True, exist_ok=True)
        for table in answer.tables:
            _write_csv_file(table, path / f"{table.name}.csv")
    except OSError as error:
        raise CliError(f"--csv {target}: {error.strerror}", status=ExitStatus.IO_ERROR) from None


def _write_csv_file(table: AnswerTable, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        _write_csv(table, out)
    complain(f"{path}", style="green", label="written")


def _write_csv(table: AnswerTable, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.frame.columns)
    is_terminal = out.isatty()
    for row in _rows(table):
        cells = map(_csv_cell, row)
        writer.writerow([safe(cell) for cell in cells] if is_terminal else cells)


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and not any(isinstance(each, Row) for each in value):
        return " ".join(map(str, value))
    known = plain(value)
    return known if isinstance(known, str) else json.dumps(known, ensure_ascii=False)


def _give_parquet(answer: Answer, folder: Path) -> None:
    """A folder for each table; one that is there already is not touched."""
    present = [str(folder / table.name) for table in answer.tables if (folder / table.name).exists()]
    if present:
        raise CliError(
            f"--parquet: {present[0]} is there already; name another folder", status=ExitStatus.USAGE
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"--parquet {folder}: {error.strerror}", status=ExitStatus.IO_ERROR) from None
    for table in answer.tables:
        path = folder.resolve() / table.name
        table.frame.write.parquet(str(path))
        complain(f"{path}", style="green", label="written")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
