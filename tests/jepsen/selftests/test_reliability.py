"""The page's tables are made of rows, and say when there are none."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.jepsen.matrix import Row, cells, rows_of
from tests.jepsen.reliability import FOLDER, PAGE, matrix_table, mutants_table, rendered

PARTS = ("matrix", "cut", "long", "mutants", "failover")
EMPTY = "\n".join(f"<!-- {name} -->\nold\n<!-- /{name} -->" for name in PARTS)


def row(**changed: Any) -> Row:
    values: dict[str, Any] = {
        "cell": "register kill-one 3",
        "workloads": "register",
        "nemesis": "kill-one",
        "nodes": 3,
        "seed": 17,
        "time_s": 60.0,
        "verdict": "valid",
        "verdicts": {"linear": "valid"},
        "faults": {"kill-one": 4},
        "operations": 1000,
        "ok": 900,
        "longest_without_write_ms": 2345,
        "command": "python -m tests.jepsen --workload register",
        "folder": "register",
        "load": 1.0,
        "at": "2026-11-22T00:00:00Z",
    }
    return Row(**values | changed)


def test_a_cell_has_its_verdict_and_how_to_run_it_again() -> None:
    table = matrix_table([row(), row(nemesis="bridge", nodes=5, verdict="invalid", seed=4)])
    assert "2 runs, 2 minutes of load, 2,000 operations, 8 faults: 1 valid, 1 invalid." in table
    assert "| kill-one | valid, 4 faults, 2.3 s (seed 17) |  |" in table
    assert "| bridge |  | **invalid**, 4 faults, 2.3 s (seed 4) |" in table


def test_a_mutant_that_survived_is_not_hidden() -> None:
    hunt = {"name": "m", "safeguard": "s", "found": False, "found_by": [], "seconds": 3.0, "runs": 2}
    assert "**not found**" in mutants_table([hunt | {"control": None, "command": "c"}])


def test_tables_are_put_between_their_marks(tmp_path: Path) -> None:
    (tmp_path / "matrix.jsonl").write_text(json.dumps(asdict(row())) + "\n")
    page = rendered("before\n" + EMPTY + "\nafter", tmp_path)
    assert page.startswith("before\n<!-- matrix -->\n\n1 runs")
    assert page.endswith("\nafter")
    assert page.count("*not run yet*") == 4
    assert rendered(page, tmp_path) == page


def test_a_page_without_a_place_for_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no place for the table 'long'"):
        rendered(EMPTY.replace("<!-- long -->", ""), tmp_path)


def test_the_page_shows_the_rows_that_there_are() -> None:
    page = PAGE.read_text()
    assert rendered(page, FOLDER) == page, "run python -m tests.jepsen.reliability"


def test_the_last_row_of_a_cell_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("".join(json.dumps(asdict(row(verdict=each))) + "\n" for each in ("unknown", "valid")))
    assert [each.verdict for each in rows_of(path).values()] == ["valid"]


def test_cells_are_every_combination() -> None:
    found = list(cells(["a", "b,c"], ["x", "y"], [3, 5]))
    assert len(found) == len({cell.name for cell in found}) == 8
    assert "b+c x 3" in {cell.name for cell in found}
