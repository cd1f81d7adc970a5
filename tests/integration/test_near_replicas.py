"""A consumer of another client reads from the replica in its rack, and goes on when that replica is gone (KIP-392)."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kquorum.cli.clients.partition_client import PartitionClient
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

BROKERS = (101, 102)
TOPIC = "near"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    racks = {each: {"broker.rack": f"rack {each}"} for each in BROKERS}
    folder = tmp_path_factory.mktemp("near")
    with Cluster(folder, controllers=1, brokers=2, overrides=selector, node_overrides=racks) as running:
        running.start()
        yield running


class Reading:
    """A consumer in a rack; `values` are what it has read, `from_broker` is the broker that it asks."""

    def __init__(self, servers: str, rack: str) -> None:
        self.values: list[bytes] = []
        self.from_broker = -1
        self._is_over = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "client.rack": rack,
                "group.id": "none",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "statistics.interval.ms": 100,
                "stats_cb": self._note,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _note(self, text: str) -> None:
        topics: dict[str, Any] = json.loads(text)["topics"]
        if TOPIC in topics and "0" in topics[TOPIC]["partitions"]:
            self.from_broker = topics[TOPIC]["partitions"]["0"]["broker"]

    def _read(self) -> None:
        while not self._is_over:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.values.append(message.value())

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        self._consumer.close()


def produce(servers: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in range(first, first + count):
        producer.produce(TOPIC, b"%d" % number, partition=0)
    assert producer.flush(WAIT_S) == 0


def leader_of(cluster: Cluster) -> int:
    async def ask() -> int:
        addresses = [HostPort(LOOPBACK, cluster.ports[each]) for each in BROKERS]
        async with PartitionClient(addresses, round(WAIT_S * 1_000)) as client:
            return (await client.topic(TOPIC)).leaders[0]

    return asyncio.run(ask())


def test_a_consumer_reads_in_its_rack_and_elsewhere_when_that_is_gone(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    del tmp_path
    status = run(["topics", "create", TOPIC, "-p", "1", "-r", "2", "--config", str(cluster.config_path)])
    assert status == 0, capsys.readouterr()
    servers = ",".join(cluster.address(each) for each in BROKERS)
    produce(servers, 0, 100)
    leader = leader_of(cluster)
    [follower] = set(BROKERS) - {leader}
    near, far = Reading(servers, f"rack {follower}"), Reading(servers, "no rack of a broker")
    try:
        assert wait_until(lambda: len(near.values) == len(far.values) == 100, WAIT_S), cluster.tails()
        assert wait_until(lambda: near.from_broker == follower, WAIT_S), near.from_broker
        assert wait_until(lambda: far.from_broker == leader, WAIT_S), far.from_broker
        produce(servers, 100, 100)
        assert wait_until(lambda: len(near.values) == len(far.values) == 200, WAIT_S), cluster.tails()
        assert near.from_broker == follower
        cluster.kill(follower)
        produce(servers, 200, 100)
        assert wait_until(lambda: len(near.values) == len(far.values) == 300, WAIT_S), cluster.tails()
        assert near.values == far.values == [b"%d" % number for number in range(300)]
    finally:
        near.close()
        far.close()
