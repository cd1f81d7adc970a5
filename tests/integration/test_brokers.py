"""Brokers as operators see them: how far each follows, waiting for all, coming back, and being cut off."""

import asyncio
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.commands.brokers.members_grpc import wait_applied
from kquorum.cli.commands.topics.topic_client import describe_topics
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK, free_ports
from kquorum.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.cluster import Cluster


class WatchedCluster(Cluster):
    """One controller and two brokers, each with gRPC and HTTP listeners."""

    def __init__(self, folder: Any) -> None:
        self.metrics_ports = dict(zip((1, 101, 102), free_ports(3), strict=True))
        super().__init__(
            folder,
            controllers=1,
            brokers=2,
            with_grpc=True,
            node_overrides={
                node_id: {
                    "kquorum.metrics.listener": f"{LOOPBACK}:{port}",
                    "log.dirs": f"{folder}/node-{node_id},{folder}/more-{node_id}",
                }
                for node_id, port in self.metrics_ports.items()
            },
        )

    def get(self, node_id: int, path: str) -> tuple[int, str]:
        url = f"http://{LOOPBACK}:{self.metrics_ports[node_id]}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def health(self, node_id: int) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.get(node_id, "/healthz")[1])
        return answer

    def topics(self, node_id: int) -> set[str]:
        async def ask() -> set[str]:
            async with ClusterClient([HostPort(LOOPBACK, self.ports[node_id])], 5_000) as client:
                return {topic.name for topic in await describe_topics(client, None)}

        return run_asking(ask())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedCluster]:
    with WatchedCluster(tmp_path_factory.mktemp("brokers")) as running:
        running.start()
        yield running


def kquorum(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    capsys.readouterr()
    found = run([*arguments, "--config", str(cluster.config_path), "--json"])
    printed = capsys.readouterr()
    assert found == status, f"{arguments}: {found}\n{printed.out}{printed.err}\n{cluster.tails()}"
    return json.loads(printed.out) if status == 0 else printed.out + printed.err


def rows(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> dict[int, Any]:
    return {row["broker_id"]: row for row in kquorum(cluster, capsys, "brokers")["brokers"]}


def test_each_broker_is_shown_with_how_far_it_follows(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    told = kquorum(cluster, capsys, "brokers", "--check", "--max-lag", "50")
    assert [row["broker_id"] for row in told["brokers"]] == [101, 102]
    for row in told["brokers"]:
        assert (row["state"], row["fenced"], row["says"]) == ("active", False, None)
        assert row["port"] == cluster.ports[row["broker_id"]]
        assert 0 <= row["applied_offset"] <= told["committed_offset"]
        assert row["lag"] == told["committed_offset"] - row["applied_offset"]
        assert row["epoch"] > 0
        assert len(row["directories"]) == 2
    status, page = cluster.get(101, "/metrics")
    assert status == 200
    assert "kafka_server_kafkaserver_brokerstate 3.0" in page
    assert 'kquorum_broker_applied_offset{broker="102"}' in cluster.get(1, "/metrics")[1]
    assert {cluster.health(node_id)["status"] for node_id in cluster.node_ids} == {"ready"}


def test_what_was_waited_for_is_at_every_broker(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    told = kquorum(cluster, capsys, "topics", "create", "everywhere", "--wait-all")
    assert (told["created"], told["applied_everywhere"], told["fenced_without"]) == (True, True, [])
    for broker_id in cluster.broker_ids:
        assert "everywhere" in cluster.topics(broker_id), "no broker had to be asked twice"


@pytest.mark.slow
def test_a_broker_that_hangs_is_named_and_then_left_out(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.pause(102)
    try:
        arguments = ("topics", "create", "not-there-yet", "--wait-all", "--timeout-ms", "1200", "-r", "1")
        said = kquorum(cluster, capsys, *arguments, status=6)
        assert "topic not-there-yet was created, but within 1200 ms offset" in said
        assert f"broker 102 (127.0.0.1:{cluster.ports[102]}) lacks" in said
        assert "broker 101 " not in said
        assert wait_until(lambda: rows(cluster, capsys)[102]["fenced"], 40), cluster.tails()
        assert "broker 102 is fenced" in kquorum(cluster, capsys, "brokers", "--check", status=1)
        told = kquorum(cluster, capsys, "topics", "create", "without-102", "--wait-all", "-r", "1")
        assert told["fenced_without"] == [102], "clients are not sent to it, so it is not waited for"
    finally:
        cluster.resume(102)
    assert wait_until(lambda: rows(cluster, capsys)[102]["state"] == "active", 40), cluster.tails()
    assert wait_until(lambda: "without-102" in cluster.topics(102), 40)


def test_only_the_active_controller_tells_and_an_offset_that_is_not_there_is_waited_for(
    cluster: WatchedCluster,
) -> None:
    broker_only = [HostPort(LOOPBACK, cluster.grpc_ports[101])]
    with pytest.raises(
        CliError, match="only the leader can serve how far the brokers follow, which is node 1"
    ):
        asyncio.run(wait_applied(broker_only, None, 300))
    leader = [HostPort(LOOPBACK, cluster.grpc_ports[1])]
    far = asyncio.run(wait_applied(leader, 10_000_000, 300))
    assert not far.is_applied
    assert [broker.broker_id for broker in far.lagging] == [101, 102]


def test_a_broker_that_was_unregistered_comes_back_by_itself(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(cluster, capsys)[101]["epoch"]

    async def unregister() -> Any:
        async with ClusterClient([HostPort(LOOPBACK, cluster.ports[102])], 10_000) as client:
            return await client.ask(UnregisterBrokerRequest(broker_id=101))

    assert int(run_asking(unregister()).error_code) == 0

    def is_back() -> bool:
        row = rows(cluster, capsys).get(101)
        return row is not None and row["epoch"] > before and row["state"] == "active"

    assert wait_until(is_back, 20), cluster.tails()
    assert "Registering again" in cluster.log_text(101)
    assert wait_until(lambda: cluster.health(101)["status"] == "ready", 40)


@pytest.mark.slow
def test_a_directory_that_fails_is_given_up(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(cluster.folder / "more-102")
    assert wait_until(lambda: len(rows(cluster, capsys)[102]["directories"]) == 1, 30), cluster.tails()
    assert rows(cluster, capsys)[102]["state"] == "active"
    assert "kafka_log_logmanager_offlinelogdirectorycount 1.0" in cluster.get(102, "/metrics")[1]


@pytest.mark.slow
def test_brokers_that_are_cut_off_say_so_and_serve_what_they_have(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    kquorum(cluster, capsys, "topics", "create", "known-before", "--wait-all", "-r", "1")
    cluster.kill(1)
    assert wait_until(lambda: cluster.health(101)["is_cut_off"], 20), cluster.tails()
    status, _ = cluster.get(101, "/healthz")
    assert status == 503
    assert cluster.get(101, "/livez")[0] == 200
    assert "known-before" in cluster.topics(101), "clients are served what there is"
    assert "kquorum_cut_off 1.0" in cluster.get(101, "/metrics")[1]
    told = kquorum(cluster, capsys, "brokers")
    assert told["committed_offset"] is None
    offset = cluster.health(101)["metadata"]["offset"]
    said = {row["broker_id"]: row["says"] for row in told["brokers"]}
    assert said[101].startswith("cut off for ")
    assert said[101].endswith(f"serves offset {offset}")
    here = f"{LOOPBACK}:{cluster.grpc_ports[101]}"
    capsys.readouterr()
    assert run(["topics", "list", "--consistency", "committed", "--grpc", here]) == 0
    assert "node 101 is cut off from the quorum: this is what it knew" in capsys.readouterr().err
    cluster.start_node(1)
    assert wait_until(lambda: cluster.health(101)["status"] == "ready", 30), cluster.tails()
    assert wait_until(lambda: cluster.log_text(101).count("commits are seen again after") == 1, 40)
    assert cluster.log_text(101).count("cut off from the quorum") == 1
    assert "Traceback" not in cluster.log_text(101)
