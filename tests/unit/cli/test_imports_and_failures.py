"""The command line starts fast: what is not used is not imported; a failure is one line."""

import os
import subprocess
import sys

import pytest

from kquorum.cli.command_tree import command_names, load
from kquorum.cli.failures import CliError, ExitStatus, message_of, status_of
from kquorum.cli.main import run
from kquorum.network.errors import CannotConnect, PortInUse
from kquorum.raft.adapters.errors import QuorumStateDamaged
from kquorum.storage.errors import FolderLocked, FsyncFailed, NotFormatted
from kquorum.wire.errors import DecodeError
from tests.support.tree import ROOT

_PROBE = """
import sys
from kquorum.cli.main import run
run(sys.argv[2:])
print("LOADED", *sorted(set(sys.argv[1].split(",")) & set(sys.modules)))
"""
_HEAVY = "grpc,pyspark,pyarrow,pandas,uvloop,kafka,confluent_kafka"


def loaded_by(forbidden: str, *command: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, forbidden, *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=True,
    )
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "LOADED", done.stdout + done.stderr
    return last[1:]


@pytest.mark.parametrize(
    "command",
    [
        ("--help",),
        ("log", "--help"),
        ("topics", "create", "--help"),
        ("audit", "as-of", "--help"),
        ("reassign", "plan", "--help"),
        ("doctor", "--help"),
    ],
    ids=" ".join,
)
def test_help_loads_only_what_it_prints_with(command: tuple[str, ...]) -> None:
    forbidden = f"{_HEAVY},pydantic,numpy,asyncio,kio,kquorum.network,kquorum.metadata"
    assert loaded_by(forbidden, *command) == []


def test_the_list_of_commands_needs_no_part_of_a_node() -> None:
    assert loaded_by("kquorum.node,kquorum.cli.clients.security,kquorum.wire", "--help") == []


@pytest.mark.parametrize(
    "command",
    [
        ("format", "--config", "examples/quorum.toml", "--node", "99"),
        ("quorum", "status", "--bootstrap-controller", "127.0.0.1:1"),
        ("topics", "list", "--bootstrap-server", "127.0.0.1:1"),
        ("log", "dump", "README.md"),
    ],
    ids=lambda command: command[0],
)
def test_commands_that_need_no_grpc_or_spark_load_neither(command: tuple[str, ...]) -> None:
    assert loaded_by(_HEAVY, *command) == []


@pytest.mark.parametrize("name", command_names())
def test_every_command_loads_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert load(name) is not None
    assert run([name, "--help"]) == 0
    assert "--help" in capsys.readouterr().out


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in command_names())


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topcs"]) == 2
    assert "did you mean topics?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CliError("x", status=ExitStatus.DAMAGED_INPUT), 3),
        (DecodeError("x"), 3),
        (QuorumStateDamaged(ROOT, "x"), 3),
        (NotFormatted(ROOT, "x"), 4),
        (FolderLocked(ROOT, 7), 4),
        (PortInUse("h", 1), 5),
        (CannotConnect("h", 1, "x"), 6),
        (ModuleNotFoundError("x", name="pyspark"), 7),
        (ZeroDivisionError("x"), 70),
        (FsyncFailed(ROOT, OSError(5, "Input/output error")), 74),
        (PermissionError(13, "Permission denied", "/x"), 74),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_failure_has_its_exit_status(error: Exception, status: int) -> None:
    assert status_of(error) == status
    assert "\n" not in message_of(error)


def failing_config(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("kquorum.node.config.load.load_config", fail)


def test_a_defect_is_reported_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_config(monkeypatch)
    assert run(["format"]) == 70
    told = capsys.readouterr().err
    assert told.startswith("error: internal error (ZeroDivisionError: a defect)")
    assert "Traceback" not in told


def test_debug_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_config(monkeypatch)
    assert run(["--debug", "format"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_the_address_of_the_cluster_is_required(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    monkeypatch.delenv("KQUORUM_CONFIG", raising=False)
    assert run(["topics", "list"]) == 2
    assert "Give --config FILE or --bootstrap-server" in capsys.readouterr().err


def test_an_unreachable_cluster_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quorum", "status", "--bootstrap-controller", "127.0.0.1:1,127.0.0.1:2"]) == 6
    told = capsys.readouterr().err
    assert "127.0.0.1:1" in told
    assert "127.0.0.1:2" in told
