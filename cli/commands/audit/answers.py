"""How the answers of `audit ...` are printed or written: tables on the terminal, JSON, CSV or Parquet.

A terminal shows a limited number of rows, and says so. The files and JSON have all rows, written one by one as the
engine hands them over, so that no answer needs more memory than its largest piece.
"""

import csv
import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TextIO

from rich.text import Text

from kquorum.cli.commands.audit.options import Output
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, json_text, print_table, say
from kquorum.private_files import writing_named
from kquorum.spark_replay.engine.frame import Frame, Row, is_row
from kquorum.wire.safe_text import safe_text


def plain(value: object) -> Any:
    """A value of an answer as JSON knows it."""
    if is_row(value):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def ids(values: Iterable[int] | None) -> str:
    return "" if values is None else " ".join(map(str, values))


def number(value: int | None) -> str:
    """An id, an offset or an epoch, without commas."""
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


# A spreadsheet takes a text that begins so for a formula, and a log holds text that others wrote. Some read the
# full-width and small forms as the others; the last is the minus of mathematics.
_FORMULA_STARTS = ("=", "+", "-", "@", "\u2212")


class Table(Protocol):
    """Rows in order, under a name."""

    @property
    def name(self) -> str: ...
    @property
    def frame(self) -> Frame: ...
    @property
    def total(self) -> int | None: ...


def write_json(head: Mapping[str, Any], tables: Iterable[Table], out: TextIO) -> None:
    """One object: the head, the notes, then each table as a list, written row by row."""
    out.write("{\n")
    parts = [f"  {_encode(name)}: {_encode(value)}" for name, value in head.items()]
    out.write(",\n".join(parts))
    for table in tables:
        out.write(f",\n  {_encode(table.name)}: [")
        is_first = True
        for row in _rows(table):
            out.write(("" if is_first else ",") + "\n    " + _encode(plain(row)))
            is_first = False
        out.write("]" if is_first else "\n  ]")
    out.write("\n}\n")


def _encode(value: object) -> str:
    """JSON that a terminal may be shown: non-ASCII letters stay, control characters of any kind are escaped."""
    return json_text(value)


def _rows(table: Table) -> Iterator[Row]:
    return iter(()) if table.total == 0 else table.frame.readable().rows()


def write_csv(tables: Sequence[Table], target: str) -> None:
    if target == "-":
        if len(tables) != 1:
            raise CliError(
                f"--csv -: this answer has the tables {', '.join(table.name for table in tables)}; choose one "
                "by --table, or name a folder for all",
                status=ExitStatus.USAGE,
            )
        _write_csv(tables[0], sys.stdout)
        return
    path = Path(target)
    try:
        if len(tables) == 1 and not path.is_dir():
            _write_csv_file(tables[0], path)
            return
        path.mkdir(parents=True, exist_ok=True)
        for table in tables:
            _write_csv_file(table, path / f"{table.name}.csv")
    except OSError as error:
        raise CliError(f"--csv {target}: {error.strerror}", status=ExitStatus.IO_ERROR) from None


def _write_csv_file(table: Table, path: Path) -> None:
    with writing_named(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as out:
        _write_csv(table, out)
    complain(f"{path}", style="green", label="written")


def _write_csv(table: Table, out: TextIO) -> None:
    # All texts are quoted: what a text holds must not end its cell, whatever a reader takes for a separator.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(table.frame.columns)
    is_terminal = out.isatty()
    for row in _rows(table):
        cells = [value if _is_number(value) else _csv_cell(value) for value in row]
        writer.writerow(
            [safe_text(each) if isinstance(each, str) else each for each in cells] if is_terminal else cells
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and isfinite(value)


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and not any(is_row(each) for each in value):
        joined = " ".join(map(str, value))
        return _no_formula(joined) if any(isinstance(each, str) for each in value) else joined
    known = plain(value)
    if isinstance(value, str):
        return _no_formula(value)
    return known if isinstance(known, str) else json.dumps(known, ensure_ascii=False)


def _no_formula(text: str) -> str:
    """A spreadsheet may pass over what it does not show at the beginning: blanks of any kind, controls, a BOM."""
    if not text:
        return text
    first = next((each for each in text if unicodedata.category(each)[0] not in "CZ"), "")
    is_guarded = text[0] in "\t\r\n" or unicodedata.normalize("NFKC", first).startswith(_FORMULA_STARTS)
    return f"'{text}" if is_guarded else text


def write_parquet(tables: Sequence[Table], folder: Path) -> None:
    """A folder for each table; one that is there already is not touched."""
    present = [str(folder / table.name) for table in tables if os.path.lexists(folder / table.name)]
    if present:
        raise CliError(
            f"--parquet: {present[0]} is there already; name another folder", status=ExitStatus.USAGE
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"--parquet {folder}: {error.strerror}", status=ExitStatus.IO_ERROR) from None
    for table in tables:
        path = folder.resolve() / table.name
        table.frame.write_parquet(path)
        complain(f"{path}", style="green", label="written")


Progress = Callable[[str], None]
Cells = Callable[[Row], Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """One table of an answer. `frame` has all rows, in order; `cells` makes what a terminal shows of a row.

    `columns`, `spare`, `folding` and `stacking` are those of `cli.output.print_table`. `total` is counted where it
    is None and rows are left out. `empty` is said where there are no rows. What `is_summarised` stands in the lines of
    the answer, and is shown as a table only when it is asked for by name. Of what has a `newest_first`, the frame
    from its end on, the last rows are shown where there are too many. What is not `is_counted` would take as long
    again to be counted. `shown` is what a terminal has instead of `frame`: the same with fewer rows.
    """

    name: str
    title: str
    frame: Frame
    columns: Sequence[str]
    cells: Cells
    spare: Sequence[str] = ()
    folding: str | None = None
    stacking: bool = False
    total: int | None = None
    empty: str = ""
    is_summarised: bool = False
    newest_first: Frame | None = None
    is_counted: bool = True
    shown: Frame | None = None


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
    return replace(answer, tables=[replace(table, is_summarised=False) for table in tables])


@dataclass(frozen=True, slots=True)
class _Shown:
    """The rows of a table that are printed, and how many there are in all; None for more, not counted."""

    table: AnswerTable
    rows: Sequence[Row]
    total: int | None


def _shown(answer: Answer, limit: int) -> list[_Shown]:
    """Every query runs before the first line is printed."""
    return [
        _rows_shown(table, limit) for table in answer.tables if not table.is_summarised and table.total != 0
    ]


def _rows_shown(table: AnswerTable, limit: int) -> _Shown:
    frame = (table.frame if table.shown is None else table.shown).readable()
    if not limit:
        rows = frame.collect()
        return _Shown(table, rows, len(rows))
    if table.newest_first is not None:
        frame = table.newest_first.readable()
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


_CAUSES = {
    "fencing": "fencing of broker {}",
    "shutdown": "shutdown of broker {}",
    "unregistration": "unregistration of broker {}",
    "restart": "restart of broker {}",
    "directory_failure": "failed directory of broker {}",
    "unfencing": "return of broker {}",
    "leader_request": "asked for by its leader, broker {}",
    "reassignment": "reassignment",
    "preferred": "back to the preferred leader",
    "unclean": "unclean election",
    "recovery": "a replica could lead again",
    "creation": "created so",
    "unknown": "unknown (its creation is not in the log)",
    "min_isr_config": "change of min.insync.replicas",
    "other": "",
}


def cause_text(cause: str | None, broker: int | None) -> str:
    """`fencing of broker 2`."""
    text = _CAUSES.get(cause or "", cause or "")
    if "{}" not in text:
        return text
    return (
        text.format(broker)
        if broker is not None
        else text.removesuffix(" of broker {}").removesuffix(", broker {}")
    )


def author_text(row: Row) -> str:
    """Who asked for it: a principal and where from, or the controller that wrote it."""
    if row["principal"] is not None:
        via = "@".join(each for each in (row["client_id"], row["client_address"]) if each)
        return f"{row['principal']} ({via})" if via else row["principal"]
    if row["controller_id"] is None:
        return ""
    return f"controller {row['controller_id']}"


def author_columns(*, has_notes: bool) -> tuple[str, ...]:
    """The columns for `author_cells`: logs without notes tell no more than which controller wrote it."""
    return ("~who", "~why") if has_notes else ("written by",)


def author_cells(row: Row, *, has_notes: bool) -> tuple[str, ...]:
    return (author_text(row), reason_text(row)) if has_notes else (author_text(row),)


def reason_text(row: Row) -> str:
    """The request, what it was for, and the reason that the operator gave."""
    if row["principal"] is None:
        return ""
    parts = [part for part in (row["api"], row["reason"]) if part]
    said = f' "{row["operator_reason"]}"' if row["operator_reason"] else ""
    return ": ".join(parts) + said
