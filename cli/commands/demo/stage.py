"""Where the demo plays: its folders, its nodes, and the commands that it runs in front of the audience."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule

from kquorum.cli.clients.addresses import quorum_addresses
from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.clients.quorum_client import QuorumStatus, describe_quorum
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.processes import NodeGroup, wait_until
from kquorum.node.config.model import ClusterConfig

STEPS = 7
STATUS_TIMEOUT_MS = 5000
Condition = Callable[[], bool]
QuorumCondition = Callable[[dict[str, Any]], bool]


class Stage:
    """What every step needs. Commands are printed before they run, so that they can be tried by hand."""

    def __init__(
        self, console: Console, config_path: Path, config: ClusterConfig, nodes: NodeGroup, out: Path
    ) -> None:
        self.console = console
        self.config_path = config_path
        self.config = config
        self.nodes = nodes
        self.out = out
        self.created: list[str] = []

    @contextmanager
    def step(self, number: int, title: str) -> Iterator[None]:
        self.console.print()
        self.console.print(Rule(f"[bold]{number}/{STEPS}  {title}", align="left"))
        began = time.monotonic()
        yield
        self.console.print(f"[dim]step {number} took {time.monotonic() - began:.1f} s")

    def say(self, text: str) -> None:
        self.console.print(text)

    def broker_address(self, position: int) -> str:
        """`host:port` of the broker at this position of the config."""
        listener = self.config.brokers[position].broker_listeners[0]
        return f"{listener.host}:{listener.port}"

    def log_folder(self, node_id: int) -> Path:
        return self.config.node(node_id).metadata_log_dir / "__cluster_metadata-0"

    # Commands

    def show(self, *arguments: str, accept: Sequence[int] = (0,)) -> None:
        """Run a command of ours with its output on this terminal; raises CliError when it fails."""
        self.announce(arguments)
        self.console.file.flush()
        done = subprocess.run(
            _command(arguments), env=self._environment(), stdin=subprocess.DEVNULL, check=False
        )
        _check(arguments, done.returncode, accept)

    def show_here(self, *arguments: str, accept: Sequence[int] = (0,)) -> None:
        """As `show`, in this process: the commands of `audit` share its Spark."""
        from kquorum.cli.main import run

        self.announce(arguments)
        self.console.file.flush()
        status = run(list(arguments))
        if status == ExitStatus.INTERRUPTED:
            raise SystemExit(status)  # it has said so, and the demo ends as it did
        _check(arguments, status, accept)

    def show_part(self, *arguments: str, lines: int) -> int:
        """As `show`, but only the first lines; answers how many there were."""
        self.announce((*arguments, f"| head -{lines}"))
        done = subprocess.run(
            _command(arguments),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        printed = done.stdout.decode(errors="replace").splitlines()
        if done.returncode != 0:
            self.console.print(done.stderr.decode(errors="replace"), markup=False, highlight=False)
        for line in printed[:lines]:
            self.console.out(line, highlight=False)
        _check(arguments, done.returncode, (0,))
        return len(printed)

    def command(self, *arguments: str) -> Sequence[str]:
        """A command of ours at this cluster, to be run by the caller."""
        return _command((*arguments, "--config", str(self.config_path)))

    def output(self, *arguments: str) -> str:
        """What a command of ours at this cluster prints; raises CliError when it fails."""
        self.announce(arguments)
        done = subprocess.run(
            self.command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            self.console.print(done.stderr, markup=False, highlight=False)
        _check(arguments, done.returncode, (0,))
        return done.stdout

    def announce(self, arguments: Sequence[str]) -> None:
        shown = " ".join(_short(argument) for argument in arguments)
        self.console.print(f"[bold cyan]$ kquorum {shown}", highlight=False)

    def _environment(self) -> dict[str, str]:
        environment = os.environ | {"COLUMNS": str(self.console.width)}
        if self.console.is_terminal:
            environment["FORCE_COLOR"] = "1"
        return environment

    # The quorum

    def quorum(self) -> dict[str, Any] | None:
        """What `quorum status --json` prints, or None while there is no leader."""

        async def ask() -> QuorumStatus:
            addresses = quorum_addresses(self.config_path, None, None)
            async with ClusterClient(addresses, STATUS_TIMEOUT_MS) as client:
                return await describe_quorum(client)

        try:
            return run_asking(ask()).as_json()
        except CliError:
            return None

    def wait_for_quorum(self, wanted: QuorumCondition, what: str, timeout_s: float = 30) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def holds() -> bool:
            status = self.quorum()
            if status is None or not wanted(status):
                return False
            found.append(status)
            return True

        self.wait(holds, what, timeout_s)
        return found[-1]

    def wait(self, condition: Condition, what: str, timeout_s: float = 30) -> None:
        with self.console.status(f"waiting until {what} ..."):
            if not wait_until(condition, timeout_s, interval_s=0.05):
                raise CliError(
                    f"the demo waited {timeout_s:.0f} s in vain until {what}", status=ExitStatus.FAILED
                )


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "kquorum.cli.entry", *arguments]


def _short(argument: str) -> str:
    """A path as one would type it."""
    if not argument.startswith("/"):
        return argument
    return os.path.relpath(argument) if len(os.path.relpath(argument)) < len(argument) else argument


def _check(arguments: Sequence[str], status: int, accept: Sequence[int]) -> None:
    if status not in accept:
        command = " ".join(arguments)
        raise CliError(f"`kquorum {command}` ended with exit status {status}", status=ExitStatus.FAILED)
