"""`kquorum --version` names the commit: that of the wheel's build, or of the checkout."""

import subprocess
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.cli.version import BAKED_IN, commit_text


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "kquorum"
    package.mkdir()
    (package / "file").write_text("1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return package


def test_a_checkout_tells_its_commit_and_whether_it_was_changed(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert commit_text(checkout) == commit
    (checkout / "new").write_text("untracked files are no change")
    assert commit_text(checkout) == commit
    (checkout / "file").write_text("2")
    assert commit_text(checkout) == f"{commit}, modified"


def test_what_was_baked_in_wins(checkout: Path) -> None:
    (checkout / BAKED_IN).write_text("0123456789ab\n")
    assert commit_text(checkout) == "0123456789ab"


def test_elsewhere_nothing_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "kquorum").mkdir()
    assert commit_text(tmp_path / "kquorum") is None


def test_a_machine_without_git_claims_nothing(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert commit_text(checkout) is None


def test_the_option_prints_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("kquorum.cli.version.commit_text", lambda: "0123456789ab")
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.endswith("(commit 0123456789ab)\n")
