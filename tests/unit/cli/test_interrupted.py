"""Ctrl-C at any moment of a command: one line, exit status 130, and never a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT

# The process interrupts itself when it is about to import the module, or at its end.
_PROGRAM = """
import atexit, os, sys

SIGINT = 2  # `signal` would import what is to be interrupted
moment = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), SIGINT)

def interrupt():
    os.kill(os.getpid(), SIGINT)

if moment == "the end":
    atexit.register(interrupt)
else:
    sys.meta_path.insert(0, Interrupting())
sys.argv[:] = ["kquorum", *sys.argv[2:]]
from kquorum.cli.entry import main
main()
"""
_TOPICS = ("topics", "list", "--bootstrap-server", "127.0.0.1:1")
_WATCH = ("watch", "--grpc", "127.0.0.1:1")
_STATUS = ("quorum", "status", "--bootstrap-controller", "127.0.0.1:1")

# As above, for what the shell runs: every import from the script's first line on.
_LAUNCHER = (
    _PROGRAM.partition("sys.argv[:] =")[0]
    + """
sys.argv[:] = sys.argv[2:]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
"""
)


@pytest.mark.parametrize(
    ("moment", "command"),
    [
        ("signal", _TOPICS),
        ("enum", _TOPICS),
        ("typing", _TOPICS),
        ("kquorum.cli.failures", _TOPICS),
        ("kquorum.cli.main", _TOPICS),
        ("typer", _TOPICS),
        ("rich.console", ("--help",)),
        ("kquorum.cli.clients.security", _TOPICS),
        ("kquorum.cli.commands.topics.command", _TOPICS),
        ("asyncio", _TOPICS),
        ("pydantic", ("format", "--config", "examples/quorum.toml")),
        ("numpy", ("log", "dump", "README.md")),
        ("kquorum.cli.clients.cluster_client", _STATUS),
        ("grpc", _WATCH),
        ("the end", ("random-uuid",)),
        ("the end", ("--version",)),
    ],
)
def test_one_line_and_no_traceback(moment: str, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, moment, *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n"), done


@pytest.mark.parametrize("moment", ["re", "kquorum", "kquorum.cli", "kquorum.cli.entry"])
def test_no_traceback_before_the_first_module_of_ours_is_there(moment: str) -> None:
    """`re` is not imported so early, but is by the script that pip makes of an entry point."""
    script = Path(sys.executable).with_name("kquorum")
    assert script.is_file(), "run `make setup`"
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, moment, str(script), *_TOPICS],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) in [(-signal.SIGINT, ""), (130, "interrupted\n")], done


def test_the_command_starts_from_a_folder_with_blanks(tmp_path: Path) -> None:
    """The kernel ends an interpreter's path at the first blank, and cuts a long one off."""
    environment = tmp_path / "a folder with blanks" / ("long" * 60)
    (environment / "bin").mkdir(parents=True)
    python, script = environment / "bin" / "python", environment / "bin" / "kquorum"
    python.symlink_to(sys.executable)
    installed = Path(sys.executable).with_name("kquorum").read_text()
    script.write_text(installed.replace(str(Path(sys.executable).parent), str(environment / "bin")))
    script.chmod(0o755)
    done = subprocess.run(
        [script, "--version"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
