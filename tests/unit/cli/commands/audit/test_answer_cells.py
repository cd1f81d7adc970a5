"""Cells of an answer as CSV has them."""

import csv
import io
from decimal import Decimal

import pytest

from kquorum.cli.commands.audit import answers as answer_files


@pytest.mark.parametrize(
    "start",
    [
        *("=", "+", "-", "@", "\t", "\r", "\n"),
        *(" =", "\u00a0+", "\u2003@", "\u3000-", "\u200b=", "\ufeff=", "\x00=", "\x1f@", "\u202e=", "\x85="),
        *("\uff1d", "\ufe62", "\ufe6b", " \uff20", "\u2212"),
    ],
)
def test_a_text_from_a_log_is_no_formula_to_a_spreadsheet(start: str) -> None:
    text = f"{start}HYPERLINK(1)"
    assert answer_files._csv_cell(text) == f"'{text}"
    assert answer_files._csv_cell([text, "b"]) == f"'{text} b"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (-1, "-1"),
        (-1.5, "-1.5"),
        (Decimal("-2.5"), "-2.5"),
        ([-1, 2], "-1 2"),
        (float("-inf"), "-inf"),
        (True, "true"),
        (None, ""),
        ("a=b", "a=b"),
        ("2026-01-31T12:00:00.000Z", "2026-01-31T12:00:00.000Z"),
    ],
)
def test_everything_else_stays_as_it_is(value: object, cell: str) -> None:
    assert answer_files._csv_cell(value) == cell


class _Frame:
    def __init__(self, columns: list[str]) -> None:
        self.columns = columns


class _Table:
    name = "facts"
    total = 2
    frame = _Frame(["name", "offset", "share", "is_on", "none"])


def test_all_texts_are_quoted_and_numbers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a;b", -1, 0.5, True, None), ('say "x"', 2, Decimal("2.5"), False, None)]
    monkeypatch.setattr(answer_files, "_rows", lambda _table: iter(rows))
    out = io.StringIO()
    answer_files._write_csv(_Table(), out)  # type: ignore[arg-type]
    assert out.getvalue().splitlines() == [
        '"name","offset","share","is_on","none"',
        '"a;b",-1,0.5,"true",""',
        '"say ""x""",2,2.5,"false",""',
    ]
    assert list(csv.reader(io.StringIO(out.getvalue())))[2] == ['say "x"', "2", "2.5", "false", ""]
