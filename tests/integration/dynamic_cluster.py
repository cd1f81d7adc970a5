"""A cluster of real processes whose voters change: formatted as a user would, changed by our own commands."""

import json
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.clients.quorum_client import ReplicaLag
from kquorum.cli.commands.topics.topic_client import NewTopic, create_topic
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.node.config.addresses import HostPort
from tests.support.cluster import Cluster, Overrides


class DynamicCluster(Cluster):
    """Nodes know each other by `controller.quorum.bootstrap.servers` alone: the controllers named in `bootstrap`."""

    def __init__(
        self,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        *,
        bootstrap: Iterable[int] = (1, 2, 3),
        brokers: int = 1,
        overrides: Overrides | None = None,
    ) -> None:
        super().__init__(folder, brokers=brokers, overrides=overrides, with_grpc=True)
        servers = ",".join(self.address(node_id) for node_id in bootstrap)
        self._overrides["controller.quorum.bootstrap.servers"] = servers
        self._capsys = capsys

    def kquorum(self, *arguments: str, status: int = 0) -> Any:
        """What a command prints as JSON; `status` is the exit status that it must have. All its words otherwise."""
        self._capsys.readouterr()
        found = run([*arguments, "--config", str(self.config_path), "--json"])
        printed = self._capsys.readouterr()
        assert found == status, (
            f"{arguments}: exit status {found}\n{printed.out}\n{printed.err}\n{self.tails()}"
        )
        return json.loads(printed.out) if status == 0 else printed.out + printed.err

    def format_as(self, *options: str, node_ids: Iterable[int]) -> None:
        nodes = [item for node_id in node_ids for item in ("--node", str(node_id))]
        self.kquorum("format", *nodes, *options)

    def start_standalone(self) -> None:
        """Node 1 is a quorum of its own; the others run and follow."""
        self.format_as("--standalone", node_ids=[1])
        self.format_as("--no-initial-controllers", node_ids=[n for n in self.node_ids if n != 1])
        self.start_nodes(self.node_ids)

    def voters(self) -> dict[int, ReplicaLag]:
        return {voter.replica_id: voter for voter in self.quorum().voters}

    def lose_disk(self, node_id: int) -> None:
        """The machine is back with an empty disk, formatted again."""
        self.kill(node_id)
        shutil.rmtree(self.data_folder(node_id))
        self.format_as("--no-initial-controllers", node_ids=[node_id])


class Load:
    """Topics made one after the other through a broker; `made` are those that were acknowledged."""

    def __init__(self, cluster: DynamicCluster, broker_id: int = 101) -> None:
        self.made: list[str] = []
        self.refused: list[str] = []
        self._address = HostPort("127.0.0.1", cluster.ports[broker_id])
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "a topic's creation was never answered"

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            name = f"load-{number}"
            try:
                run_asking(self._create(name))
            except CliError as error:
                self.refused.append(str(error))
            else:
                self.made.append(name)

    async def _create(self, name: str) -> None:
        async with ClusterClient([self._address], 20_000) as client:
            topic = NewTopic(name=name, partitions=1, replication_factor=1, configs={})
            await create_topic(client, topic, 20_000, if_not_exists=True)


@contextmanager
def load_on(cluster: DynamicCluster) -> Iterator[Load]:
    with Load(cluster) as load:
        yield load
