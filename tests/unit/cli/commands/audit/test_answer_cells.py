"""Cells of an answer as CSV has them."""

from decimal import Decimal

import pytest

from kquorum.cli.commands.audit import answers as answer_files


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
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
