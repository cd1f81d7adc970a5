"""`kquorum audit archive`: what it prints, and its exit statuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.spark_replay.archive.files import archive_locked
from tests.support.node_logs import NodeLog, flip


@pytest.fixture
def node(tmp_path: Path) -> NodeLog:
    return NodeLog(tmp_path / "node-1").fill(3, 4, 2)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def archive(*args: object) -> int:
    return run(["audit", "archive", *map(str, args)])


def test_a_run_says_what_it_copied_and_what_is_not_archived_yet(
    node: NodeLog, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert archive(node.folder, "--to", to) == 0
    out = capsys.readouterr().out
    row = next(line.split() for line in out.splitlines() if line.strip().startswith("node-1"))
    assert row == ["node-1", "2", "504", "0", "0", "0", "to", "6", "7"]
    assert archive(node.folder, "--to", to, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["members"][0]["not_archived_from"] == 7
    assert report["members"][0]["copied"] == []
    assert archive(to, "--verify") == 0
    captured = capsys.readouterr()
    assert f"head {report['head']}" in captured.out
    assert "every file is as it was archived" in captured.out
    assert captured.err == ""


def test_nothing_closed_is_said(tmp_path: Path, to: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert archive(NodeLog(tmp_path / "node-1").fill(3).folder, "--to", to) == 0
    assert "node-1: no segment is closed yet" in capsys.readouterr().out


def test_a_gap_is_status_3_once_with_the_offsets_that_are_lost(
    node: NodeLog, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(node.folder, "--to", to)
    node.roll()
    node.remove(7)
    capsys.readouterr()
    assert archive(node.folder, "--to", to) == 3
    assert "gap: node-1: offsets 7 to 8 are missing: lost for good" in capsys.readouterr().err
    assert archive(node.folder, "--to", to) == 0
    assert "(known)" in capsys.readouterr().err


def test_damage_is_status_3_and_verify_says_it_again(
    node: NodeLog, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(node.segment(3), 100)
    assert archive(node.folder, "--to", to) == 3
    assert "damage: node-1: 00000000000000000003.log, position 72: " in capsys.readouterr().err
    assert archive(node.folder, "--to", to) == 0
    assert archive(to, "--verify") == 3


def test_a_contradiction_is_status_1(node: NodeLog, to: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive(node.folder, "--to", to)
    capsys.readouterr()
    flip(node.segment(0), 70)
    assert archive(node.folder, "--to", to) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: nothing was archived: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_change_of_the_archive_is_status_1(
    node: NodeLog, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(node.folder, "--to", to)
    capsys.readouterr()
    flip(to / "node-1" / "__cluster_metadata-0" / "00000000000000000003.log", 5)
    assert archive(to, "--verify") == 1
    captured = capsys.readouterr()
    assert "changed: node-1/__cluster_metadata-0/00000000000000000003.log: SHA-256" in captured.err
    assert "every file is as it was" not in captured.out
    assert archive(to, "--verify", "--json") == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["kind"] == "changed"
    assert archive(to, "--verify", "--head", "abc") == 1


def test_a_run_at_work_is_status_4(node: NodeLog, to: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive(node.folder, "--to", to)
    with archive_locked(to):
        assert archive(node.folder, "--to", to) == 4
    assert "is at work" in capsys.readouterr().err


def test_what_cannot_be_meant_is_status_2(node: NodeLog, to: Path, tmp_path: Path) -> None:
    assert archive(node.folder) == 2
    assert archive(tmp_path / "missing", "--to", to) == 2
    assert archive(node.active, "--to", to) == 2
    assert archive(node.folder, "--to", node.folder / "archive") == 2
    assert archive(tmp_path, "--verify") == 2
    assert archive(to, "--verify", "--to", to) == 2
    assert archive(node.folder, "--to", to, "--head", "abc") == 2
    assert not to.exists()


def test_no_spark_is_needed(node: NodeLog, to: Path) -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; from kquorum.cli.main import run; "
        f"sys.exit(run(['audit', 'archive', {str(node.folder)!r}, '--to', {str(to)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
