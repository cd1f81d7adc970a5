"""What the benchmarks share: the machine they ran on, percentiles, and one way to print a result."""

import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from kquorum.cli.output import make_table, print_json

# Whatever the terminal: figures that are folded over two lines cannot be read.
TABLE_WIDTH = 120


def hardware() -> dict[str, object]:
    """Processor, cores, Python, and how busy the machine was just before (load of the last minute)."""
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of them do not exceed (nearest rank); of one or more values."""
    assert values
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


def print_result(
    name: str,
    machine: Mapping[str, object],
    settings: Mapping[str, object],
    tables: Mapping[str, Sequence[Mapping[str, object]]],
    *,
    as_json: bool,
) -> None:
    """The tables by title, their rows as {column: cell}; or the same as one JSON document. `machine` is `hardware`
    as it was before the measurement, which is a load itself.

    A column `us_per_step` gets the heading "us per step".
    """
    if as_json:
        print_json({"benchmark": name, "hardware": machine, "settings": settings, "results": tables})
        return
    print(
        f"{machine['processor']} ({machine['machine']}), {machine['cores']} cores, Python {machine['python']}, "
        f"load {machine['load']}"
    )
    print(", ".join(f"{key} {value}" for key, value in settings.items()))
    for title, rows in tables.items():
        if rows:
            columns = [_heading(column, [row.get(column) for row in rows]) for column in rows[0]]
            table = make_table(title, columns, [[_cell(value) for value in row.values()] for row in rows])
            Console(highlight=False, width=TABLE_WIDTH).print(table)


def _heading(column: str, cells: Sequence[object]) -> str:
    """Numbers are aligned to the right: a # says so to `make_table`."""
    is_number = any(isinstance(cell, int | float) for cell in cells)
    heading = column.replace("_", " ")
    return f"#{heading}" if is_number else heading


def _cell(value: object) -> object:
    if not isinstance(value, float):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
