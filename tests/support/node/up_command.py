"""The command `kquorum up`, run as a process on a small cluster."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kquorum.cli.processes import wait_until
from tests.support.tree import ROOT

TIMEOUT_S = 60.0


EXAMPLE = Path("examples/quorum.toml")


EXAMPLE_NODES = 6


SMALL = """
[cluster]
cluster.id = "a3F1b3J1bS1leGFtcGxlMQ"
[defaults]
log.dirs = "node-{node.id}"
controller.listener.names = "CONTROLLER"
[[nodes]]
node.id = 1
process.roles = "controller"
listeners = "CONTROLLER://127.0.0.1:9093"
[[nodes]]
node.id = 11
process.roles = "broker"
listeners = "PLAINTEXT://127.0.0.1:9092"
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kquorum.cli.entry", *arguments]


class Up:
    """A running `up` whose output is a file, as under a supervisor."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.config = folder / "quorum.toml"
        self._log = folder / "up.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command("up", "-c", str(config), "--free-ports", "--data-dir", str(folder)),
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        return self._log.read_text()

    def wait(self, condition: Callable[[str], bool], what: str) -> None:
        assert wait_until(lambda: condition(self.said()), TIMEOUT_S), f"never {what}:\n{self.said()}"

    def wait_all_ready(self, nodes: int = EXAMPLE_NODES) -> None:
        self.wait(lambda said: said.count(" is ready") == nodes and "leads epoch" in said, "were all ready")

    def pids(self) -> dict[int, int]:
        return {
            int(node): int(pid)
            for node, pid in re.findall(r"node (\d+) \(.*pid (\d+)\) is ready", self.said())
        }

    def ask(self, *arguments: str) -> Any:
        done = subprocess.run(
            command(*arguments, "--config", str(self.config), "--json"),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextmanager
def running(folder: Path, config: Path = EXAMPLE) -> Iterator[Up]:
    up = Up(folder, config)
    try:
        yield up
    finally:
        if up.process.poll() is None:
            up.process.kill()  # the nodes are set to die with it
            up.process.wait()
