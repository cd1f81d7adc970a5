"""The work of `kquorum up`: format what is not formatted, start all, watch, and stop all."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.clients.quorum_client import QuorumStatus, describe_quorum
from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.beginning import Beginning, begin_with_all
from kquorum.cli.commands.format.formatting import (
    FormattedFolder,
    choose_cluster_id,
    format_nodes,
    is_formatted,
)
from kquorum.cli.commands.up.view import ChangeLines, ClusterView, Display, LiveTable, NodeState, NodeView
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, console
from kquorum.cli.processes import NodeGroup, NodeProcess, wait_until
from kquorum.node.config.addresses import HostPort, format_address, reachable
from kquorum.node.config.model import ClusterConfig, NodeConfig
from kquorum.node.formatting import data_folders, new_uuid
from kquorum.node.free_addresses import refused_addresses
from kquorum.storage.errors import NotFormatted
from kquorum.storage.meta_properties import read_meta_properties

OUTPUT_FILE = "kquorum-output.txt"  # what a node prints, beside its kquorum.log
LOOK_INTERVAL_S = 0.5
_FIRST_LOOKS_S = 0.1
_QUORUM_TIMEOUT_MS = 800
_LAST_LINES = 8
_CONNECT_TIMEOUT_S = 0.2


class StopRequest:
    """Whether Ctrl-C or SIGTERM came; a second Ctrl-C interrupts whatever is going on."""

    def __init__(self) -> None:
        self.came = False

    def note(self, number: int, _frame: FrameType | None) -> None:
        if self.came and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.came = True


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """SIGINT and SIGTERM are noted within the block instead of ending the process."""
    request = StopRequest()
    before = {number: signal.signal(number, request.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def format_missing(cluster: ClusterConfig) -> tuple[FormattedFolder, ...]:
    """Format the folders that are not; the cluster id is the config's, or that of a folder which has one, or new.

    A dynamic quorum without a formatted controller starts with all controllers of the config as voters. In a quorum
    that has started, new controllers are no voters until `kquorum quorum add-voter` or auto-join adds them.
    """
    known_id = cluster.cluster_id or _cluster_id_on_disk(cluster)
    is_alone = cluster.path.suffix != ".properties" or len(cluster.nodes[0].controller_addresses) == 1
    cluster_id = choose_cluster_id(None, known_id, is_whole=is_alone, path=cluster.path)
    is_static = any(node.controller_quorum_voters for node in cluster.controllers)
    is_new = not any(is_formatted(node) for node in cluster.controllers)
    outcomes = format_nodes(
        cluster.nodes,
        cluster_id=cluster_id,
        metadata_version=DEFAULT,
        ignore_formatted=True,
        beginning=begin_with_all(cluster.controllers, new_uuid) if is_new and not is_static else Beginning(),
    )
    return tuple(outcome for outcome in outcomes if outcome.is_new)


def check_addresses(cluster: ClusterConfig, *, offers_free_ports: bool) -> None:
    """Raises CliError, naming every address of the config that cannot be had."""
    refused = [(node.node_id, error) for node in cluster.nodes for error in refused_addresses(node)]
    if not refused:
        return
    by_reason: dict[str, list[str]] = {}
    for node_id, error in refused:
        place = f"{format_address(error.host, error.port)} (node {node_id})"
        by_reason.setdefault(error.reason, []).append(place)
    places = "; ".join(f"{reason}: {', '.join(found)}" for reason, found in by_reason.items())
    remedy = "stop what listens there, or change the listeners in the config"
    if offers_free_ports:
        remedy += ", or add --free-ports, which runs a copy of the config on free ports"
    raise CliError(
        f"nothing was formatted or started, for the nodes cannot listen. {places}. To go on, {remedy}",
        status=ExitStatus.CANNOT_LISTEN,
    )


def run_cluster(cluster: ClusterConfig, *, data_dir: Path | None) -> None:
    """Run all nodes until a stop is asked for. Raises CliError when a node ended by itself."""
    processes = [
        NodeProcess(cluster.path, node.node_id, node.metadata_log_dir / OUTPUT_FILE, data_dir=data_dir)
        # Controllers first: brokers wait for one. A node with both roles is in both lists and must start once.
        for node in (*cluster.controllers, *(node for node in cluster.brokers if not node.is_controller))
    ]
    group = NodeGroup(processes, stop_first=[node.node_id for node in cluster.brokers])
    out = console()
    display: Display = LiveTable(out, cluster) if out.is_terminal else ChangeLines(out, cluster)
    with stop_signals() as stop:
        try:
            with group:
                _watch(cluster, group, display, stop)
                display.close()
                if stop.came:
                    complain("stopping brokers, then controllers", style="cyan", label="up")
                failed = _failed(group)
        # Again, for a `_watch` that failed: a live table would overwrite the message. Closing twice does nothing.
        finally:
            display.close()
    if failed:
        raise CliError(_obituary(failed), status=ExitStatus.FAILED)


def _watch(cluster: ClusterConfig, group: NodeGroup, display: Display, stop: StopRequest) -> None:
    """Start all nodes and show them until a stop is asked for or none is left."""
    held_back = (
        []
        if _has_processor_for_each(group)
        else [node.node_id for node in cluster.brokers if not node.is_controller]
    )
    for node_id, process in group.nodes.items():
        if node_id not in held_back:
            process.start()
    addresses = tuple(reachable(*address) for address in cluster.controller_addresses)
    while not stop.came:
        # `up` may run for months, and nodes append to their output files.
        for process in group.nodes.values():
            process.limit_output()
        view = look(group, addresses, cluster)
        if held_back and _controllers_are_up(cluster, view):
            for node_id in held_back:
                group[node_id].start()
            # The view is from before their start: it is looked again before anything is shown.
            held_back = []
            continue
        display.show(view)
        if not any(process.is_running for process in group.nodes.values()):
            return
        wait_until(lambda: stop.came, _FIRST_LOOKS_S if held_back else LOOK_INTERVAL_S, interval_s=0.1)


def _has_processor_for_each(group: NodeGroup) -> bool:
    """A start costs a node about a second of a processor. Brokers can do nothing before a controller leads, so where
    processors are few, they are not to take theirs from the controllers."""
    return (os.cpu_count() or 1) >= len(group.nodes)


def _controllers_are_up(cluster: ClusterConfig, view: ClusterView) -> bool:
    """Whether a majority of them is ready, or none is to be waited for."""
    states = [view.nodes[node.node_id].state for node in cluster.controllers]
    return states.count(NodeState.READY) > len(states) // 2 or NodeState.STARTING not in states


def look(group: NodeGroup, controllers: tuple[HostPort, ...], cluster: ClusterConfig) -> ClusterView:
    """The state of every process, and of the quorum if a controller is ready."""
    nodes = {node_id: _node_view(process, cluster.node(node_id)) for node_id, process in group.nodes.items()}
    # Otherwise each look would wait for the whole timeout of the request while the nodes start.
    is_worth_asking = any(node.state in (NodeState.READY, NodeState.OUTSIDE) for node in nodes.values())
    return ClusterView(nodes, run_asking(_maybe_quorum(controllers)) if is_worth_asking else None)


def _node_view(process: NodeProcess, config: NodeConfig) -> NodeView:
    if process.pid is None:
        return NodeView(state=NodeState.HELD_BACK, pid=None)
    if not process.is_running:
        # A user may restart a node by hand in another terminal; `up` then shows it as running outside of its control.
        if process.exit_status is not None and _is_listening(config):
            return NodeView(state=NodeState.OUTSIDE, pid=None)
        return NodeView(
            state=NodeState.ENDED,
            pid=process.pid,
            exit_status=process.exit_status,
            last_lines=process.tail(_LAST_LINES),
        )
    state = NodeState.READY if process.is_ready else NodeState.STARTING
    return NodeView(state=state, pid=process.pid, waits=process.waits)


def _is_listening(config: NodeConfig) -> bool:
    """Whether another process serves in place of one that ended: the node was started again by hand."""
    try:
        with socket.create_connection(
            reachable(config.listeners[0].host, config.listeners[0].port), _CONNECT_TIMEOUT_S
        ):
            return True
    except OSError:
        return False


async def _maybe_quorum(controllers: tuple[HostPort, ...]) -> QuorumStatus | None:
    try:
        async with ClusterClient(controllers, _QUORUM_TIMEOUT_MS) as client:
            return await describe_quorum(client)
    except CliError:
        return None


def _failed(group: NodeGroup) -> dict[int, int]:
    """Exit status by node id, of the nodes that ended by themselves."""
    return {
        node_id: process.exit_status
        for node_id, process in group.nodes.items()
        if process.exit_status is not None
    }


def _obituary(failed: dict[int, int]) -> str:
    listed = ", ".join(f"node {node_id} (exit status {status})" for node_id, status in failed.items())
    return f"ended before they were asked to: {listed}"


def _cluster_id_on_disk(cluster: ClusterConfig) -> str | None:
    for node in cluster.nodes:
        for folder in data_folders(node):
            try:
                return read_meta_properties(folder).cluster_id
            except NotFormatted:
                continue
    return None
