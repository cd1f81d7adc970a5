"""What `audit report` refuses before it starts Spark, and how the page gets to its place."""

from pathlib import Path

import pytest

from kquorum.cli.commands.audit.report import ReportRequest, _check, _put
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.main import run
from kquorum.spark_replay.report.page import render
from tests.support.report_facts import empty_facts, full_facts


def refusal(*options: str, path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["audit", "report", str(path), *options]) == ExitStatus.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return " ".join(captured.err.split())


def test_the_page_does_not_replace_what_is_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.html"
    notes.write_text("<p>mine")
    assert "exists and is no report" in refusal("--out", str(notes), path=tmp_path, capsys=capsys)
    assert notes.read_text() == "<p>mine"
    assert "is a folder" in refusal("--out", str(tmp_path), path=tmp_path, capsys=capsys)
    missing = tmp_path / "missing" / "report.html"
    assert "there is no folder" in refusal("--out", str(missing), path=tmp_path, capsys=capsys)


def test_times_are_read_before_anything_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", str(tmp_path / "report.html"))
    assert "neither ISO 8601" in refusal("--since", "yesterday", *out, path=tmp_path, capsys=capsys)
    late, early = "2026-03-11T00:00:00Z", "2026-03-10T00:00:00Z"
    told = refusal("--since", late, "--until", early, *out, path=tmp_path, capsys=capsys)
    assert "--since is later than --until" in told


def test_a_folder_without_a_log_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert str(tmp_path) in refusal("--out", str(out), path=tmp_path, capsys=capsys)
    assert not out.exists()


def test_a_report_replaces_a_report_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    _put(out, render(full_facts()).encode())
    request = ReportRequest(
        path=tmp_path,
        out=out,
        source=None,
        since_ms=None,
        until_ms=None,
        with_checks=False,
        engine=None,
        master="local[1]",
    )
    _check(request)
    _put(out, render(empty_facts()).encode())
    assert out.read_text(encoding="utf-8") == render(empty_facts())
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    out.unlink()
    out.mkdir()
    with pytest.raises(CliError, match="cannot be written"):
        _put(out, b"page")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
