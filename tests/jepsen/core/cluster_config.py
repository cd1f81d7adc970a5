"""The quorum configs of the cluster under test: one file for each node, the same but for what faults change in it.

Controllers are named, and advertise themselves, by the addresses at which other nodes reach them
(`Network.advertised`).
"""

import json
from collections.abc import Mapping
from pathlib import Path

from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import free_ports
from tests.jepsen.core.members import Members
from tests.jepsen.net.network import Network

Overrides = Mapping[str, object]
GRPC_PORT = 9290

# Kafka's own times but for the sessions, so that a run of a minute sees brokers fenced.
DEFAULTS: dict[str, object] = {
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 1000,
    "broker.session.timeout.ms": 6000,
    # A run of a minute sees some segments and snapshots; no log begins behind one, for all are judged from their start.
    "metadata.log.segment.bytes": 65_536,
    "metadata.log.max.record.bytes.between.snapshots": 131_072,
    # A broker that cannot register while faults last tries on until they heal: each new leader gives the session of its
    # former process again, and in a run of many faults the next leader may come before that is over, for minutes.
    "initial.broker.registration.timeout.ms": 3_600_000,
    # The addresses are those of network namespaces, or loopback: no other machine reaches them.
    "kquorum.allow.unsecured.listeners": True,
}


class ConfigWriter:
    def __init__(
        self, folder: Path, members: Members, network: Network, cluster_id: str, overrides: Overrides
    ) -> None:
        """`folder` has a folder for each node; `overrides` are every node's."""
        self._folder = folder
        self._members = members
        self._network = network
        self._cluster_id = cluster_id
        self._overrides = DEFAULTS | dict(overrides)
        self.grpc_addresses = _grpc_addresses(members, network)

    def path(self, node_id: int) -> Path:
        return self._folder / str(node_id) / "quorum.toml"

    def write(self, node_id: int, overrides: Overrides | None = None) -> None:
        """Write the node's file, again if need be; `overrides` are this node's, and outdo all others."""
        path = self.path(node_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._text(overrides or {}))

    def _text(self, overrides: Overrides) -> str:
        lines = [
            "[cluster]",
            f'cluster.id = "{self._cluster_id}"',
            "",
            "[defaults]",
            f"log.dirs = {json.dumps(str(self._folder / '{node.id}' / 'data'))}",
            'controller.listener.names = "CONTROLLER"',
            self._quorum(),
            *(f"{key} = {json.dumps(value)}" for key, value in (self._overrides | dict(overrides)).items()),
        ]
        for role, listener, node_ids in (
            ("controller", "CONTROLLER", self._members.quorum),
            ("broker", "PLAINTEXT", self._members.brokers),
        ):
            for node_id in node_ids:
                lines += ["", "[[nodes]]", f"node.id = {node_id}", f'process.roles = "{role}"']
                lines.append(f'listeners = "{listener}://{text_of(self._network.address_of(node_id))}"')
                if role == "controller":
                    advertised = text_of(self._network.advertised(node_id))
                    lines.append(f'advertised.listeners = "{listener}://{advertised}"')
                lines.append(f'kquorum.grpc.listener = "{text_of(self.grpc_addresses[node_id])}"')
        return "\n".join(lines) + "\n"

    def _quorum(self) -> str:
        routes = {node_id: text_of(self._network.advertised(node_id)) for node_id in self._members.quorum}
        if self._members.spares:
            return f'controller.quorum.bootstrap.servers = "{",".join(routes.values())}"'
        voters = ",".join(f"{node_id}@{route}" for node_id, route in routes.items())
        return f'controller.quorum.voters = "{voters}"'


def _grpc_addresses(members: Members, network: Network) -> dict[int, HostPort]:
    """Beside the Kafka listener: another port of the node's own host, where it has one, a free one otherwise."""
    hosts = {node_id: network.address_of(node_id).host for node_id in members.all}
    if len(set(hosts.values())) == len(hosts):
        return {node_id: HostPort(host, GRPC_PORT) for node_id, host in hosts.items()}
    ports = free_ports(len(hosts))
    return {node_id: HostPort(hosts[node_id], port) for node_id, port in zip(hosts, ports, strict=True)}


def text_of(address: HostPort) -> str:
    return f"{address.host}:{address.port}"
