"""`kquorum up` with real processes: all come up, one that dies is shown, and nothing is left behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.processes import wait_until
from tests.tidy.tree import ROOT

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


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_cluster_comes_up_and_stops_cleanly(tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    small.write_text(SMALL)
    with running(tmp_path, small) as up:
        up.wait_all_ready(2)
        pids = up.pids()
        assert sorted(pids) == [1, 11]
        up.ask("topics", "create", "orders", "--partitions", "2")
        assert [topic["name"] for topic in up.ask("topics", "list")] == ["orders"]
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(TIMEOUT_S) == 0, up.said()
        assert "error" not in up.said()
        assert not any(is_alive(pid) for pid in pids.values())

    with running(tmp_path, small) as again:
        again.wait_all_ready(2)
        assert "formatted" not in again.said()
        assert [topic["name"] for topic in again.ask("topics", "list")] == ["orders"]


@pytest.mark.slow
def test_a_node_that_dies_is_shown_and_the_others_go_on(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        up.wait_all_ready()
        pids = up.pids()
        os.kill(pids[13], signal.SIGKILL)
        up.wait(lambda said: "ended with exit status -9" in said, "was the end of node 13 shown")
        assert len(up.ask("quorum", "status")["voters"]) == 3
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(TIMEOUT_S) == 1
        assert "ended before they were asked to: node 13 (exit status -9)" in up.said()
        assert not any(is_alive(pid) for pid in pids.values())


@pytest.mark.slow
def test_nodes_die_with_a_killed_up(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        up.wait_all_ready()
        pids = up.pids()
        up.process.kill()
        up.process.wait()
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids.values()), TIMEOUT_S)
