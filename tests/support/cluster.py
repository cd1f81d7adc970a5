"""A whole cluster of real processes for tests: configured, formatted, started, hurt, watched, and always cleaned up.

    with Cluster(folder) as cluster:       # three controllers (1, 2, 3) and two brokers (101, 102)
        cluster.start()
        cluster.kill(cluster.leader_id())
        wait_until(lambda: cluster.leader_id() != old, 10)

Nodes are processes of `kquorum start`, as a user starts them; each dies with this process.
"""

import asyncio
import json
import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.quorum_client import QuorumStatus, describe_quorum
from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.formatting import format_nodes
from kquorum.cli.failures import CliError
from kquorum.cli.processes import NodeFailed, NodeProcess, wait_until
from kquorum.network.security.client_security import ClientSecurity
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports
from kquorum.node.config.model import ClusterConfig
from kquorum.node.security import controller_client

PROJECT_ROOT = Path(__file__).resolve().parent.parent.parent
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
FIRST_BROKER_ID = 101
STARTUP_TIMEOUT_S = 60.0
ELECTION_TIMEOUT_S = 30.0

Overrides = Mapping[str, object]

# Short enough to see elections and fenced brokers in a test, long enough for a machine with much else to do.
FAST_TIMES: Overrides = {
    "controller.quorum.election.timeout.ms": 600,
    "controller.quorum.fetch.timeout.ms": 1_200,
    "controller.quorum.election.backoff.max.ms": 300,
    "broker.heartbeat.interval.ms": 300,
    "broker.session.timeout.ms": 2_500,
}
# Clusters of tests are quicker; this is what Kafka does unless told otherwise.
KAFKAS_TIMES = {
    "controller.quorum.election.timeout.ms": 1_000,
    "controller.quorum.fetch.timeout.ms": 2_000,
    "controller.quorum.election.backoff.max.ms": 1_000,
    "broker.heartbeat.interval.ms": 2_000,
    "broker.session.timeout.ms": 9_000,
}


class Cluster:
    """`overrides` go into every node's config, `node_overrides` into that of one (Kafka's keys). `environments` has
    what is added to the environment of a node's process."""

    def __init__(
        self,
        folder: Path,
        *,
        controllers: int = 3,
        brokers: int = 2,
        overrides: Overrides | None = None,
        node_overrides: Mapping[int, Overrides] | None = None,
        with_grpc: bool = False,
        broker_listener: str = "PLAINTEXT",
        environments: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.folder = folder
        self.controller_ids = tuple(range(1, controllers + 1))
        self.broker_ids = tuple(range(FIRST_BROKER_ID, FIRST_BROKER_ID + brokers))
        self.node_ids = self.controller_ids + self.broker_ids
        ports = iter(free_ports(len(self.node_ids) * 2))
        self.ports = {node_id: next(ports) for node_id in self.node_ids}
        self.grpc_ports = {node_id: next(ports) for node_id in self.node_ids} if with_grpc else {}
        self._overrides = dict(FAST_TIMES) | dict(overrides or {})
        self._node_overrides = node_overrides or {}
        self._broker_listener = broker_listener
        self._environments = environments or {}
        self.config_path = folder / "quorum.toml"
        self._processes = {node_id: self._process(node_id) for node_id in self.node_ids}

    def __enter__(self) -> Self:
        self.write_config()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.destroy()

    # Before the start

    def write_config(self) -> ClusterConfig:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config_path.write_text("\n".join(self._config_lines()) + "\n")
        return load_config(self.config_path)

    def format(self, node_ids: Iterable[int] | None = None) -> None:
        config = load_config(self.config_path)
        nodes = [config.node(node_id) for node_id in node_ids or self.node_ids]
        format_nodes(nodes, cluster_id=CLUSTER_ID, metadata_version=DEFAULT, ignore_formatted=False)

    def data_folder(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}"

    # Life and death

    def start(self) -> None:
        """Format, start every node and wait until all of them serve."""
        self.format()
        self.start_nodes(self.node_ids)

    def start_nodes(self, node_ids: Iterable[int], timeout_s: float = STARTUP_TIMEOUT_S) -> None:
        """Start these at once and wait until each is ready; raises NodeFailed with what a failing one said."""
        nodes = [self._processes[node_id] for node_id in node_ids]
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_ready(timeout_s)

    def launch(self, node_id: int) -> None:
        """Start a node without waiting for it."""
        self._processes[node_id].start()

    def start_node(self, node_id: int) -> None:
        self.start_nodes((node_id,))

    def start_and_wait_for_end(self, node_id: int, timeout_s: float = STARTUP_TIMEOUT_S) -> int:
        """Start a node which is expected to refuse; answers its exit status."""
        node = self._processes[node_id]
        node.start()
        if not wait_until(lambda: not node.is_running, timeout_s):
            raise NodeFailed(f"node {node_id} went on running:\n{node.tail()}")
        status = node.exit_status
        assert status is not None
        return status

    def kill(self, node_id: int) -> None:
        """SIGKILL: what was not flushed to the kernel is lost."""
        self._processes[node_id].kill()

    def kill_all(self) -> None:
        """SIGKILL to every node, and only then the wait until they are gone: none sees another one die."""
        self.kill_together(self.node_ids)

    def kill_together(self, node_ids: Iterable[int]) -> None:
        """SIGKILL to all of them, and only then the wait until they are gone."""
        node_ids = tuple(node_ids)
        for node_id in node_ids:
            self._signal(node_id, signal.SIGKILL)
        for node_id in node_ids:
            self.kill(node_id)

    def terminate_together(self, node_ids: Iterable[int], timeout_s: float = 60.0) -> None:
        """SIGTERM to all of them, and wait for their orderly ends."""
        for node_id in node_ids:
            self._processes[node_id].terminate()
        # Not a second SIGTERM: that ends a node at once, in the middle of its shutdown.
        for node_id in node_ids:
            self._wait_stopped(node_id, timeout_s)

    def terminate(self, node_id: int, timeout_s: float = 60.0) -> int:
        """SIGTERM, and wait for the orderly end; answers the exit status."""
        self._processes[node_id].terminate()
        return self._wait_stopped(node_id, timeout_s)

    def _wait_stopped(self, node_id: int, timeout_s: float) -> int:
        node = self._processes[node_id]
        if not node.wait_stopped(timeout_s):
            raise NodeFailed(
                f"node {node_id} did not stop within {timeout_s:.0f} s of SIGTERM:\n{node.tail()}"
            )
        status = node.exit_status
        assert status is not None
        return status

    def restart(self, node_id: int) -> None:
        """Kill and start again."""
        self.kill(node_id)
        self.start_node(node_id)

    def pause(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGCONT)

    def is_ready(self, node_id: int) -> bool:
        """Whether its present life has said so."""
        return self._processes[node_id].is_ready

    def is_running(self, node_id: int) -> bool:
        return self._processes[node_id].is_running

    def destroy(self) -> None:
        """Kill all that runs, paused or not; the folder stays, to be read."""
        for node in self._processes.values():
            node.kill()

    # Looking on

    def address(self, node_id: int) -> str:
        """`host:port` of a node's first listener."""
        return f"127.0.0.1:{self.ports[node_id]}"

    def output(self, node_id: int) -> str:
        """What the node's present life has printed."""
        return self._processes[node_id].output()

    def log_text(self, node_id: int) -> str:
        path = self.data_folder(node_id) / "kquorum.log"
        return path.read_text() if path.exists() else ""

    def quorum(self, timeout_ms: int = 5_000) -> QuorumStatus:
        """As the leader describes it, asked of the controllers that run; raises CliError when none leads in time."""
        running = [node_id for node_id in self.controller_ids if self.is_running(node_id)]
        assert running, "no controller runs"

        async def ask() -> QuorumStatus:
            addresses = [HostPort("127.0.0.1", self.ports[node_id]) for node_id in running]
            async with ClusterClient(addresses, timeout_ms, security_for=self._security_for) as client:
                return await describe_quorum(client)

        return asyncio.run(ask())

    def leader_id(self, timeout_s: float = ELECTION_TIMEOUT_S) -> int:
        """The active controller, awaited if there is none at the moment."""
        found: list[int] = []

        def is_known() -> bool:
            try:
                found.append(self.quorum().leader_id)
            except CliError:
                return False
            return found[-1] >= 0

        if not wait_until(is_known, timeout_s, interval_s=0.1):
            raise NodeFailed(f"no controller led within {timeout_s:.0f} s:\n{self.tails()}")
        return found[-1]

    def tails(self) -> str:
        return "\n".join(f"--- node {node_id}\n{node.tail()}" for node_id, node in self._processes.items())

    # The config

    def _security_for(self, _address: HostPort) -> ClientSecurity:
        """How controllers are asked: as they ask each other."""
        return controller_client(load_config(self.config_path).node(self.controller_ids[0]))

    def _config_lines(self) -> Iterable[str]:
        yield "[cluster]"
        yield f'"cluster.id" = "{CLUSTER_ID}"'
        yield "[defaults]"
        yield '"controller.listener.names" = "CONTROLLER"'
        yield from assignments(self._overrides)
        for node_id in self.node_ids:
            is_controller = node_id in self.controller_ids
            listener = "CONTROLLER" if is_controller else self._broker_listener
            values: dict[str, object] = {
                "node.id": node_id,
                "process.roles": "controller" if is_controller else "broker",
                "listeners": f"{listener}://127.0.0.1:{self.ports[node_id]}",
                "log.dirs": str(self.data_folder(node_id)),
            }
            if node_id in self.grpc_ports:
                values["kquorum.grpc.listener"] = f"127.0.0.1:{self.grpc_ports[node_id]}"
            yield "[[nodes]]"
            yield from assignments(values | dict(self._node_overrides.get(node_id, {})))

    def run_from(self, tree: Path, *node_ids: int) -> None:
        """From their next start on, these nodes run the program of the checkout in `tree`. They do not run now."""
        for node_id in node_ids:
            assert not self.is_running(node_id), f"node {node_id} runs"
            self._processes[node_id] = self._process(node_id, tree)

    def _process(self, node_id: int, tree: Path = PROJECT_ROOT) -> NodeProcess:
        environment = {**os.environ, "PYTHONPATH": str(tree), **self._environments.get(node_id, {})}
        return NodeProcess(
            self.config_path, node_id, self.folder / f"node-{node_id}.out", environment=environment
        )

    def _signal(self, node_id: int, number: signal.Signals) -> None:
        pid = self._processes[node_id].pid
        assert pid is not None, f"node {node_id} was never started"
        os.kill(pid, number)


def assignments(values: Mapping[str, Any]) -> Iterable[str]:
    """The lines of a config."""
    for key, value in values.items():
        # JSON's strings are TOML's; its booleans and numbers too.
        yield f'"{key}" = {json.dumps(value)}'


def await_output(cluster: Cluster, node_id: int, text: str, timeout_s: float) -> None:
    """Fails with the end of every node's output if the node does not write `text` in time."""
    assert wait_until(lambda: text in cluster.output(node_id), timeout_s), cluster.tails()
