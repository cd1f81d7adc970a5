"""An answer as JSON, CSV or Parquet: all rows, one by one as Spark hands them over."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampType

from cli.audit.cells import plain
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.output import complain, json_text
from wire.safe_text import safe_text

# A spreadsheet takes a text that begins so for a formula, and a log holds text that others wrote. The last four
# are full-width, which some of them read as the others.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_ISO_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


class Table(Protocol):
    """Rows in order, under a name."""

    @property
    def name(self) -> str: ...
    @property
    def frame(self) -> DataFrame: ...
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
    return iter(()) if table.total == 0 else iter(readable(table.frame).toLocalIterator())


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
    with path.open("w", encoding="utf-8", newline="") as out:
        _write_csv(table, out)
    complain(f"{path}", style="green", label="written")


def _write_csv(table: Table, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.frame.columns)
    is_terminal = out.isatty()
    for row in _rows(table):
        cells = map(_csv_cell, row)
        writer.writerow([safe_text(cell) for cell in cells] if is_terminal else cells)


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and not any(isinstance(each, Row) for each in value):
        joined = " ".join(map(str, value))
        return _no_formula(joined) if any(isinstance(each, str) for each in value) else joined
    known = plain(value)
    if isinstance(value, str):
        return _no_formula(value)
    return known if isinstance(known, str) else json.dumps(known, ensure_ascii=False)


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def write_parquet(tables: Sequence[Table], folder: Path) -> None:
    """A folder for each table; one that is there already is not touched."""
    present = [str(folder / table.name) for table in tables if (folder / table.name).exists()]
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
        table.frame.write.parquet(str(path))
        complain(f"{path}", style="green", label="written")


def readable(frame: DataFrame) -> DataFrame:
    """With times as texts in UTC: PySpark would hand them over in the zone of this machine, without saying so."""
    times = [field.name for field in frame.schema.fields if isinstance(field.dataType, TimestampType)]
    quoted = {name: f"`{name.replace('`', '``')}`" for name in times}
    return frame.withColumns({name: F.date_format(F.col(quoted[name]), _ISO_FORMAT) for name in times})
