"""The checklists in docs say which tests of ours assert what Kafka's tests assert:
here they are held to the sources."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.support.tree import ROOT

DOCS = ROOT / "docs"
# A section that vanished would take its rows, and what they claim, along.
FEWEST_SECTIONS = {"kraft-checklist.md": 20, "controller-checklist.md": 30, "coordinator-checklist.md": 4}
FEWEST_ROWS = {"kraft-checklist.md": 500, "controller-checklist.md": 240, "coordinator-checklist.md": 48}
PAGES = tuple(FEWEST_SECTIONS)
_HEADING = re.compile(r"^## (?P<title>.*) \((?P<rows>\d+)\)$")
# A file, a class in it, or a test at its top level or in the class.
_REFERENCE = re.compile(r"`(?P<path>tests/[\w/]+\.py)(?:::(?P<name>[\w:]+))?`")
_DEPARTURE = re.compile(r"departure: (?P<row>[^;|]+)")
SHORTEST_REASON = 40

pages = pytest.mark.parametrize("page", PAGES)


def cells_of(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def sections(page: str) -> dict[str, tuple[int, list[tuple[str, ...]]]]:
    """Title -> (rows that the heading claims, the rows below the table's head)."""
    found: dict[str, tuple[int, list[tuple[str, ...]]]] = {}
    rows: list[tuple[str, ...]] = []
    for line in (DOCS / page).read_text().splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            rows = []
            found[heading["title"]] = (int(heading["rows"]), rows)
        elif line.startswith("|"):
            rows.append(cells_of(line))
    return {title: (claimed, rows[2:]) for title, (claimed, rows) in found.items()}


def all_rows(page: str) -> Iterator[tuple[str, ...]]:
    for _, rows in sections(page).values():
        yield from rows


@cache
def names_of(path: str) -> frozenset[str]:
    """What may be named of a file: `test_x`, `TestY`, `TestY::test_x`, and `test_x` of a class without it as well."""
    return frozenset(_names_in(ast.parse((ROOT / path).read_text())))


def _names_in(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield node.name
            for inner in node.body:
                if _is_test(inner):
                    yield from (inner.name, f"{node.name}::{inner.name}")
        elif _is_test(node):
            yield node.name


def _is_test(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def exists(path: str, name: str | None) -> bool:
    file = ROOT / path
    if not file.is_file():
        return False
    return bool(names_of(path)) if name is None else name in names_of(path)


@pages
def test_there_are_sections_with_as_many_rows_as_their_headings_say(page: str) -> None:
    assert len(sections(page)) >= FEWEST_SECTIONS[page]
    counts = {title: (claimed, len(rows)) for title, (claimed, rows) in sections(page).items()}
    assert {title: count for title, count in counts.items() if count[0] != count[1]} == {}
    assert sum(count for count, _ in counts.values()) >= FEWEST_ROWS[page]


@pages
def test_every_heading_of_a_section_says_how_many_rows_it_has(page: str) -> None:
    headings = [line for line in (DOCS / page).read_text().splitlines() if line.startswith("## ")]
    assert len(headings) == len(sections(page)), "two sections of one title, or a heading without a count"


@pages
def test_no_cell_is_empty_and_every_row_has_three(page: str) -> None:
    assert [row for row in all_rows(page) if len(row) != 3 or not all(row)] == []


@pytest.mark.parametrize(("page", "title"), [(page, title) for page in PAGES for title in sections(page)])
def test_each_of_kafkas_tests_is_listed_once(page: str, title: str) -> None:
    names = [name.strip() for row in sections(page)[title][1] for name in row[0].split(",")]
    assert sorted(set(names)) == sorted(names)


@pages
def test_every_test_named_exists(page: str) -> None:
    named = {(match["path"], match["name"]) for match in _REFERENCE.finditer((DOCS / page).read_text())}
    assert named
    missing = [f"{path}::{name}" for path, name in sorted(named, key=str) if not exists(path, name)]
    assert missing == []


@pages
def test_every_file_of_tests_that_a_row_speaks_of_is_named_so_that_it_is_checked(page: str) -> None:
    unchecked = [row for row in all_rows(page) if "tests/" in _REFERENCE.sub("", " ".join(row[1:]))]
    assert unchecked == []


@pages
def test_a_row_without_a_test_of_ours_gives_a_reason(page: str) -> None:
    unreasoned = [
        row
        for row in all_rows(page)
        if _REFERENCE.search(row[1]) is None and (len(row[1]) < SHORTEST_REASON or "tests/" in row[1])
    ]
    assert unreasoned == []


@pages
def test_every_departure_named_is_a_row_of_the_page_of_departures(page: str) -> None:
    listed = {cells_of(line)[0] for line in (DOCS / "divergence.md").read_text().splitlines()}
    named = {match["row"].strip() for row in all_rows(page) for match in _DEPARTURE.finditer(row[2])}
    assert named - listed == set()


def test_a_name_that_is_not_there_is_noticed() -> None:
    own = str(Path(__file__).relative_to(ROOT))
    assert exists(own, "test_a_name_that_is_not_there_is_noticed")
    assert not exists(own, "test_a_name_that_was_never_there")
    assert not exists("tests/tidy/test_that_was_moved.py", None)
    assert not exists("tests/support/tree.py", None), "a file without tests"
