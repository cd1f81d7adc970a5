"""Completion: the scripts for shells, and what `kquorum` answers to them."""

import subprocess
import sys

import pytest

from kquorum.cli.command_tree import COMPLETION_VARIABLE, command_names
from kquorum.cli.main import run

_PROBE = f"""
import os, sys
asked = {{"{COMPLETION_VARIABLE}": "complete_bash", "COMP_WORDS": "kquorum topics ", "COMP_CWORD": "2"}}
os.environ.update(asked)
from kquorum.cli.main import run
run([])
heavy = {{"grpc", "pyspark", "numpy", "pydantic", "asyncio", "kquorum.network", "kquorum.metadata"}}
print("LOADED", *sorted(heavy & set(sys.modules)))
"""


def completed(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The answer to bash for a line, whose last word is to be completed."""
    words = line.split(" ")
    monkeypatch.setenv(COMPLETION_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    capsys.readouterr()
    assert run([]) == 0
    return capsys.readouterr().out.split()


def test_commands_subcommands_options_and_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(completed("kquorum ", monkeypatch, capsys)) == set(command_names())
    assert completed("kquorum top", monkeypatch, capsys) == ["topics"]
    assert completed("kquorum topics al", monkeypatch, capsys) == ["alter"]
    assert completed("kquorum topics alter --part", monkeypatch, capsys) == ["--partitions"]
    assert completed("kquorum elect-leaders --type ", monkeypatch, capsys) == ["preferred", "unclean"]
    assert completed("kquorum may re", monkeypatch, capsys) == ["restart", "remove"]


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o default"), ("zsh", "compdef"), ("fish", "complete --command")]
)
def test_there_is_a_script_for_each_shell(shell: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert word in script
    assert COMPLETION_VARIABLE in script


def test_bash_accepts_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_completion_loads_no_part_of_a_node() -> None:
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    assert "alter" in done.stdout
    assert done.stdout.splitlines()[-1] == "LOADED"
