"""Nodes on this machine, each of them run by Kafka or by us, as the test likes, in the same folder one after the other.

with Site(kafka, folder, Layout(controllers=(1,), brokers=(101,))) as site:
    site.format_with_kafka()
    site.start_kafka(1, 101)
    site.stop(1, 101)
    site.start_ours(1, 101)
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.clients.quorum_client import QuorumStatus, describe_quorum
from kquorum.cli.commands.topics.topic_client import (
    NewTopic,
    TopicView,
    create_topic,
    delete_topic,
    describe_topics,
)
from kquorum.cli.failures import CliError
from kquorum.cli.main import run as run_kquorum
from kquorum.cli.processes import NodeProcess, wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import free_ports
from tests.interop.kafka_process import PROJECT_ROOT, Kafka, KafkaServer
from tests.interop.node_config import LOOPBACK, NodeConfig, bootstrap_servers, static_voters
from tests.support.cluster import CLUSTER_ID

WAIT_S = 45.0
CLIENTS = 8
# Of our nodes, and of a JVM that was told to end.
ORDERLY = (0, 143)
STORAGE_TOOL = "kafka.tools.StorageTool"
QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """In a dynamic quorum the first controller begins alone. `release` is what folders are formatted for; without it
    each program takes its own default. `settings` are further keys of single nodes, `ours` those of all nodes while our
    program runs them, `kafkas` while Kafka does."""

    controllers: tuple[int, ...] = (1,)
    brokers: tuple[int, ...] = (101,)
    is_dynamic: bool = False
    cluster_id: str = CLUSTER_ID
    release: str | None = None
    settings: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    ours: Mapping[str, object] = field(default_factory=dict)
    kafkas: Mapping[str, object] = field(default_factory=dict)


class Site:
    """Leaving kills whatever still runs."""

    def __init__(self, kafka: Kafka, folder: Path, layout: Layout) -> None:
        self._kafka = kafka
        self.layout = layout
        ids = layout.controllers + layout.brokers
        self.ports = dict(zip(ids, free_ports(len(ids)), strict=True))
        controller_ports = {node_id: self.ports[node_id] for node_id in layout.controllers}
        self.quorum_keys = (
            bootstrap_servers(*controller_ports.values())
            if layout.is_dynamic
            else static_voters(controller_ports)
        )
        self.nodes = {node_id: self._config(folder, node_id) for node_id in ids}
        self._running: dict[int, NodeProcess | KafkaServer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._running.values():
            process.kill()

    # Formatting

    def format_with_kafka(self, node_ids: Iterable[int] | None = None) -> None:
        for node_id in node_ids or self.nodes:
            arguments = (
                "--cluster-id",
                self.layout.cluster_id,
                "--config",
                str(self.nodes[node_id].kafka_path),
            )
            self._kafka.run(STORAGE_TOOL, "format", *arguments, *self._beginning(node_id))

    def format_with_ours(self, node_ids: Iterable[int] | None = None) -> None:
        for node_id in node_ids or self.nodes:
            arguments = [
                "format",
                "--cluster-id",
                self.layout.cluster_id,
                "--config",
                str(self.nodes[node_id].path),
            ]
            assert run_kquorum([*arguments, *self._beginning(node_id)]) == 0

    def _beginning(self, node_id: int) -> Sequence[str]:
        release = () if self.layout.release is None else ("--release-version", self.layout.release)
        if not self.layout.is_dynamic:
            return release
        is_first = node_id == self.layout.controllers[0]
        return (*release, "--standalone" if is_first else "--no-initial-controllers")

    # Life and death

    def start_kafka(self, *node_ids: int) -> list[KafkaServer]:
        """Start these at once, and wait until each serves."""
        servers = [self._kafka.server(self.nodes[node_id].kafka_path) for node_id in node_ids]
        for node_id, server in zip(node_ids, servers, strict=True):
            self._running[node_id] = server.start()
        for server in servers:
            server.wait_started()
        return servers

    def start_ours(
        self, *node_ids: int, tree: Path = PROJECT_ROOT, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start these at once, and wait until each serves: the program of the checkout in `tree`, with `environment` in
        addition to this process's own."""
        environment = {**os.environ, "PYTHONPATH": str(tree), **(environment or {})}
        processes = []
        for node_id in node_ids:
            path = self.nodes[node_id].path
            process = NodeProcess(path, node_id, path.with_suffix(".ours.out"), environment=environment)
            self._running[node_id] = process
            process.start()
            processes.append(process)
        for process in processes:
            process.wait_ready(WAIT_S)

    def stop(self, *node_ids: int) -> None:
        """One after the other, in order; AssertionError if one has to be killed, or had ended before."""
        for node_id in node_ids:
            process = self._running.pop(node_id)
            process.terminate()
            assert process.wait_stopped(WAIT_S), f"node {node_id} did not stop:\n{process.tail()}"
            assert process.exit_status in ORDERLY, f"node {node_id}, {process.exit_status}:\n{process.tail()}"

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self._running.pop(node_id).kill()

    def pids(self, *node_ids: int) -> list[int]:
        """Of nodes that were started."""
        found = [self._running[node_id].pid for node_id in node_ids]
        return [pid for pid in found if pid is not None]

    def output(self, node_id: int) -> str:
        """What a running node has said since it started."""
        return self._running[node_id].output()

    def tails(self) -> str:
        return "\n".join(
            f"--- node {node_id}\n{process.tail(25)}" for node_id, process in self._running.items()
        )

    # Asking

    def quorum(self) -> QuorumStatus:
        """As the leader tells it; CliError while there is none."""
        running = [node_id for node_id in self.layout.controllers if node_id in self._running]
        addresses = [HostPort(LOOPBACK, self.ports[node_id]) for node_id in running]

        async def ask() -> QuorumStatus:
            async with ClusterClient(addresses, 3_000) as client:
                return await describe_quorum(client)

        return asyncio.run(ask())

    def await_quorum(self, condition: Callable[[QuorumStatus], bool]) -> QuorumStatus:
        """The first state of the quorum for which `condition` holds; AssertionError if there is none in time."""
        seen: list[QuorumStatus | str] = []

        def holds() -> bool:
            try:
                status = self.quorum()
            except CliError as error:
                seen.append(str(error))
                return False
            seen.append(status)
            return condition(status)

        assert wait_until(holds, WAIT_S, 0.1), f"{seen[-1]}\n{self.tails()}"
        last = seen[-1]
        assert isinstance(last, QuorumStatus)
        return last

    def add_voter(self, node_id: int) -> None:
        """By Kafka's tool, asked of whichever node leads; a node may be added once it has caught up."""

        def is_observed(status: QuorumStatus) -> bool:
            return any(observer.replica_id == node_id for observer in status.observers)

        leader_id = self.await_quorum(is_observed).leader_id
        where = ("--bootstrap-controller", self.nodes[leader_id].address)
        config = ("--command-config", str(self.nodes[node_id].kafka_path))
        self._kafka.run(QUORUM_TOOL, *where, *config, "add-controller")

    def create_topics(self, names: Iterable[str], broker_id: int, partitions: int = 1) -> None:
        """Several at a time."""

        async def create(client: ClusterClient, name: str) -> None:
            topic = NewTopic(name=name, partitions=partitions, replication_factor=1, configs={})
            await create_topic(client, topic, 30_000, if_not_exists=True)

        self._for_each(names, broker_id, create)

    def delete_topics(self, names: Iterable[str], broker_id: int) -> None:
        """Several at a time."""
        self._for_each(names, broker_id, lambda client, name: delete_topic(client, name, 30_000))

    def _for_each(
        self, names: Iterable[str], broker_id: int, act: Callable[[ClusterClient, str], Awaitable[None]]
    ) -> None:
        """So many requests wait at once that the controller writes several into one batch."""
        address = HostPort(LOOPBACK, self.ports[broker_id])
        waiting = iter(names)

        async def work() -> None:
            async with ClusterClient([address], 30_000) as client:
                for name in waiting:
                    await act(client, name)

        async def ask() -> None:
            await asyncio.gather(*(work() for _ in range(CLIENTS)))

        run_asking(ask())

    def create_topic(
        self,
        name: str,
        broker_id: int,
        partitions: int = 2,
        *,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        async def ask() -> None:
            async with ClusterClient([HostPort(LOOPBACK, self.ports[broker_id])], 30_000) as client:
                topic = NewTopic(
                    name=name, partitions=partitions, replication_factor=replicas, configs=configs or {}
                )
                await create_topic(client, topic, 30_000, if_not_exists=True)

        run_asking(ask())

    def topics(self, broker_id: int) -> set[str]:
        async def ask() -> set[str]:
            async with ClusterClient([HostPort(LOOPBACK, self.ports[broker_id])], 10_000) as client:
                return {topic.name for topic in await describe_topics(client, None)}

        return run_asking(ask())

    def topic(self, broker_id: int, name: str) -> TopicView:
        async def ask() -> TopicView:
            async with ClusterClient([HostPort(LOOPBACK, self.ports[broker_id])], 10_000) as client:
                return (await describe_topics(client, [name]))[0]

        return run_asking(ask())

    def _config(self, folder: Path, node_id: int) -> NodeConfig:
        role = "controller" if node_id in self.layout.controllers else "broker"
        return NodeConfig(
            folder,
            node_id,
            self.ports[node_id],
            role=role,
            quorum=self.quorum_keys,
            settings=self.layout.settings.get(node_id),
            ours=self.layout.ours,
            kafkas=self.layout.kafkas,
        )
