"""The tables of docs/reliability.md, made of what runs left: `python -m tests.jepsen.reliability`.

The rows lie in docs/reliability/: matrix.jsonl, cut.jsonl and long.jsonl (tests.jepsen.matrix), mutants.jsonl
(tests.jepsen.mutants --out) and failover.md (tests.jepsen.failover_report). Each table stands between two marks in the
page and is written again; a table whose rows are missing says so. --check only tells whether the page is up to date.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.jepsen.checkers.verdicts import Verdict
from tests.jepsen.matrix import Row, rows_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FOLDER = ROOT / "docs" / "reliability"
_NOT_RUN = "*not run yet*"


def matrix_table(rows: Iterable[Row]) -> str:
    """A line for each nemesis, a column for each group of workloads and number of nodes; in a cell the verdict, the
    seed, how many faults there were and the longest time without a write."""
    cells = list(rows)
    if not cells:
        return _NOT_RUN
    columns = list(dict.fromkeys((row.nodes, row.workloads) for row in sorted(cells, key=_column)))
    lines = [
        "| nemesis | " + " | ".join(f"{group}, {nodes} nodes" for nodes, group in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    by_place = {(row.nemesis, row.nodes, row.workloads): row for row in cells}
    for nemesis in dict.fromkeys(row.nemesis for row in cells):
        found = [by_place.get((nemesis, nodes, group)) for nodes, group in columns]
        lines.append(
            f"| {nemesis} | " + " | ".join("" if row is None else _cell(row) for row in found) + " |"
        )
    return "\n".join([_counted(cells), "", *lines])


def _column(row: Row) -> tuple[int, str]:
    return row.nodes, row.workloads


def _counted(rows: Sequence[Row]) -> str:
    verdicts = Counter(row.verdict for row in rows)
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    minutes = sum(row.time_s for row in rows) / 60
    operations = sum(row.operations for row in rows)
    faults = sum(sum(row.faults.values()) for row in rows)
    return f"{len(rows)} runs, {minutes:,.0f} minutes of load, {operations:,} operations, {faults:,} faults: {told}."


def _cell(row: Row) -> str:
    verdict = row.verdict if row.verdict == Verdict.VALID else f"**{row.verdict}**"
    gap = "" if row.longest_without_write_ms is None else f", {row.longest_without_write_ms / 1000:.1f} s"
    return f"{verdict}, {sum(row.faults.values())} faults{gap} (seed {row.seed})"


def long_table(rows: Iterable[Row]) -> str:
    lines = [
        "| workloads | nemesis | nodes | time | operations (ok) | faults, by kind | verdict | run it again |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(row.faults.items()))
        lines.append(
            f"| {row.workloads} | {row.nemesis} | {row.nodes} | {row.time_s / 60:g} min | "
            f"{row.operations:,} ({row.ok:,}) | {sum(row.faults.values())}: {kinds} | {row.verdict} | "
            f"`{row.command}` |"
        )
    return "\n".join(lines) if len(lines) > 2 else _NOT_RUN


def mutants_table(hunts: Iterable[dict[str, Any]]) -> str:
    """The last hunt for each mutant."""
    last = {hunt["name"]: hunt for hunt in hunts}
    if not last:
        return _NOT_RUN
    lines = [
        "| planted bug | what it takes away | found by | after | the same run without it | run it again |",
        "|---|---|---|---|---|---|",
    ]
    for hunt in last.values():
        found = ", ".join(hunt["found_by"]) if hunt["found"] else "**not found**"
        lines.append(
            f"| `{hunt['name']}` | {hunt['safeguard']} | {found} | {hunt['seconds']:.0f} s, {hunt['runs']} run"
            f"{'s' if hunt['runs'] > 1 else ''} | {hunt['control'] or 'not run'} | `{hunt['command']}` |"
        )
    return "\n".join(lines)


def rendered(page: str, folder: Path = FOLDER) -> str:
    """The page with all its tables as of now. Raises ValueError when a mark is missing."""
    parts: dict[str, Callable[[], str]] = {
        "matrix": lambda: matrix_table(rows_of(folder / "matrix.jsonl").values()),
        "cut": lambda: matrix_table(rows_of(folder / "cut.jsonl").values()),
        "long": lambda: long_table(rows_of(folder / "long.jsonl").values()),
        "mutants": lambda: mutants_table(_lines(folder / "mutants.jsonl")),
        "failover": lambda: _text(folder / "failover.md"),
    }
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{PAGE.name} has no place for the table '{name}'")
        page = f"{before}{begin}\n{make()}\n\n{end}{after}"
    return page


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else _NOT_RUN


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.reliability", description=__doc__)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    old = PAGE.read_text()
    new = rendered(old)
    if chosen.check:
        return int(old != new)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
