"""A broker that comes back with another folder gets its partitions back: it tells in which directory they are now."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.formatting import format_nodes
from kquorum.cli.commands.topics.topic_client import PartitionView, describe_topics
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import LOOPBACK
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of
from tests.support.cluster import CLUSTER_ID, Cluster

STAYING, REPLACED, SEVERAL = 101, 102, 103
WAIT_S = 40.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Broker 103 has two directories."""
    folder = tmp_path_factory.mktemp("directories")
    directories = {SEVERAL: {"log.dirs": f"{folder}/node-{SEVERAL},{folder}/more-{SEVERAL}"}}
    with Cluster(folder, controllers=1, brokers=3, node_overrides=directories) as running:
        running.start()
        yield running


def create(cluster: Cluster, name: str, *replica_lists: tuple[int, ...]) -> None:
    assignments = [
        {"partition_index": index, "broker_ids": replicas} for index, replicas in enumerate(replica_lists)
    ]
    topic = {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": assignments,
        "configs": (),
    }

    async def ask() -> None:
        async with ClusterClient([HostPort(LOOPBACK, cluster.ports[STAYING])], 10_000) as client:
            answer = await client.ask(
                message_of(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 10_000})
            )
            assert int(answer.topics[0].error_code) == 0, answer

    run_asking(ask())


def partitions(cluster: Cluster, name: str) -> tuple[PartitionView, ...]:
    async def ask() -> tuple[PartitionView, ...]:
        async with ClusterClient([HostPort(LOOPBACK, cluster.ports[STAYING])], 5_000) as client:
            (topic,) = await describe_topics(client, [name])
            return topic.partitions

    return run_asking(ask())


def leaders(cluster: Cluster, name: str) -> list[int]:
    return [each.leader for each in partitions(cluster, name)]


def is_whole(cluster: Cluster, name: str) -> bool:
    return all(
        each.leader >= 0 and not each.offline_replicas and set(each.isr) == set(each.replicas)
        for each in partitions(cluster, name)
    )


def replace(cluster: Cluster, broker_id: int, *folders: Path) -> None:
    """Killed, and started again with these folders newly formatted."""
    cluster.kill(broker_id)
    for folder in folders:
        shutil.rmtree(folder)
    node = load_config(cluster.config_path).node(broker_id)
    format_nodes([node], cluster_id=CLUSTER_ID, metadata_version=DEFAULT, ignore_formatted=True)
    cluster.start_node(broker_id)


@pytest.mark.slow
def test_a_broker_with_a_new_folder_leads_again_partitions_without_another_leader(cluster: Cluster) -> None:
    create(cluster, "alone", (REPLACED,), (REPLACED,))
    create(cluster, "shared", (REPLACED, STAYING), (STAYING, REPLACED))
    assert wait_until(lambda: leaders(cluster, "alone") == [REPLACED, REPLACED], WAIT_S)
    replace(cluster, REPLACED, cluster.data_folder(REPLACED))
    assert wait_until(lambda: is_whole(cluster, "alone"), WAIT_S), cluster.tails()
    assert leaders(cluster, "alone") == [REPLACED, REPLACED]
    assert wait_until(lambda: is_whole(cluster, "shared"), WAIT_S), cluster.tails()


@pytest.mark.slow
def test_a_broker_with_one_new_disk_among_several_leads_again_what_was_there(cluster: Cluster) -> None:
    create(cluster, "spread", *[(SEVERAL,)] * 6)
    assert wait_until(lambda: leaders(cluster, "spread") == [SEVERAL] * 6, WAIT_S)
    replace(cluster, SEVERAL, cluster.folder / f"more-{SEVERAL}")
    assert wait_until(lambda: is_whole(cluster, "spread"), WAIT_S), cluster.tails()
