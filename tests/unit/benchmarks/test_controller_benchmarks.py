"""The controller's benchmarks at a small size: they run, and say what they did."""

import json

import pytest

from benchmarks import controller_creation, controller_failover


def test_failover(capsys: pytest.CaptureFixture[str]) -> None:
    controller_failover.main(["--topics", "10", "--partitions", "20", "--plain", "20", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["results"]["failover"]
    assert row["partitions_led"] == 20
    assert row["partitions_changed"] >= 20, "and those that it was only in sync with"


def test_creation(capsys: pytest.CaptureFixture[str]) -> None:
    controller_creation.main(["--topics", "4", "--partitions", "20", "--a-request", "2", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["results"]["creation"]
    assert row["partitions"] == 80
