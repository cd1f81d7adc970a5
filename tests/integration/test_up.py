"""`kquorum up` with real processes: all come up, one that dies is shown, and nothing is left behind."""

import os
import signal
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.support.node.up_command import SMALL, TIMEOUT_S, running


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
