"""Percentiles and tables of the benchmarks."""

import json

import pytest

from benchmarks._report import hardware, percentile, print_result


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([7.0], 50, 7.0),
        ([7.0], 99, 7.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        ([4.0, 3.0, 2.0, 1.0], 50, 2.0),
        ([float(number) for number in range(1, 101)], 99, 99.0),
        ([float(number) for number in range(1, 101)], 100, 100.0),
        ([float(number) for number in range(1, 6)], 99, 5.0),
    ],
)
def test_a_percentile_is_a_measured_value(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_a_result_is_printed_as_a_table_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    tables = {"title": [{"what": "this", "us_per_step": 1234.5}], "nothing": []}
    print_result("some", hardware(), {"rounds": 3}, tables, as_json=False)
    printed = capsys.readouterr().out
    assert "rounds 3" in printed
    assert "us per step" in printed
    assert "1,234" in printed
    assert "nothing" not in printed
    print_result("some", hardware(), {"rounds": 3}, tables, as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["results"] == tables
    assert result["settings"] == {"rounds": 3}
