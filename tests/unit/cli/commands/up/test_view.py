"""What `up` shows of nodes that start, are ready and end."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag
from kquorum.cli.commands.up.view import ChangeLines, ClusterView, NodeState, NodeView, render
from kquorum.cli.processes import NodeProcess
from kquorum.node.config.load import load_config
from kquorum.node.config.model import ClusterConfig
from tests.support.config_files import EXAMPLE, write
from tests.support.terminals import without_colours


def cluster(folder: Path) -> ClusterConfig:
    return load_config(write(folder))


def console() -> Console:
    return Console(file=io.StringIO(), width=100)


def text_of(output: Console) -> str:
    assert isinstance(output.file, io.StringIO)
    return output.file.getvalue()


def quorum(epoch: int) -> QuorumStatus:
    lag = ReplicaLag(
        replica_id=1,
        directory_id=None,
        log_end_offset=1234,
        lag=0,
        last_fetch_timestamp_ms=None,
        last_caught_up_timestamp_ms=None,
    )
    return QuorumStatus(leader_id=1, leader_epoch=epoch, high_watermark=1200, voters=(lag,), observers=())


STARTING = NodeView(state=NodeState.STARTING, pid=7)
READY = NodeView(state=NodeState.READY, pid=7)
ENDED = NodeView(state=NodeState.ENDED, pid=7, exit_status=5, last_lines="error: the port is taken")


def test_the_table_names_leader_state_and_lag(tmp_path: Path) -> None:
    output = console()
    output.print(render(cluster(tmp_path), ClusterView({1: READY, 11: ENDED}, quorum(3))))
    shown = text_of(output)
    assert "leader 1, epoch 3, high watermark 1,200" in shown
    rows = {line.split()[0]: line for line in shown.splitlines() if line.split()[:1] in (["1"], ["11"])}
    assert "leader" in rows["1"]
    assert "1,234" in rows["1"]
    assert "ended (5)" in rows["11"]
    assert "node 11: error: the port is taken" in shown


def test_what_a_node_waits_for_is_shown_while_it_starts(tmp_path: Path) -> None:
    waits = "waiting until 04:35:39 (6 s) for the end of the session of this broker's previous process"
    waiting = NodeView(state=NodeState.STARTING, pid=7, waits=waits)
    output = console()
    output.print(render(cluster(tmp_path), ClusterView({1: READY, 11: waiting}, quorum(3))), width=200)
    assert f"node 11 is {waits}" in text_of(output)
    output = console()
    lines = ChangeLines(output, cluster(tmp_path))
    for view in (STARTING, waiting, waiting, READY):
        lines.show(ClusterView({11: view}, None))
    assert [line.partition("pid 7) is ")[2] for line in text_of(output).splitlines()] == [
        "starting",
        waits,
        "ready",
    ]


@pytest.mark.parametrize(
    ("printed", "waits"),
    [
        ("04:35:30 warning: waiting until 04:35:39 (9 s) for a session", "waiting until 04:35:39 (9 s) for a session"),
        ("04:35:30 warning: waiting for a leader for 5 s: no answer", "waiting for a leader for 5 s: no answer"),
        ("04:35:30 warning: waiting for a leader\n04:35:31 follows 2 in epoch 3: started", ""),
        ("04:35:30 warning: waiting for a leader\n04:35:31 kquorum node 11 ready: PLAINTEXT://h:1", ""),
        ("", ""),
    ],
    ids=["session", "leader", "over", "ready", "silent"],
)  # fmt: skip
def test_a_node_waits_if_that_is_the_last_that_it_said(tmp_path: Path, printed: str, waits: str) -> None:
    output = tmp_path / "out"
    output.write_text(f"{printed}\n")
    assert NodeProcess(tmp_path / "none", 11, output).waits == waits


def test_a_node_that_is_held_back_says_for_whom(tmp_path: Path) -> None:
    held_back = NodeView(state=NodeState.HELD_BACK, pid=None)
    output = console()
    ChangeLines(output, cluster(tmp_path)).show(ClusterView({11: held_back}, None))
    assert text_of(output) == "node 11 (broker, 127.0.0.1:9092) starts after the controllers\n"


@pytest.mark.parametrize("width", [80, 60])
def test_the_first_seconds_fit_a_terminal(
    tmp_path: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live table that is too wide loses the ends of its cells."""
    output = Console(file=io.StringIO(), width=width, force_terminal=True, no_color=True)
    monkeypatch.setattr("kquorum.cli.output.console", lambda: output)
    nodes = {
        1: NodeView(state=NodeState.STARTING, pid=1_234_567),
        11: NodeView(state=NodeState.HELD_BACK, pid=None),
    }
    for view in (ClusterView(nodes, None), ClusterView(nodes, quorum(3))):
        output.print(render(cluster(tmp_path), view))
    shown = without_colours(text_of(output))
    assert shown.count("127.0.0.1:9191") == shown.count("127.0.0.1:9092") == 2
    assert shown.count("starts after the") == 2
    assert shown.count("controllers") == 2
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width


def test_nodes_that_wait_for_the_same_share_a_line() -> None:
    """Also where they began to wait a moment apart, and count other seconds to the same end."""
    waits = "waiting until 05:50:42 (3 s) for the end of a session"
    nodes = {
        1: READY,
        11: NodeView(state=NodeState.STARTING, pid=7, waits=waits),
        12: NodeView(
            state=NodeState.STARTING, pid=8, waits="waiting until 05:50:42 (4 s) for the end of a session"
        ),
        13: NodeView(state=NodeState.STARTING, pid=9, waits="waiting for a leader"),
    }
    output = console()
    output.print(render(load_config(EXAMPLE), ClusterView(nodes, quorum(3))))
    lines = [line.rstrip() for line in text_of(output).splitlines()]
    assert f"nodes 11, 12 are {waits}" in lines
    assert "node 13 is waiting for a leader" in lines
    assert text_of(output).count("until") == 1


def test_no_leader_is_said_so(tmp_path: Path) -> None:
    output = console()
    output.print(render(cluster(tmp_path), ClusterView({1: STARTING, 11: STARTING}, None)))
    assert "no leader is known yet" in text_of(output)


def test_lines_tell_changes_once(tmp_path: Path) -> None:
    output = console()
    lines = ChangeLines(output, cluster(tmp_path))
    lines.show(ClusterView({1: STARTING}, None))
    lines.show(ClusterView({1: STARTING}, None))
    lines.show(ClusterView({1: READY}, quorum(3)))
    lines.show(ClusterView({1: READY}, quorum(3)))
    lines.show(ClusterView({1: READY}, quorum(4)))
    lines.show(ClusterView({1: ENDED}, None))
    assert [line.split(", pid")[0] for line in text_of(output).splitlines()] == [
        "node 1 (controller, 127.0.0.1:9191",
        "node 1 (controller, 127.0.0.1:9191",
        "quorum: node 1 leads epoch 3",
        "quorum: node 1 leads epoch 4",
        "node 1 (controller, 127.0.0.1:9191",
        "error: the port is taken",
    ]
