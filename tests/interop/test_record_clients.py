"""librdkafka and kafka-python produce to brokers of kquorum and consume from them, with assigned partitions."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster
from tests.support.served_topics import await_served

pytestmark = pytest.mark.interop

WAIT_S = 40.0
COUNT = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    overrides = {"min.insync.replicas": 2, "replica.fetch.backoff.ms": 100}
    with Cluster(
        tmp_path_factory.mktemp("clients"), controllers=1, brokers=3, overrides=overrides
    ) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> str:
    return ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)


def create(servers: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(WAIT_S)
    await_served(admin, topic, partitions, WAIT_S)


def consumed(servers: str, topic: str, count: int, partitions: int = 1, **options: object) -> list[bytes]:
    """By librdkafka, up to `count` values."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False, **options}
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[bytes] = []

    def has_all() -> bool:
        for message in consumer.consume(1_000, 0.5):
            if message.error() is None:
                values.append(message.value())
        return len(values) >= count

    try:
        assert wait_until(has_all, WAIT_S), len(values)
    finally:
        consumer.close()
    return values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize(("acks", "idempotence"), [("all", True), ("1", False), ("0", False)])
def test_librdkafka_produces_with_each_codec(servers: str, codec: str, acks: str, idempotence: bool) -> None:
    topic = f"rd-{codec}-{acks}"
    create(servers, topic)
    errors: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": idempotence,
            "linger.ms": 5,
        }
    )
    expected = [b"value %d" % number for number in range(COUNT)]
    for value in expected:
        producer.produce(
            topic, value, key=b"k", headers={"h": b"1"}, on_delivery=lambda e, _m: errors.append(e)
        )
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * COUNT
    assert consumed(servers, topic, COUNT) == expected


# kafka-python leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("codec", [None, "gzip", "lz4"])  # it has no library for the others here
def test_kafka_python_produces_and_consumes(servers: str, codec: str | None) -> None:
    topic = f"python-{codec}"
    create(servers, topic)
    producer = KafkaProducer(bootstrap_servers=servers.split(","), compression_type=codec, acks="all")
    sent = [
        producer.send(topic, b"value %d" % number, timestamp_ms=1_000 + number) for number in range(COUNT)
    ]
    assert [each.get(WAIT_S).offset for each in sent] == list(range(COUNT))
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=servers.split(","), group_id=None, auto_offset_reset="earliest"
    )
    partition = KafkaPythonPartition(topic, 0)
    consumer.assign([partition])
    values: list[bytes] = []

    def has_all() -> bool:
        for messages in consumer.poll(500).values():
            values.extend(message.value for message in messages)
        return len(values) >= COUNT

    try:
        assert wait_until(has_all, WAIT_S), len(values)
        assert values == [b"value %d" % number for number in range(COUNT)]
        assert consumer.offsets_for_times({partition: 1_100})[partition].offset == 100
        assert consumer.end_offsets([partition]) == {partition: COUNT}
    finally:
        consumer.close()


def test_records_before_an_offset_are_deleted(servers: str) -> None:
    create(servers, "short")
    producer = Producer({"bootstrap.servers": servers})
    for number in range(10):
        producer.produce("short", b"%d" % number)
        assert producer.flush(WAIT_S) == 0
    admin = AdminClient({"bootstrap.servers": servers})
    [deleted] = admin.delete_records([TopicPartition("short", 0, 4)]).values()
    assert deleted.result(WAIT_S).low_watermark == 4
    [first] = admin.list_offsets({TopicPartition("short", 0): OffsetSpec.earliest()}).values()
    assert first.result(WAIT_S).offset == 4


def test_a_killed_leader_loses_nothing_that_librdkafka_was_acknowledged(
    cluster: Cluster, servers: str
) -> None:
    create(servers, "killed", 3)
    producer = Producer(
        {"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True, "linger.ms": 2}
    )
    acknowledged: list[bytes] = []
    failed: list[object] = []

    def heard(error: object, message: object) -> None:
        if error is None:
            acknowledged.append(message.value())  # type: ignore[attr-defined]
        else:
            failed.append(error)

    leader = (
        AdminClient({"bootstrap.servers": servers})
        .list_topics("killed")
        .topics["killed"]
        .partitions[0]
        .leader
    )
    for number in range(3_000):
        producer.produce("killed", b"%d" % number, key=b"%d" % number, on_delivery=heard)
        producer.poll(0.001)
        if number == 1_000:
            cluster.kill(leader)
    assert producer.flush(WAIT_S) == 0
    assert failed == []
    values = consumed(servers, "killed", 3_000, 3)
    assert sorted(values) == sorted(acknowledged)
    cluster.start_node(leader)
