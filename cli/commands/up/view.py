"""What `kquorum up` shows: a live table on a terminal, a line for each change elsewhere."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from kquorum.cli.output import make_table
from kquorum.node.config.model import ClusterConfig, NodeConfig

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag


class NodeState(Enum):
    """How a child process does, and the colour that says so."""

    HELD_BACK = "starts after the controllers"
    STARTING = "starting"
    READY = "ready"
    ENDED = "ended"
    OUTSIDE = "restarted by hand"

    @property
    def style(self) -> str:
        return _STYLES[self]


_STYLES = {
    NodeState.HELD_BACK: "yellow",
    NodeState.STARTING: "yellow",
    NodeState.READY: "green",
    NodeState.ENDED: "bold red",
    NodeState.OUTSIDE: "green",
}
_SECONDS = re.compile(r" \(\d+ s\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node at one moment; `last_lines` is what it printed before it ended, and `waits` says for what it waits."""

    state: NodeState
    pid: int | None
    exit_status: int | None = None
    last_lines: str = ""
    waits: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The whole at one moment; no quorum while no controller can tell."""

    nodes: Mapping[int, NodeView]
    quorum: "QuorumStatus | None"


class Display(Protocol):
    """Where the views go, one after another."""

    def show(self, view: ClusterView) -> None: ...

    def close(self) -> None: ...


class LiveTable:
    """For a terminal: one table, redrawn in place."""

    def __init__(self, console: Console, config: ClusterConfig) -> None:
        self._config = config
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def show(self, view: ClusterView) -> None:
        self._live.update(render(self._config, view), refresh=True)

    def close(self) -> None:
        self._live.stop()


class ChangeLines:
    """For a file or a pipe: what changed, a line each."""

    def __init__(self, console: Console, config: ClusterConfig) -> None:
        self._console = console
        self._config = config
        self._nodes: dict[int, NodeView] = {}
        self._leader: tuple[int, int] | None = None

    def show(self, view: ClusterView) -> None:
        for node_id, node in view.nodes.items():
            if self._nodes.get(node_id) != node:
                self._say(_node_line(self._config.node(node_id), node))
            self._nodes[node_id] = node
        leader = None if view.quorum is None else (view.quorum.leader_id, view.quorum.leader_epoch)
        if leader not in (None, self._leader):
            assert leader is not None
            self._say(f"quorum: node {leader[0]} leads epoch {leader[1]}")
            self._leader = leader

    def close(self) -> None:
        """Nothing is held."""

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def render(config: ClusterConfig, view: ClusterView) -> "RenderableType":
    """The table of nodes, and beneath it what they wait for and the last words of those that ended."""
    replicas = (
        {}
        if view.quorum is None
        else {replica.replica_id: replica for replica in (*view.quorum.voters, *view.quorum.observers)}
    )
    rows = [
        _row(config.node(node_id), node, replicas.get(node_id), view) for node_id, node in view.nodes.items()
    ]
    columns = ("#node", "role", "address", "#pid", "state", "#log end", "#lag")
    table = make_table(
        _title(view),
        columns if view.quorum is not None else columns[:-2],
        rows,
        spare=("#lag", "#pid", "#log end"),
        folding="state",
    )
    words = [
        Text(f"node {node_id}: {node.last_lines}", style="red")
        for node_id, node in view.nodes.items()
        if node.last_lines
    ]
    waits = [Text(line, style="yellow") for line in _waits(view)]
    return Group(
        table, *waits, *words, Text(f"{time.strftime('%H:%M:%S')}  Ctrl-C stops all nodes", style="dim")
    )


def _waits(view: ClusterView) -> list[str]:
    """Nodes that wait for the same share a line, as all brokers do after a power cut; its seconds are of the first
    node."""
    waiting: dict[str, list[int]] = {}
    for node_id, node in view.nodes.items():
        if node.waits:
            waiting.setdefault(_SECONDS.sub("", node.waits), []).append(node_id)
    return [
        f"{'nodes' if len(ids) > 1 else 'node'} {', '.join(map(str, ids))} {'are' if len(ids) > 1 else 'is'} "
        f"{view.nodes[ids[0]].waits}"
        for ids in waiting.values()
    ]


def _title(view: ClusterView) -> str:
    if view.quorum is None:
        return "no leader is known yet"
    quorum = view.quorum
    return f"leader {quorum.leader_id}, epoch {quorum.leader_epoch}, high watermark {quorum.high_watermark:,}"


def _row(
    config: NodeConfig, node: NodeView, replica: "ReplicaLag | None", view: ClusterView
) -> tuple[object, ...]:
    is_leader = view.quorum is not None and view.quorum.leader_id == config.node_id
    return (
        config.node_id,
        "leader" if is_leader else ",".join(config.process_roles),
        _address(config),
        str(node.pid or ""),
        Text(_state(node), style=node.state.style),
        None if replica is None else replica.log_end_offset,
        None if replica is None else replica.lag,
    )


def _state(node: NodeView) -> str:
    return node.state.value if node.state is not NodeState.ENDED else f"ended ({node.exit_status})"


def _address(config: NodeConfig) -> str:
    return ", ".join(str(listener).partition("://")[2] for listener in config.listeners)


def _node_line(config: NodeConfig, node: NodeView) -> str:
    what = f"node {config.node_id} ({','.join(config.process_roles)}, {_address(config)}, pid {node.pid})"
    if node.state is NodeState.ENDED:
        return f"{what} ended with exit status {node.exit_status}; its last lines:\n{node.last_lines}"
    if node.state is NodeState.HELD_BACK:
        return f"{what.replace(', pid None', '')} {node.state.value}"
    if node.state is NodeState.OUTSIDE:
        return f"node {config.node_id} was started again, not by this command: it goes on when this one ends"
    return f"{what} is {node.waits or node.state.value}"
