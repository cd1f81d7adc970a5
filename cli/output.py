"""What the commands print: tables that fit the terminal, JSON for programs, messages on standard error."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console() -> "Console":
    """Standard output."""
    from rich.console import Console

    return Console(highlight=False)


def error_console() -> "Console":
    """Standard error, where progress and complaints go."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def make_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> "Table":
    """A table; a column whose name begins with `#` is aligned to the right (and loses the sign)."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title or None, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False
    )
    for column in columns:
        table.add_column(
            column.removeprefix("#"), justify="right" if column.startswith("#") else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(as_text(cell)) for cell in row))
    return table


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print `make_table` on standard output."""
    console().print(make_table(title, columns, rows))


def as_text(value: object) -> str:
    """A cell: nothing for None, `1,234` for numbers, `1 2 3` for sequences."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return " ".join(str(item) for item in value)
    return str(value)


def complain(message: str, *, style: str = "red", label: str = "error") -> None:
    """A message on standard error, each line whole: it is for people to read and for scripts to search."""
    if sys.stderr.isatty():
        from rich.markup import escape

        error_console().print(f"[bold {style}]{label}:[/] {escape(message)}", soft_wrap=True)
    else:
        sys.stderr.write(f"{label}: {message}\n")
