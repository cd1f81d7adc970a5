"""aiokafka against a running cluster: an administrator, while the quorum changes its leader; producers; consumers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.cluster import Cluster

aiokafka = pytest.importorskip("aiokafka")
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # noqa: E402
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic  # noqa: E402
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # noqa: E402

pytestmark = pytest.mark.interop

WAIT_S = 30.0
# Two brokers cannot hold the three copies that these topics have otherwise.
ONE_COPY = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 100,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(
        tmp_path_factory.mktemp("aiokafka"), controllers=3, brokers=2, overrides=ONE_COPY
    ) as running:
        running.start()
        yield running


def servers(cluster: Cluster) -> list[str]:
    return [cluster.address(broker_id) for broker_id in cluster.broker_ids]


@asynccontextmanager
async def admin_of(cluster: Cluster) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=servers(cluster))
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def eventually(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await condition():  # noqa: ASYNC110 - the condition is a broker's image
            await asyncio.sleep(0.05)


def errors_of(response: Any) -> list[int]:
    return [entry[1] for entry in getattr(response, "topic_errors", None) or response.topic_error_codes]


async def create(admin: AIOKafkaAdminClient, topic: NewTopic) -> None:
    assert errors_of(await admin.create_topics([topic])) == [0]

    async def is_listed() -> bool:
        return topic.name in await admin.list_topics()

    await eventually(is_listed)


def test_topics_configs_and_groups(cluster: Cluster) -> None:
    async def work() -> None:
        async with admin_of(cluster) as admin:
            told = await admin.describe_cluster()
            assert sorted(broker["node_id"] for broker in told["brokers"]) == list(cluster.broker_ids)
            await create(admin, NewTopic("grown", 2, 2))
            assert errors_of(await admin.create_topics([NewTopic("grown", 1, 1)])) == [36]
            await admin.create_partitions({"grown": NewPartitions(4)})

            async def has_grown() -> bool:
                [topic] = await admin.describe_topics(["grown"])
                return len(topic["partitions"]) == 4

            await eventually(has_grown)
            wanted = ConfigResource(ConfigResourceType.TOPIC, "grown", {"retention.ms": "60000"})
            await admin.alter_configs([wanted])

            async def is_altered() -> bool:
                asked = ConfigResource(ConfigResourceType.TOPIC, "grown", {"retention.ms": None})
                [answer] = await admin.describe_configs([asked])
                [(_, _, _, _, entries)] = answer.resources
                return [entry[1] for entry in entries if entry[0] == "retention.ms"] == ["60000"]

            await eventually(is_altered)
            assert await admin.list_consumer_groups() == []
            assert errors_of(await admin.delete_topics(["grown"])) == [0]

            async def is_gone() -> bool:
                return "grown" not in await admin.list_topics()

            await eventually(is_gone)

    asyncio.run(work())


def test_it_goes_on_while_the_quorum_changes_its_leader(cluster: Cluster) -> None:
    leader = cluster.leader_id()
    names = [f"through-{number}" for number in range(12)]

    async def work() -> None:
        async with admin_of(cluster) as admin:
            for number, name in enumerate(names):
                if number == len(names) // 2:
                    cluster.kill(leader)
                assert errors_of(await admin.create_topics([NewTopic(name, 1, 1)])) == [0]

            async def all_are_listed() -> bool:
                return set(names) <= set(await admin.list_topics())

            await eventually(all_are_listed)

    asyncio.run(work())
    assert cluster.leader_id() != leader
    cluster.start_node(leader)


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    async def work() -> None:
        async with admin_of(cluster) as admin:
            await create(admin, NewTopic("orders", 2, 1))

    asyncio.run(work())
    return "orders"


async def produced(cluster: Cluster, topic: str, values: list[bytes], **options: Any) -> list[int]:
    """The offsets of `values` in partition 0."""
    producer = AIOKafkaProducer(bootstrap_servers=servers(cluster), **options)
    try:
        await producer.start()
        sent = [
            await producer.send(topic, value, key=b"k", partition=0, headers=[("h", value)])
            for value in values
        ]
        return [metadata.offset for metadata in await asyncio.gather(*sent)]
    finally:
        await producer.stop()


async def consumed(cluster: Cluster, topic: str, offset: int, count: int) -> list[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=servers(cluster), group_id=None)
    try:
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), offset)
        return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_it_reads_what_it_produced(cluster: Cluster, topic: str, codec: str | None, idempotent: bool) -> None:
    values = [b"%d:" % number + b"x" * 100 * number for number in range(20)]

    async def work() -> None:
        options = {"compression_type": codec, "enable_idempotence": idempotent, "acks": "all"}
        async with asyncio.timeout(WAIT_S):
            offsets = await produced(cluster, topic, values, **options)
            records = await consumed(cluster, topic, offsets[0], len(values))
        assert offsets == list(range(offsets[0], offsets[0] + len(values)))
        assert [(record.offset, record.key, record.value) for record in records] == [
            (offset, b"k", value) for offset, value in zip(offsets, values, strict=True)
        ]
        assert [record.headers for record in records] == [(("h", value),) for value in values]

    asyncio.run(work())


def test_a_reader_of_what_is_committed_sees_no_aborted_record(cluster: Cluster) -> None:
    async def work() -> list[bytes]:
        async with asyncio.timeout(2 * WAIT_S):
            async with admin_of(cluster) as admin:
                await create(admin, NewTopic("transactions", 1, 2))
            producer = AIOKafkaProducer(bootstrap_servers=servers(cluster), transactional_id="mine")
            await producer.start()
            try:
                await producer.begin_transaction()
                await producer.send_and_wait("transactions", b"aborted")
                await producer.abort_transaction()
                async with producer.transaction():
                    await producer.send_and_wait("transactions", b"committed")
            finally:
                await producer.stop()
            consumer = AIOKafkaConsumer(
                bootstrap_servers=servers(cluster),
                isolation_level="read_committed",
                auto_offset_reset="earliest",
            )
            await consumer.start()
            try:
                consumer.assign([TopicPartition("transactions", 0)])
                return [(await consumer.getone()).value]
            finally:
                await consumer.stop()

    assert asyncio.run(work()) == [b"committed"]


def test_a_member_of_a_group_goes_on_where_the_group_stopped(cluster: Cluster) -> None:
    async def first_values(count: int) -> list[bytes]:
        consumer = AIOKafkaConsumer(
            "grouped",
            bootstrap_servers=servers(cluster),
            group_id="group",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            await consumer.start()
            found = [(await consumer.getone()).value for _ in range(count)]
            await consumer.commit()
            return found
        finally:
            await consumer.stop()

    async def work() -> None:
        async with asyncio.timeout(2 * WAIT_S):
            async with admin_of(cluster) as admin:
                await create(admin, NewTopic("grouped", 1, 1))
            values = [b"%d" % number for number in range(10)]
            await produced(cluster, "grouped", values)
            assert await first_values(4) == values[:4]
            assert await first_values(6) == values[4:]

    asyncio.run(work())
