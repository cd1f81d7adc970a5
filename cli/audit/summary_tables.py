"""An audit's summary as tables on the terminal."""

from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.commands.log_lines import iso_time

# Two narrow tables instead of a wide one: a terminal of 80 columns shows both without folding a number.
_EXTENT = (
    ("log", "source"),
    ("records", "records"),
    ("offsets", "offsets"),
    ("from (UTC)", "first_ms"),
    ("to", "last_ms"),
)
_CONTENT = (
    ("log", "source"),
    ("epochs", "epochs"),
    ("brokers", "brokers"),
    ("topics", "topics"),
    ("partitions", "partitions"),
    ("leader\nchanges", "leader_changes"),
    ("unclean", "unclean_leader_changes"),
    ("damaged", "damaged_places"),
)
_LEFT = ("log", "offsets")


def print_summary(console: Console, summary: dict[str, Any]) -> None:
    """What each log holds, records by type, the tables written, and what is damaged."""
    console.print(_sources(summary["sources"], _EXTENT))
    console.print(_sources(summary["sources"], _CONTENT))
    console.print(_counts("records by type", summary["record_types"]))
    console.print(_tables(summary["tables"]))
    for row in summary["damage"]:
        console.print(Text.assemble((row["kind"], "red"), f": {_place(row)}: {row['reason']}"))
    hidden = summary["tables"]["damage"]["rows"] - len(summary["damage"])
    if hidden > 0:
        console.print(f"and {hidden} more damaged places in the table damage")


def _sources(sources: list[dict[str, Any]], columns: tuple[tuple[str, str], ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for title, _ in columns:
        justify: Literal["left", "right"] = "left" if title in _LEFT else "right"
        table.add_column(title, justify=justify, overflow="fold", no_wrap=title != "log", vertical="bottom")
    for source in sources:
        table.add_row(*(Text(_cell(source, name)) for _, name in columns))
    return table


def _cell(source: dict[str, Any], name: str) -> str:
    if name == "offsets":
        first, last = source.get("first_offset"), source.get("last_offset")
        return "" if first is None else f"{first}..{last}"
    value = source.get(name)
    if value is None:
        return ""
    if name.endswith("_ms"):
        return iso_time(value)[:16].replace("T", " ")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _counts(title: str, counts: dict[str, int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(title)
    table.add_column("count", justify="right")
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    return table


def _tables(tables: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("Parquet", overflow="fold")
    for name, facts in tables.items():
        table.add_row(name, f"{facts['rows']:,}", Text(facts["path"]))
    return table


def _place(row: dict[str, Any]) -> str:
    offset = "" if row["offset"] is None else f", offset {row['offset']}"
    return f"{row['source']}: {row['file']} at byte {row['position']}{offset}"
