"""Every rule of the protocol that the project cites stands in docs/protocol-rules.md or docs/coordinator-rules.md, with
its source."""

import re
from collections.abc import Iterator

import pytest

from tests.support.tree import ROOT, checked_in_files

PAGES = (ROOT / "docs" / "protocol-rules.md", ROOT / "docs" / "coordinator-rules.md")
_RULE = r"[RCFPGT]\d+(?:\.\d+)?"
# "rule R6.1", "rules R5.3, R5.4", "rules R6 to R8"; a line may break between them.
_CITATION = re.compile(rf"\b[Rr]ules?\s+({_RULE}(?:(?:, |,\s+| and | to ){_RULE})*)")
_ROW = re.compile(rf"^\| ({_RULE}) \| (.+) \| (.+) \|$", re.MULTILINE)
_SECTION = re.compile(r"^## (R\d+) ", re.MULTILINE)
# Notes that readers of the project do not have; written in pieces, so that this file does not find itself.
_UNPUBLISHED = re.compile(
    "|".join(["kraft-" + "semantics", "kraft-" + "formats", r"\bdemands? " + r"[D\d]\d*\b"])
)


def rules() -> set[str]:
    text = "\n".join(page.read_text() for page in PAGES)
    return {row[1] for row in _ROW.finditer(text)} | set(_SECTION.findall(text))


def cited_in(text: str) -> list[str]:
    return [rule for found in _CITATION.finditer(text) for rule in re.findall(_RULE, found[1])]


def pins_of(scenario: str) -> list[str]:
    """The rules in the heading of a scenario file, where "Pins:" may go over several lines."""
    heading = re.search(r"^# Pins:(.*?)(?=^# Why|^[^#])", scenario, re.MULTILINE | re.DOTALL)
    return re.findall(rf"(?<![\w.]){_RULE}(?![\w])", heading[1]) if heading else []


def citations() -> Iterator[tuple[str, str]]:
    """Each with the file that it stands in."""
    for path in checked_in_files():
        if path.suffix in (".py", ".md") and path not in PAGES:
            yield from ((rule, str(path.relative_to(ROOT))) for rule in cited_in(path.read_text()))
        elif path.suffix == ".txt" and "scenarios" in path.parts:
            yield from ((rule, str(path.relative_to(ROOT))) for rule in pins_of(path.read_text()))


def test_every_cited_rule_is_on_the_page() -> None:
    known, found = rules(), list(citations())
    assert len(found) > 200
    assert [citation for citation in found if citation[0] not in known] == []


def test_every_rule_says_what_it_is_from() -> None:
    rows = [row for page in PAGES for row in _ROW.findall(page.read_text())]
    assert len({rule for rule, _, _ in rows}) == len(rows) > 130
    assert [rule for rule, what, source in rows if len(what) < 20 or not re.search(r"[A-Z]\w+", source)] == []


def test_nothing_cites_notes_that_are_not_in_the_repository() -> None:
    guilty = [
        str(path.relative_to(ROOT))
        for path in checked_in_files()
        if path.suffix in (".py", ".md", ".txt") and _UNPUBLISHED.search(path.read_text(errors="replace"))
    ]
    assert guilty == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("checked in order (rule R6.1).", ["R6.1"]),
        ("(rules R5.3, R5.4 and R9)", ["R5.3", "R5.4", "R9"]),
        ("rules R6,\n    R7.2", ["R6", "R7.2"]),
        ("A10.4 or R2-D2 and ruleR3", []),
    ],
)
def test_a_citation_is_seen(text: str, expected: list[str]) -> None:
    assert cited_in(text) == expected
