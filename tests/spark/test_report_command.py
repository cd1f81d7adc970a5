"""`kquorum audit report` from end to end, in the session of the tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import run
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class Unstopped:
    """The shared session, which no test may stop."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Left running for the other tests."""


@pytest.fixture(autouse=True)
def shared_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.audit.spark.start_session", lambda work_folder, **options: Unstopped(spark))


def test_a_page_from_a_damaged_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The sample has an unclean election, a partition without a leader, transactions, and half a batch at its end."""
    log, out = write_sample(tmp_path / "sample"), tmp_path / "report.html"
    assert run(["audit", "report", str(log), "--out", str(out)]) == 3
    told = capsys.readouterr().out
    assert f"{out.name}: " in told
    assert "- The log is damaged in 1 place: what stood there is not on this page." in told
    assert "- 1 unclean election: records may be lost, first of topic orders at 1970-01-01 00:00:08." in told
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<td>torn</td>" in page
    assert "0\u201328" in page
    assert 'aria-label="controller 2: led 1 epoch, 1.2 s in all"' in page
    assert "They were not run for this page" not in page


def test_a_page_of_an_audit_without_checks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log, audit, out = write_sample(tmp_path / "sample"), tmp_path / "audit", tmp_path / "report.html"
    assert run(["audit", "build", str(log), "--out", str(audit), "--json"]) == 3
    capsys.readouterr()
    options = ["--out", str(out), "--no-checks", "--json", "--since", "7000", "--until", "9000"]
    assert run(["audit", "report", str(audit), *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["since_ms"], told["until_ms"]) == ("sample", 7000, 9000)
    assert told["size_in_bytes"] == out.stat().st_size
    assert [each["section"] for each in told["highlights"]][:2] == ["damage", "unclean"]
    page = out.read_text(encoding="utf-8")
    assert "They were not run for this page" in page
    assert run(["audit", "report", str(audit), "--out", str(out), "--no-checks", "--since", "99999"]) == 0
    assert "The log holds no records of this time." in out.read_text(encoding="utf-8")
