"""Client quotas on a broker that runs: set by request, in force at once, told, muted, shown in the metrics."""

import asyncio
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kquorum.cli.clients.partition_client import PartitionClient
from kquorum.network.connection import KafkaConnection
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK, free_ports
from kquorum.wire.data_batch import write_data_batch
from kquorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kquorum.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kquorum.wire.messages.list_groups import ListGroupsRequest
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.record_parsing import Record
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

BROKER = 101
TOPIC = "limited"
WAIT_MS = 40_000
# One full window of a second counts.
OVERRIDES = {"quota.window.num": 2, "quota.window.size.seconds": 1, "auto.create.topics.enable": False}


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[Cluster]:
    metrics = {BROKER: {"kquorum.metrics.listener": f"{LOOPBACK}:{metrics_port}"}}
    folder = tmp_path_factory.mktemp("quotas")
    with Cluster(folder, controllers=1, brokers=1, overrides=OVERRIDES, node_overrides=metrics) as running:
        running.start()
        yield running


@asynccontextmanager
async def clients(cluster: Cluster, *client_ids: str) -> AsyncIterator[list[KafkaConnection]]:
    made: list[KafkaConnection] = []
    try:
        for each in client_ids:
            made.append(await KafkaConnection.connect(LOOPBACK, cluster.ports[BROKER], each, WAIT_MS))
        yield made
    finally:
        for connection in made:
            connection.close()


async def set_quota(connection: KafkaConnection, key: str, value: float | None, **entity: str) -> None:
    kinds = {"client": "client-id", "ip": "ip"}
    entry = RequestEntryData(
        entity=tuple(
            RequestEntityData(entity_type=kinds[kind], entity_name=name) for kind, name in entity.items()
        ),
        ops=(OpData(key=key, value=value or 0.0, remove=value is None),),
    )
    answer = await connection.call(AlterClientQuotasRequest(entries=(entry,)), WAIT_MS)
    assert [each.error_code for each in answer.entries] == [ErrorCode.none], answer


async def topic_of(cluster: Cluster, connection: KafkaConnection) -> Any:
    request = CreateTopicsRequest(
        topics=(CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1),), timeout_ms=WAIT_MS
    )
    await connection.call(request, WAIT_MS)
    async with PartitionClient([HostPort(LOOPBACK, cluster.ports[BROKER])], WAIT_MS) as client:
        return await client.topic(TOPIC)


def produce(topic: Any, size: int) -> ProduceRequest:
    batch = write_data_batch([Record(0, time.time_ns() // 1_000_000, None, b"v" * size)])
    partition = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        acks=1,
        timeout_ms=WAIT_MS,
        topic_data=(TopicProduceData(name=TOPIC, topic_id=topic.id, partition_data=(partition,)),),
    )


def fetch(topic: Any) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=(FetchTopic(topic=TOPIC, topic_id=topic.id, partitions=(partition,)),),
    )


async def throttled(ask: Callable[[], Awaitable[Any]], seconds: float = 40) -> Any:
    """The first answer that tells a throttle: the broker hears of a quota a moment after it is set."""
    async with asyncio.timeout(seconds):
        while True:
            answer = await ask()
            if answer.throttle_time_ms:
                return answer


def test_produce_and_fetch_are_throttled_and_muted(cluster: Cluster, metrics_port: int) -> None:
    async def test() -> None:
        async with clients(cluster, "admin", "limited") as (admin, client):
            topic = await topic_of(cluster, admin)
            free = await client.call(produce(topic, 20_000), WAIT_MS)
            assert free.throttle_time_ms == 0
            await set_quota(admin, "producer_byte_rate", 20_000, client="limited")
            answer = await throttled(lambda: client.call(produce(topic, 20_000), WAIT_MS))
            assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none
            began_s = time.monotonic()
            await client.call(ListGroupsRequest(), WAIT_MS)
            assert time.monotonic() - began_s >= answer.throttle_time_ms / 1_000 - 0.05, (
                "the connection was muted"
            )
            shown = await asyncio.to_thread(
                lambda: urllib.request.urlopen(f"http://{LOOPBACK}:{metrics_port}/metrics").read().decode()
            )
            rate = next(
                line for line in shown.splitlines() if line.startswith("kafka_server_produce_byte_rate{")
            )
            assert 'client_id="limited"' in rate
            assert float(rate.split()[-1]) > 0

            await set_quota(admin, "consumer_byte_rate", 5_000, client="limited")
            answer = await throttled(lambda: client.call(fetch(topic), WAIT_MS))
            assert (await admin.call(fetch(topic), WAIT_MS)).throttle_time_ms == 0, "others are not concerned"
            await set_quota(admin, "consumer_byte_rate", None, client="limited")
            await set_quota(admin, "producer_byte_rate", None, client="limited")

            async def is_free() -> bool:
                asked = await client.call(produce(topic, 100_000), WAIT_MS)
                again = await client.call(produce(topic, 100_000), WAIT_MS)
                return not asked.throttle_time_ms and not again.throttle_time_ms

            async with asyncio.timeout(60):
                while not await is_free():
                    pass

    asyncio.run(test())


def test_a_clients_share_of_requests_is_held(cluster: Cluster) -> None:
    async def test() -> None:
        async with clients(cluster, "admin", "eager") as (admin, client):
            await set_quota(admin, "request_percentage", 0.01, client="eager")
            answer = await throttled(lambda: client.call(ListGroupsRequest(), WAIT_MS))
            assert 0 < answer.throttle_time_ms <= 1_000, "a window at most"
            began_s = time.monotonic()
            await client.call(ListGroupsRequest(), WAIT_MS)
            assert time.monotonic() - began_s >= answer.throttle_time_ms / 1_000 - 0.05
            assert (await admin.call(ListGroupsRequest(), WAIT_MS)).throttle_time_ms == 0

    asyncio.run(test())


def test_an_address_opens_so_many_connections_a_second(cluster: Cluster) -> None:
    async def test() -> None:
        async with clients(cluster, "admin") as (admin,):
            await set_quota(admin, "connection_creation_rate", 1, ip=LOOPBACK)
            address = HostPort(LOOPBACK, cluster.ports[BROKER])

            async def is_refused() -> bool:
                reader, writer = await asyncio.open_connection(address.host, address.port)
                try:
                    await asyncio.wait_for(reader.read(1), 3)
                except TimeoutError:
                    return False
                finally:
                    writer.close()
                return True

            async with asyncio.timeout(60):
                while not any(await asyncio.gather(*(is_refused() for _ in range(4)))):
                    pass
            await set_quota(admin, "connection_creation_rate", None, ip=LOOPBACK)
            async with asyncio.timeout(60):
                while any(await asyncio.gather(*(is_refused() for _ in range(4)))):
                    pass

    asyncio.run(test())
