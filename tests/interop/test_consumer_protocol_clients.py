"""Members of the consumer protocol (KIP-848): the Java consumer, librdkafka, Kafka's tools; both protocols at once."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from kquorum.cli.processes import wait_until
from tests.interop.group_members import (
    CONSUMER_PROTOCOL,
    COUNT,
    GROUP_PARTITIONS,
    PARTITIONS,
    WAIT_S,
    balance,
    consumed,
    coordinator,
    fill,
    member,
    more,
    offsets_of,
)
from tests.interop.kafka_process import Kafka
from tests.support.cluster import Cluster

pytestmark = pytest.mark.interop

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    overrides = {
        "group.initial.rebalance.delay.ms": 500,
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 300,
        "group.consumer.min.session.timeout.ms": 3_000,
        "group.consumer.session.timeout.ms": 6_000,
        "group.consumer.assignment.interval.ms": 100,
        "offsets.topic.num.partitions": GROUP_PARTITIONS,
        "min.insync.replicas": 2,
        "replica.lag.time.max.ms": 3_000,
    }
    with Cluster(tmp_path_factory.mktemp("groups"), controllers=1, brokers=3, overrides=overrides) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> str:
    return ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)


def test_librdkafka_members_share_the_partitions_and_the_next_ones_go_on(servers: str) -> None:
    topic = group = "rd-consumer"
    fill(servers, topic)
    members = [member(servers, topic, group, **CONSUMER_PROTOCOL) for _ in range(2)]
    try:
        assert len(consumed(members, COUNT)) >= COUNT
        balance(members)
        commit(members, topic, COUNT // PARTITIONS)
        assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    finally:
        for each in members:
            each.close()
    admin = AdminClient({"bootstrap.servers": servers})
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert described.type.name == "CONSUMER"
    more(servers, topic)
    follower = member(servers, topic, group, **CONSUMER_PROTOCOL)
    try:
        assert len(consumed([follower], COUNT)) == COUNT
    finally:
        follower.close()


@pytest.mark.slow
def test_a_regular_expression_finds_topics_that_are_created_later(servers: str) -> None:
    fill(servers, "pattern-1")
    consumer = member(servers, "^pattern-[0-9]", "pattern", **CONSUMER_PROTOCOL)
    try:
        assert len(consumed([consumer], COUNT)) == COUNT
        fill(servers, "pattern-2")
        assert len(consumed([consumer], COUNT)) == COUNT
    finally:
        consumer.close()


@pytest.mark.slow
def test_a_group_is_upgraded_and_downgraded_while_it_reads(servers: str) -> None:
    """Members of both protocols share the partitions; the group is a classic one again when the others left."""
    topic = group = "migrating"
    fill(servers, topic)
    admin = AdminClient({"bootstrap.servers": servers})

    def kind() -> str:
        name: str = admin.describe_consumer_groups([group])[group].result(WAIT_S).type.name
        return name

    classic = member(servers, topic, group, **{"partition.assignment.strategy": "cooperative-sticky"})
    consumed([classic], COUNT)
    commit([classic], topic, COUNT // PARTITIONS)
    assert kind() == "CLASSIC"
    modern = member(servers, topic, group, **CONSUMER_PROTOCOL)
    try:
        balance([classic, modern])
        assert kind() == "CONSUMER"
        more(servers, topic)
        consumed([classic, modern], COUNT)
        commit([classic, modern], topic, 2 * COUNT // PARTITIONS)
        modern.close()
        balance([classic])
        assert kind() == "CLASSIC"
        more(servers, topic)
        consumed([classic], COUNT)
        commit([classic], topic, 3 * COUNT // PARTITIONS)
        assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 3 * COUNT // PARTITIONS)
    finally:
        modern.close()
        classic.close()


@pytest.mark.slow
def test_a_group_goes_on_at_the_next_coordinator(cluster: Cluster, servers: str) -> None:
    topic = group = "consumer-survivors"
    fill(servers, topic)
    members = [member(servers, topic, group, **CONSUMER_PROTOCOL) for _ in range(2)]
    try:
        consumed(members, COUNT)
        balance(members)
        commit(members, topic, 25)
        leader = coordinator(servers, group)
        cluster.kill(leader)
        try:
            assert wait_until(lambda: coordinator(servers, group) not in (leader, -1), WAIT_S)
            more(servers, topic)
            assert len(consumed(members, COUNT)) >= COUNT
            assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 25)
            balance(members)
            commit(members, topic, 50)
            assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 50)
        finally:
            cluster.start_node(leader)
    finally:
        for each in members:
            each.close()


@pytest.mark.slow
def test_the_java_consumer_and_the_tools_of_kafka(kafka: Kafka, servers: str) -> None:
    topic = group = "java-consumer"
    fill(servers, topic)
    said = kafka.run(
        "org.apache.kafka.tools.VerifiableConsumer",
        *("--bootstrap-server", servers, "--topic", topic, "--group-id", group),
        *("--group-protocol", "consumer", "--reset-policy", "earliest", "--max-messages", str(COUNT)),
    )
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    names = [event["name"] for event in events]
    assert "partitions_assigned" in names
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == COUNT
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")
    assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    more(servers, topic)
    said = kafka.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--include", "java-cons.*", "--group", group),
        *("--command-property", "group.protocol=consumer"),
        *("--max-messages", str(COUNT), "--timeout-ms", "30000"),
    )
    assert sorted(said.split(), key=int) == [str(number) for number in range(COUNT)]

    def tool(*arguments: str) -> str:
        return kafka.run(TOOL, "--bootstrap-server", servers, *arguments)

    assert "Consumer" in next(line for line in tool("--list", "--type").splitlines() if group in line)
    living = member(servers, topic, group, **CONSUMER_PROTOCOL)
    try:
        balance([living])
        described = tool("--describe", "--group", group, "--members", "--verbose")
        [row] = [line.split() for line in described.splitlines() if line.startswith(group)]
        assert f"{topic}:0,1,2,3" in row
        assert "Stable" in tool("--describe", "--group", group, "--state")
    finally:
        living.close()
    tool("--group", group, "--reset-offsets", "--to-offset", "5", "--topic", topic, "--execute")
    assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 5)
    assert "successful" in tool("--group", group, "--delete")
    assert group not in tool("--list").split()


def commit(members: list[Consumer], topic: str, offset: int) -> None:
    """Of the partitions that each member has."""
    for each in members:
        places = [TopicPartition(topic, part.partition, offset) for part in each.assignment()]
        each.commit(offsets=places, asynchronous=False)
