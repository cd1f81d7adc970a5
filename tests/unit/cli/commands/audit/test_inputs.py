"""What `audit build` says of inputs that it cannot take, before it starts Spark."""

import os
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from tests.support.sample_logs import write_sample


def refused(capsys: pytest.CaptureFixture[str], out: Path, *inputs: object) -> str:
    assert run(["audit", "build", *map(str, inputs), "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert not out.exists()
    return captured.err


def test_every_path_must_be_there_and_hold_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_sample(tmp_path / "node-1")
    (tmp_path / "empty").mkdir()
    assert "missing does not exist" in refused(capsys, tmp_path / "out", log, tmp_path / "missing")
    assert "empty holds no metadata log" in refused(capsys, tmp_path / "out", tmp_path / "empty", log)


def test_one_file_among_several_that_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_sample(tmp_path / "node-1")
    (tmp_path / "notes.txt").write_text(
        "no log at all, but long enough to be the header of a batch, and more"
    )
    told = refused(capsys, tmp_path / "out", log, tmp_path / "notes.txt")
    assert "notes.txt is not a Kafka log segment or snapshot" in told


def test_a_folder_that_may_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    write_sample(folder / "node-1")
    real = os.open

    def opened(path: Path | str, flags: int, *args: int, **options: Any) -> int:
        if Path(path).name == "node-1":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *args, **options)

    monkeypatch.setattr("os.open", opened)
    assert "caf\\xe9/node-1: Permission denied" in refused(capsys, tmp_path / "out", folder)


def test_tables_may_go_into_the_folder_of_none_of_the_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = write_sample(tmp_path / "a"), write_sample(tmp_path / "b")
    out = second / "__cluster_metadata-0" / "out"
    assert "is inside the log that is audited" in refused(capsys, out, first, second)
