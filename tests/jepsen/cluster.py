"""The cluster under test: real processes, each with a config file of its own.

Every file names all nodes, but its `controller.quorum.voters` are the routes from that node: behind proxies, no two
nodes find a controller at the same place.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from cli.processes import NodeFailed, NodeGroup, NodeProcess, wait_until
from tests.jepsen.client import RawClient, TopicsClient
from tests.jepsen.errors import ClientError
from tests.jepsen.net.network import Network
from wire.uuids import uuid_to_text

PROJECT_ROOT = Path(__file__).resolve().parents[2]
NODES_FOLDER = "nodes"
EXITS_FILE = "exits.json"
_FIRST_BROKER = 11
_FORMAT_TIMEOUT_S = 60.0
_READY_TIMEOUT_S = 60.0
_ASK_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Members:
    controllers: tuple[int, ...]
    brokers: tuple[int, ...]

    @classmethod
    def of(cls, controllers: int, brokers: int) -> "Members":
        assert 0 < controllers < _FIRST_BROKER
        return cls(tuple(range(1, controllers + 1)), tuple(range(_FIRST_BROKER, _FIRST_BROKER + brokers)))

    @property
    def all(self) -> tuple[int, ...]:
        return self.controllers + self.brokers


class Cluster:
    """Entering formats and starts all nodes; leaving stops them, and writes how each one had ended before."""

    def __init__(self, folder: Path, members: Members, network: Network) -> None:
        self._folder = folder.absolute() / NODES_FOLDER
        self._members = members
        self._network = network
        # Children find the project's packages also where it is not installed.
        self._environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
        nodes = [self._process(node_id) for node_id in members.all]
        self._group = NodeGroup(nodes, stop_first=members.brokers)

    def __enter__(self) -> Self:
        self._write_configs()
        try:
            self._format()
            for node_id in self._members.all:
                with self._network.inside(node_id):
                    self._group[node_id].start()
            for node_id in self._members.all:
                self._group[node_id].wait_ready(_READY_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        exits = {str(node_id): node.exit_status for node_id, node in self._group.nodes.items()}
        try:
            (self._folder / EXITS_FILE).write_text(json.dumps(exits, indent=2) + "\n")
        finally:
            self._group.stop()

    def _process(self, node_id: int) -> NodeProcess:
        output = self._folder / str(node_id) / "output.log"
        return NodeProcess(self._config_path(node_id), node_id, output, environment=self._environment)

    def wait_until_brokers_serve(self) -> None:
        """Every broker sees all brokers. Call it in a thread that entered the network as a client."""
        for node_id in self._members.brokers:
            if not wait_until(partial(self._sees_all, node_id), _READY_TIMEOUT_S, 0.1):
                raise NodeFailed(f"broker {node_id} did not see all brokers within {_READY_TIMEOUT_S:.0f} s")

    def _sees_all(self, node_id: int) -> bool:
        address = self._network.address_of(node_id)
        client = TopicsClient(RawClient(address.host, address.port, _ASK_TIMEOUT_S), timeout_ms=0)
        try:
            return client.brokers() == set(self._members.brokers)
        except ClientError:
            return False
        finally:
            client.close()

    def _format(self) -> None:
        config = self._config_path(self._members.all[0])
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cli.main", "format", "--config", str(config)],
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
            env=self._environment,
            check=False,
        )
        if done.returncode != 0:
            raise NodeFailed(f"format ended with exit status {done.returncode}:\n{done.stdout}{done.stderr}")

    def _config_path(self, node_id: int) -> Path:
        return self._folder / str(node_id) / "quorum.toml"

    def _write_configs(self) -> None:
        cluster_id = uuid_to_text(uuid.uuid4())
        for node_id in self._members.all:
            path = self._config_path(node_id)
            path.parent.mkdir(parents=True)
            path.write_text(self._config(node_id, cluster_id))

    def _config(self, reader: int, cluster_id: str) -> str:
        """The quorum config as `reader` gets it."""
        voters = [
            f"{node_id}@{_text(self._network.route(reader, node_id))}"
            for node_id in self._members.controllers
        ]
        lines = [
            "[cluster]",
            f'cluster.id = "{cluster_id}"',
            "",
            "[defaults]",
            f"log.dirs = {json.dumps(str(self._folder / '{node.id}' / 'data'))}",
            'controller.listener.names = "CONTROLLER"',
            f'controller.quorum.voters = "{",".join(voters)}"',
            "controller.quorum.election.timeout.ms = 1000",
            "controller.quorum.fetch.timeout.ms = 2000",
            "broker.heartbeat.interval.ms = 1000",
            "broker.session.timeout.ms = 6000",
            # The addresses are those of network namespaces, which nobody else reaches.
            "kquorum.allow.unsecured.listeners = true",
        ]
        for role, name, node_ids in self._roles():
            for node_id in node_ids:
                lines += ["", "[[nodes]]", f"node.id = {node_id}", f'process.roles = "{role}"']
                lines.append(f'listeners = "{name}://{_text(self._network.address_of(node_id))}"')
        return "\n".join(lines) + "\n"

    def _roles(self) -> Sequence[tuple[str, str, tuple[int, ...]]]:
        return (
            ("controller", "CONTROLLER", self._members.controllers),
            ("broker", "PLAINTEXT", self._members.brokers),
        )


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
