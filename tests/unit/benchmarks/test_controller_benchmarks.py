"""The benchmarks of large images at a small size: they run, and say what they did."""

import json

import pytest

from benchmarks import controller_creation, controller_failover, metadata_answers


def test_failover(capsys: pytest.CaptureFixture[str]) -> None:
    controller_failover.main(["--topics", "10", "--partitions", "20", "--plain", "20", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["results"]["failover"]
    assert row["partitions_led"] == 20
    assert row["partitions_changed"] >= 20, "and those that it was only in sync with"


def test_creation(capsys: pytest.CaptureFixture[str]) -> None:
    controller_creation.main(["--topics", "4", "--partitions", "20", "--a-request", "2", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["results"]["creation"]
    assert row["partitions"] == 80


def test_metadata_answers(capsys: pytest.CaptureFixture[str]) -> None:
    metadata_answers.main(["--topics", "20", "--small-topics", "5", "--seconds", "0.01", "--json"])
    tables = json.loads(capsys.readouterr().out)["results"]
    kio, first, again = tables["all topics"]
    assert kio["megabytes"] == first["megabytes"] == again["megabytes"] > 0.08
    # One for the parts, which are known, and one to join them, which waits for room in memory like any other.
    assert first["slices"] >= again["slices"] == 2
    assert all(row["requests_per_second"] > 0 for row in tables["requests for all of 5 topics x 10"])
