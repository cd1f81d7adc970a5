"""tools/make_venv.sh: what a failed run leaves, and what it says of PYTHON. No package is installed here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT

SCRIPT = ROOT / "tools" / "make_venv.sh"
# Makes environments with itself in them, knows every module, and pip fails in it as it does offline.
PRETENDED = """#!/usr/bin/env bash
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *"pip install"*) exit 1 ;;
    *base_prefix*) echo "/elsewhere 3.11.0" ;;
    --version) echo "Python 3.11.0" ;;
esac
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    pretended = tmp_path / "python3.11"
    pretended.write_text(PRETENDED)
    pretended.chmod(0o755)
    return pretended


@pytest.fixture
def installed(tmp_path: Path, python: Path) -> Path:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").write_bytes(python.read_bytes())
    (venv / "bin" / "python").chmod(0o755)
    (venv / ".kquorum-installed").touch()
    return venv


def made(*arguments: str | Path, python: str | Path | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHON"}
    if python is not None:
        environment["PYTHON"] = str(python)
    command = ["bash", SCRIPT, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_failed_update_leaves_the_environment_that_worked(installed: Path, python: Path) -> None:
    ended = made(installed, python=python)
    assert ended.returncode == 1
    assert f"{installed} is kept" in ended.stderr
    assert (installed / "bin" / "python").exists()
    assert (installed / ".kquorum-installed").exists()


def test_a_new_environment_that_failed_is_removed(tmp_path: Path, python: Path) -> None:
    ended = made(tmp_path / "new", python=python)
    assert ended.returncode == 1
    assert "could not be installed" in ended.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("check", [(), ("--check",)])
def test_another_python_than_that_of_the_environment_is_reported(
    installed: Path, check: tuple[str, ...]
) -> None:
    told = made(*check, installed, python=sys.executable).stderr
    assert f"PYTHON={sys.executable} is not the Python of {installed}" in told


@pytest.mark.parametrize("is_named", [True, False])
def test_no_note_where_the_other_python_is_the_same_or_missing(
    installed: Path, python: Path, is_named: bool
) -> None:
    ended = made("--check", installed, python=python if is_named else None)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
