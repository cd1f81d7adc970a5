"""Replicas move between the log directories of a broker that runs, over kill -9, and back (KIP-113)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.clients.partition_client import PartitionClient, Producer
from kquorum.cli.processes import wait_until
from kquorum.network.connection import KafkaConnection
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK
from kquorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kquorum.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kquorum.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kquorum.wire.record_parsing import Record
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

BROKER = 101
TOPIC = "moved"
WAIT_MS = 60_000
RECORDS = 60
VALUE_BYTES = 20_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folders = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    both = {BROKER: {"log.dirs": folders}}
    with Cluster(tmp_path, controllers=1, brokers=1, node_overrides=both) as running:
        running.start()
        yield running


class Admin:
    def __init__(self, cluster: Cluster, tmp_path: Path) -> None:
        self._cluster = cluster
        self.folders = {name: tmp_path / name for name in ("one", "two")}

    def ask(self, request: Any) -> Any:
        async def call() -> Any:
            port = self._cluster.ports[BROKER]
            connection = await KafkaConnection.connect(LOOPBACK, port, "admin", WAIT_MS)
            try:
                return await connection.call(request, WAIT_MS)
            finally:
                connection.close()

        return asyncio.run(call())

    def move(self, name: str) -> ErrorCode:
        topic = AlterReplicaLogDirTopic(name=TOPIC, partitions=(0,))
        directory = AlterReplicaLogDir(path=str(self.folders[name]), topics=(topic,))
        answer = self.ask(AlterReplicaLogDirsRequest(dirs=(directory,)))
        code: ErrorCode = answer.results[0].partitions[0].error_code
        return code

    def places(self) -> dict[str, tuple[bool, int]]:
        """Of the partition: by directory, whether it is a copy, and its lag."""
        answer = self.ask(DescribeLogDirsRequest(topics=None))
        return {
            Path(each.log_dir).name: (partition.is_future_key, partition.offset_lag)
            for each in answer.results
            for topic in each.topics
            if topic.name == TOPIC
            for partition in topic.partitions
        }

    def throttle(self, rate: int | None) -> None:
        config = AlterableConfig(
            name="replica.alter.log.dirs.io.max.bytes.per.second",
            config_operation=0 if rate else 1,
            value=str(rate) if rate else None,
        )
        resource = AlterConfigsResource(resource_type=4, resource_name=str(BROKER), configs=(config,))
        answer = self.ask(IncrementalAlterConfigsRequest(resources=(resource,)))
        assert answer.responses[0].error_code is ErrorCode.none, answer


def append(cluster: Cluster, first: int, count: int) -> None:
    async def work() -> None:
        async with PartitionClient([HostPort(LOOPBACK, cluster.ports[BROKER])], WAIT_MS) as client:
            place = await client.topic(TOPIC)
            producer = Producer(*await client.new_producer_id())
            for number in range(first, first + count):
                value = b"%d " % number + b"x" * VALUE_BYTES
                record = Record(0, 1_700_000_000_000, None, value)
                assert await client.produce(place, 0, [record], acks=-1, producer=producer) == number

    asyncio.run(work())


def numbers(cluster: Cluster) -> list[int]:
    async def work() -> list[int]:
        found: list[int] = []
        async with PartitionClient([HostPort(LOOPBACK, cluster.ports[BROKER])], WAIT_MS) as client:
            place = await client.topic(TOPIC)
            offset, end = 0, 1
            while offset < end:
                fetched = await client.fetch(place, 0, offset)
                found += [int((each.value or b"").split()[0]) for each in fetched.records]
                offset, end = fetched.next_offset, fetched.high_watermark
        return found

    return asyncio.run(work())


def test_a_replica_moves_while_it_serves_and_over_a_crash(cluster: Cluster, tmp_path: Path) -> None:
    admin = Admin(cluster, tmp_path)
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    admin.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=WAIT_MS))
    assert wait_until(lambda: len(admin.places()) == 1, WAIT_MS / 1_000)
    [first] = admin.places()
    [second] = set(admin.folders) - {first}
    append(cluster, 0, RECORDS)

    # Throttled, so that it can be looked at: a second's worth, then it waits.
    admin.throttle(100_000)
    assert admin.move(second) is ErrorCode.none
    assert wait_until(lambda: 0 < admin.places().get(second, (True, 0))[1] < RECORDS, WAIT_MS / 1_000)
    assert admin.places()[first] == (False, 0)
    assert admin.places()[second][0] is True
    append(cluster, RECORDS, 5)
    cluster.kill(BROKER)
    cluster.start_node(BROKER)
    assert admin.places()[second][0] is True, "the copy goes on after a crash"
    assert numbers(cluster) == list(range(RECORDS + 5))
    admin.throttle(None)
    assert wait_until(lambda: admin.places() == {second: (False, 0)}, WAIT_MS / 1_000), admin.places()
    assert numbers(cluster) == list(range(RECORDS + 5))
    append(cluster, RECORDS + 5, 5)

    # The controller knows of it: after another crash the replica is where it was.
    cluster.kill(BROKER)
    cluster.start_node(BROKER)
    assert admin.places() == {second: (False, 0)}
    assert numbers(cluster) == list(range(RECORDS + 10))

    # A move that is taken back.
    admin.throttle(100_000)
    assert admin.move(first) is ErrorCode.none
    assert wait_until(lambda: first in admin.places(), WAIT_MS / 1_000)
    assert admin.move(second) is ErrorCode.none
    assert admin.places() == {second: (False, 0)}
    assert numbers(cluster) == list(range(RECORDS + 10))
