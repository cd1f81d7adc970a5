"""`kquorum log dump --json`, read back."""

import json
from pathlib import Path

import pytest

from kquorum.cli.main import run


def dump_json(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[dict[str, object]]:
    """The rows of `log dump --json` of a sound log."""
    status = run(["log", "dump", str(path), "--json", *options])
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    return [json.loads(line) for line in captured.out.splitlines()]
