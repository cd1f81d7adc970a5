"""A cluster of nodes of both roles, as real processes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.commands.topics.topic_client import NewTopic, TopicView, create_topic, describe_topics
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK, free_ports
from kquorum.wire.messages.metadata import MetadataRequest
from tests.support.cluster import Cluster, Overrides


class CombinedCluster(Cluster):
    """Nodes 1, 2, ... each a controller and a broker; `client_address` is where clients connect."""

    def __init__(self, folder: Path, *, nodes: int, overrides: Overrides | None = None) -> None:
        ports = free_ports(3 * nodes)
        ids = range(1, nodes + 1)
        self.client_ports = dict(zip(ids, ports[:nodes], strict=True))
        self.metrics_ports = dict(zip(ids, ports[nodes : 2 * nodes], strict=True))
        quorum_ports = dict(zip(ids, ports[2 * nodes :], strict=True))
        per_node: dict[int, Mapping[str, object]] = {
            node_id: {
                "process.roles": "broker,controller",
                "listeners": f"CONTROLLER://{LOOPBACK}:{quorum_ports[node_id]},"
                f"PLAINTEXT://{LOOPBACK}:{self.client_ports[node_id]}",
                "kquorum.metrics.listener": f"{LOOPBACK}:{self.metrics_ports[node_id]}",
            }
            for node_id in ids
        }
        super().__init__(
            folder,
            controllers=nodes,
            brokers=0,
            overrides=overrides,
            node_overrides=per_node,
            with_grpc=True,
        )
        self.ports = quorum_ports

    def client_address(self, node_id: int) -> HostPort:
        return HostPort(LOOPBACK, self.client_ports[node_id])

    def create(self, node_id: int, name: str, *, partitions: int, replicas: int) -> None:
        topic = NewTopic(name=name, partitions=partitions, replication_factor=replicas, configs={})

        async def ask() -> None:
            async with ClusterClient([self.client_address(node_id)], 20_000) as client:
                await create_topic(client, topic, 20_000, if_not_exists=True)

        run_asking(ask())

    def topics(self, node_id: int) -> tuple[TopicView, ...]:
        async def ask() -> tuple[TopicView, ...]:
            async with ClusterClient([self.client_address(node_id)], 10_000) as client:
                return await describe_topics(client, None)

        return run_asking(ask())

    def brokers(self, node_id: int) -> dict[int, Any]:
        """As a client sees them."""

        async def ask() -> Any:
            async with ClusterClient([self.client_address(node_id)], 10_000) as client:
                return await client.ask(MetadataRequest(allow_auto_topic_creation=False))

        return {int(broker.node_id): broker for broker in run_asking(ask()).brokers}
