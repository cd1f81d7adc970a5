"""`kquorum log verify` as tests run it."""

import json
from pathlib import Path

import pytest

from kquorum.cli.main import run

Found = dict[str, dict[str, int]]


def verified(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, Found, str]:
    """Exit status, the counts of findings by check, and everything that was said."""
    status = run(["log", "verify", str(path), "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    (log,) = json.loads(captured.out)["logs"]
    found = {check["check"]: check["counts"] for check in log["checks"] if check["counts"]}
    return status, found, captured.out


def findings_of(said: str, check: str) -> list[dict[str, str]]:
    (log,) = json.loads(said)["logs"]
    return [finding for each in log["checks"] if each["check"] == check for finding in each["findings"]]
