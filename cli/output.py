"""What the commands print: tables that fit the terminal, JSON for programs, messages on standard error.

All output goes through here, for much of it is names, racks and addresses of others: what a terminal would obey, or
what turns text round, is shown as its escape.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kquorum.wire.safe_text import safe_json, safe_lines, safe_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_GAP = 3  # what rich's box puts between two columns
_NARROW_GAP = 2  # and with the padding of neighbours collapsed
_NARROWEST_SENTENCE = 24
_NARROWEST_OF_ALL = 12
_UNBOUNDED = 10_000


def console(*, markup: bool = False) -> "Console":
    """Standard output. Text is printed as it is, unless `markup` is asked for: names and paths may hold brackets."""
    from kquorum.cli.safe_console import SafeConsole

    return SafeConsole(highlight=False, markup=markup, emoji=False)


def error_console() -> "Console":
    """Standard error, where progress and complaints go."""
    from kquorum.cli.safe_console import SafeConsole

    return SafeConsole(stderr=True, highlight=False, markup=False, emoji=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json_text(value, indent=2) + "\n")


def json_text(value: object, **layout: Any) -> str:
    """JSON that a terminal may be shown; `layout` is that of `json.dumps`."""
    return safe_json(json.dumps(value, ensure_ascii=False, **layout))


def make_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    spare: Sequence[str] = (),
    folding: str | None = None,
) -> "Table":
    """A table. A column whose name begins with `#` is aligned to the right, one with `~` holds sentences (both lose the
    sign): only sentences are wrapped, and only on a terminal, so that ids, addresses and folders can be copied whole. A
    line break in a name is for terminals, too.

    Where a terminal is too narrow the columns move together, and those in `spare` are left out, in that order, which
    the title says; at last the column `folding` is narrowed as far as need be.
    """
    from rich import box
    from rich.table import Table

    cells = [[_cell(cell) for cell in row] for row in rows]
    out = console()
    titles = [name.lstrip("#~") if out.is_terminal else heading(name) for name in columns]
    layout = _layout(columns, _widths(titles, cells), spare, folding, out.width if out.is_terminal else None)
    if left_out := [heading(name) for name in columns if columns.index(name) not in layout.kept]:
        title = f"{title} (a wider terminal shows more: {', '.join(left_out)})".lstrip()
    table = Table(
        title=title or None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
        pad_edge=False,
        collapse_padding=layout.gap < _GAP,
    )
    for index in layout.kept:
        table.add_column(
            titles[index],
            justify="right" if columns[index].startswith("#") else "left",
            overflow="fold",
            no_wrap=index not in layout.prose,
            width=layout.prose.get(index),
            vertical="top" if layout.prose else "bottom",
        )
    for row in cells:
        table.add_row(*(row[index] for index in layout.kept if index < len(row)))
    return table


def _cell(value: object) -> "Text":
    """On one line: a line break in a value would look like the next row."""
    from rich.text import Text

    if not isinstance(value, Text):
        return Text(safe_text(as_text(value)))
    return value if value.plain.isprintable() else Text(safe_text(value.plain), style=value.style)


def heading(name: str) -> str:
    """The name of a column where it has one line."""
    return name.lstrip("#~").replace("\n", " ")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns are shown, how far apart, and how wide those with sentences are."""

    kept: tuple[int, ...]
    gap: int
    prose: dict[int, int]


def _layout(
    columns: Sequence[str],
    widths: Sequence[int],
    spare: Sequence[str],
    folding: str | None,
    width: int | None,
) -> _Layout:
    """`width` is the terminal's; None where there is none, and everything is as wide as it wants."""
    prose = {index: widths[index] for index, name in enumerate(columns) if name.startswith("~")}
    kept, gap = list(range(len(columns))), _GAP
    if width is None:
        return _Layout(tuple(kept), gap, prose)
    leaving = [columns.index(name) for name in spare if name in columns]

    def room() -> int:
        """What is left to sentences."""
        return width - sum(widths[index] for index in kept if index not in prose) - gap * len(kept)

    while room() < sum(min(prose[index], _NARROWEST_SENTENCE) for index in kept if index in prose):
        if gap == _GAP:
            gap = _NARROW_GAP
        elif leaving:
            kept.remove(leaving.pop(0))
        else:
            break
    wanted = {index: prose[index] for index in kept if index in prose}
    missing = sum(min(each, _NARROWEST_OF_ALL) for each in wanted.values()) - room()
    folded = {}
    if folding is not None and missing > 0:
        index = columns.index(folding)
        folded[index] = max(widths[index] - missing, _NARROWEST_SENTENCE)
    return _Layout(tuple(kept), gap, share_room(wanted, room() + max(missing, 0)) | folded)


def _widths(names: Sequence[str], rows: "Sequence[Sequence[Text]]") -> list[int]:
    """How wide each column is when nothing is wrapped."""
    return [
        max([*map(len, name.split("\n")), *(row[index].cell_len for row in rows if index < len(row))])
        for index, name in enumerate(names)
    ]


def share_room(wanted: dict[int, int], room: int) -> dict[int, int]:
    """The narrow columns get what they want, the others the same share of the rest; none less than can be read."""
    shares, rest = dict[int, int](), room
    for count, (index, width) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        share = max(rest // (len(wanted) - count), _NARROWEST_OF_ALL)
        shares[index] = min(width, share)
        rest -= shares[index]
    return shares


def show_table(table: "Table") -> None:
    """On standard output, the title before it, which is wrapped at words on a terminal. A row too wide for the terminal
    is left to the terminal to break; where there is none, lines are as long as they are, with no blanks at their ends.
    """
    from kquorum.cli.safe_console import SafeConsole

    out, title = console(), table.title
    table.title = None
    if title:
        out.print(title, style="bold", markup=False, soft_wrap=not out.is_terminal)
    if out.is_terminal:
        SafeConsole(highlight=False, markup=False, width=_UNBOUNDED, height=_UNBOUNDED).print(table)
        return
    wide = SafeConsole(highlight=False, markup=False, width=_UNBOUNDED, height=_UNBOUNDED, no_color=True)
    with wide.capture() as captured:
        wide.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    spare: Sequence[str] = (),
    folding: str | None = None,
    stacking: bool = False,
) -> None:
    """Print `make_table` on standard output. With `stacking`, a terminal on which words would be broken shows the rows
    one below the other instead, with all columns."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    if stacking and (width := _terminal_width()) is not None:
        layout = _layout(columns, _widths([heading(name) for name in columns], cells), spare, folding, width)
        if any(share < _longest_word(cells, index) for index, share in layout.prose.items()):
            _show_stacked(title, columns, cells, width)
            return
    show_table(make_table(title, columns, cells, spare=spare, folding=folding))


def _terminal_width() -> int | None:
    out = console()
    return out.width if out.is_terminal else None


def _longest_word(rows: "Sequence[Sequence[Text]]", index: int) -> int:
    return max(
        (len(word) for row in rows if index < len(row) for word in row[index].plain.split()), default=0
    )


def _show_stacked(title: str, columns: Sequence[str], rows: "Sequence[Sequence[Text]]", width: int) -> None:
    """A row begins with the columns before the first sentence, which need no headings; below it stand the others.
    A word that is too long for the terminal is left to the terminal to break."""
    from textwrap import wrap

    from rich.text import Text

    out = console()
    if title:
        out.print(title, style="bold")
    first = next((index for index, name in enumerate(columns) if name.startswith("~")), len(columns))
    labels = max((len(heading(name)) for name in columns[first:]), default=0)
    for row in rows:
        out.print()
        named = (
            Text(f"{heading(name)} ").append_text(cell) if name.startswith("#") else cell
            for name, cell in zip(columns[:first], row, strict=False)
        )
        out.print(Text("  ").join(each for each in named if each.plain), soft_wrap=True)
        for name, cell in zip(columns[first:], row[first:], strict=False):
            room = max(width - labels - 4, _NARROWEST_SENTENCE)
            lines = wrap(cell.plain, room, break_long_words=False, break_on_hyphens=False)
            for number, line in enumerate(lines):
                label = "" if number else heading(name)
                out.print(Text(f"  {label:<{labels}}  ").append(line, style=cell.style), soft_wrap=True)


def say(line: str, *, style: str = "") -> None:
    """A line on standard output, never wrapped and read as it is."""
    console().print(line, style=style, markup=False, soft_wrap=True)


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


def utc_text(timestamp_ms: int) -> str:
    """`2026-01-31 12:00:00.000`, in UTC; the bare number where no calendar has such a time."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}"


def tell_waiting(text: str) -> None:
    """What a command is waiting for, on standard error."""
    complain(text, style="cyan", label="kquorum")


def remark(line: str) -> None:
    """A line on standard error, as it is."""
    sys.stderr.write(safe_lines(line) + "\n")


def complain(message: str, *, style: str = "red", label: str = "error") -> None:
    """A message on standard error, each line whole: it is for people to read and for scripts to search."""
    message = safe_lines(message)
    if sys.stderr.isatty():
        from rich.text import Text

        label_text = Text(f"{label}: ", style=f"bold {style}")
        error_console().print(Text.assemble(label_text, message), soft_wrap=True)
    else:
        sys.stderr.write(f"{label}: {message}\n")
