"""docs/kraft-checklist.md says which test of ours asserts what Kafka's tests assert: here it is held to the sources."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.tidy.tree import ROOT

PAGE = ROOT / "docs" / "kraft-checklist.md"
_HEADING = re.compile(r"^## (?P<title>.*) \((?P<rows>\d+)\)$")
_REFERENCE = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)`")
_DEPARTURE = re.compile(r"departure: (?P<row>[^;|]+)")
SHORTEST_REASON = 40
# A section that vanished would take its rows, and what they claim, along.
FEWEST_SECTIONS = 20


def cells_of(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def sections() -> dict[str, tuple[int, list[tuple[str, ...]]]]:
    """Title -> (rows that the heading claims, the rows below the table's head)."""
    found: dict[str, tuple[int, list[tuple[str, ...]]]] = {}
    rows: list[tuple[str, ...]] = []
    for line in PAGE.read_text().splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            rows = []
            found[heading["title"]] = (int(heading["rows"]), rows)
        elif line.startswith("|"):
            rows.append(cells_of(line))
    return {title: (claimed, rows[2:]) for title, (claimed, rows) in found.items()}


def all_rows() -> Iterator[tuple[str, ...]]:
    for _, rows in sections().values():
        yield from rows


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions of a file, at its top level or in a class."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def test_there_are_sections_with_as_many_rows_as_their_headings_say() -> None:
    assert len(sections()) >= FEWEST_SECTIONS
    counts = {title: (claimed, len(rows)) for title, (claimed, rows) in sections().items()}
    assert {title: count for title, count in counts.items() if count[0] != count[1]} == {}


def test_every_heading_of_a_section_says_how_many_rows_it_has() -> None:
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert len(headings) == len(sections()), "two sections of one title, or a heading without a count"


def test_no_cell_is_empty_and_every_row_has_three() -> None:
    assert [row for row in all_rows() if len(row) != 3 or not all(row)] == []


@pytest.mark.parametrize("title", sections())
def test_each_of_kafkas_tests_is_listed_once(title: str) -> None:
    names = [row[0] for row in sections()[title][1]]
    assert sorted(set(names)) == sorted(names)


def test_every_test_named_exists() -> None:
    named = {(match["path"], match["name"]) for match in _REFERENCE.finditer(PAGE.read_text())}
    assert named
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (ROOT / path).is_file() or name not in functions_of(path)
    ]
    assert missing == []


def test_a_row_without_a_test_of_ours_gives_a_reason() -> None:
    unreasoned = [
        row
        for row in all_rows()
        if _REFERENCE.search(row[1]) is None and (len(row[1]) < SHORTEST_REASON or "tests/" in row[1])
    ]
    assert unreasoned == []


def test_every_departure_named_is_a_row_of_the_page_of_departures() -> None:
    listed = {cells_of(line)[0] for line in (ROOT / "docs" / "divergence.md").read_text().splitlines()}
    named = {match["row"].strip() for row in all_rows() for match in _DEPARTURE.finditer(row[2])}
    assert named - listed == set()
