"""`kquorum audit report` from end to end, in the session of the tests."""

import json
from pathlib import Path

import pytest

from kquorum.cli.main import run
from tests.support.sample_logs import write_sample
from tests.support.spark.eventful_days import FLAPS, write_eventful_days
from tests.support.spark.eventful_history import TOPICS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.usefixtures("shared_session"),
]


@pytest.mark.slow
def test_a_page_from_a_damaged_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The sample has an unclean election, a partition without a leader, transactions, and half a batch at its end."""
    log, out = write_sample(tmp_path / "sample"), tmp_path / "report.html"
    assert run(["audit", "report", str(log), "--out", str(out), "--no-checks"]) == 3
    told = capsys.readouterr().out
    assert f"{out.name}: " in told
    assert "- The log is damaged in 1 place: what stood there is not on this page." in told
    assert "- 1 unclean election: records may be lost, first of topic orders at 1970-01-01 00:00:08." in told
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<td>torn</td>" in page
    assert "0\u201328" in page
    assert 'aria-label="controller 2: led 1 epoch, 1.2 s in all"' in page
    assert "They were not run for this page" in page


@pytest.mark.slow
def test_a_page_of_an_audit_without_checks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log, audit, out = write_sample(tmp_path / "sample"), tmp_path / "audit", tmp_path / "report.html"
    assert run(["audit", "build", str(log), "--out", str(audit), "--json"]) == 3
    capsys.readouterr()
    options = ["--out", str(out), "--no-checks", "--json", "--since", "7000", "--until", "9000"]
    assert run(["audit", "report", str(audit), *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["since_ms"], told["until_ms"]) == ("sample", 7000, 9000)
    assert told["size_in_bytes"] == out.stat().st_size
    first, *others = told["highlights"]
    assert first["section"] == "damage"
    assert "cannot be read beyond" in first["text"], "what all else is to be read by"
    assert [each["section"] for each in others][:2] == ["damage", "unclean"]
    page = out.read_text(encoding="utf-8")
    assert "They were not run for this page" in page
    assert run(["audit", "report", str(audit), "--out", str(out), "--no-checks", "--since", "99999"]) == 0
    assert "The log holds no records of this time." in out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_two_eventful_days(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What the plan of these days holds is what the page says first; docs/audit.md shows it."""
    log, out = write_eventful_days(tmp_path / "eventful"), tmp_path / "report.html"
    assert run(["audit", "report", str(log), "--out", str(out), "--checks"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    clicks = TOPICS["clicks"]
    assert (
        f"- {clicks} unclean elections: records may be lost, first of topic clicks at 2026-03-11 04:27:01."
        in told
    )
    assert f"- Fenced without a shutdown: brokers 16 ({FLAPS + 1}\u00d7), 13 (2\u00d7), 15 (2\u00d7)" in told
    assert "- The log has an idle gap of 38 min 30 s from 2026-03-11 02:40:30: no controller wrote." in told
    assert "- 5 epochs, led by 3 controllers; the last one is 6." in told
    page = out.read_text(encoding="utf-8")
    assert "reassign 24 partitions of clicks<br/>\u201crack a is short of disks, OPS-2213\u201d" in page
    assert "0 violations" in page
