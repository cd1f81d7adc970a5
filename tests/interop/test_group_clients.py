"""Members of classic groups: librdkafka and kafka-python share partitions, commit, and go on when their
coordinator dies."""

from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from kquorum.cli.processes import wait_until
from tests.interop.group_members import (
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


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_members_share_the_partitions_and_the_next_ones_go_on(servers: str, assignor: str) -> None:
    topic = group = f"shared-{assignor}"
    fill(servers, topic)
    options = {"partition.assignment.strategy": assignor}
    members = [member(servers, topic, group, **options) for _ in range(2)]
    assert len(consumed(members, COUNT)) == COUNT
    balance(members)
    for each in members:
        each.commit(
            offsets=[
                TopicPartition(topic, part.partition, COUNT // PARTITIONS) for part in each.assignment()
            ],
            asynchronous=False,
        )
    assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    admin = AdminClient({"bootstrap.servers": servers})
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert described.state.name == "STABLE"
    assert len(described.members) == 2
    for each in members:
        each.close()
    assert wait_until(
        lambda: admin.describe_consumer_groups([group])[group].result(WAIT_S).state.name == "EMPTY", WAIT_S
    )
    more(servers, topic)
    follower = member(servers, topic, group, **options)
    try:
        assert len(consumed([follower], COUNT)) == COUNT
    finally:
        follower.close()
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert offsets_of(servers, group) == {}


def test_a_static_member_that_comes_back_gets_its_partitions_without_a_rebalance(servers: str) -> None:
    topic = group = "static"
    fill(servers, topic)
    members = [member(servers, topic, group, **{"group.instance.id": name}) for name in ("a", "b")]
    consumed(members, COUNT)
    balance(members)
    before = {each.partition for each in members[1].assignment()}
    # A static member does not leave its group when it closes.
    members[1].close()
    members[1] = member(servers, topic, group, **{"group.instance.id": "b"})
    try:
        balance(members)
        assert {each.partition for each in members[1].assignment()} == before
    finally:
        for each in members:
            each.close()


# kafka-python leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_kafka_python_in_a_group(servers: str) -> None:
    topic = group = "python-group"
    fill(servers, topic)
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    values: list[bytes] = []

    def has_all() -> bool:
        for messages in consumer.poll(500).values():
            values.extend(message.value for message in messages)
        return len(values) >= COUNT

    try:
        assert wait_until(has_all, WAIT_S), len(values)
        consumer.commit()
        assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    finally:
        consumer.close()


@pytest.mark.slow
def test_the_tools_of_kafka(kafka: Kafka, servers: str) -> None:
    topic = group = "tools"
    fill(servers, topic)
    said = kafka.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", str(COUNT), "--timeout-ms", "30000"),
    )
    assert sorted(said.split(), key=int) == [str(number) for number in range(COUNT)]

    def tool(*arguments: str) -> str:
        return kafka.run(TOOL, "--bootstrap-server", servers, *arguments)

    assert group in tool("--list").split()
    assert "Classic" in tool("--list", "--type")
    described = tool("--describe", "--group", group)
    rows = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert {(row[2], row[3], row[4], row[5]) for row in rows} == {
        (str(index), "25", "25", "0") for index in range(PARTITIONS)
    }
    assert "Empty" in tool("--describe", "--group", group, "--state")
    tool("--group", group, "--reset-offsets", "--to-offset", "5", "--topic", topic, "--execute")
    assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 5)
    tool("--group", group, "--delete-offsets", "--topic", f"{topic}:0")
    assert 0 not in offsets_of(servers, group)
    assert "successful" in tool("--group", group, "--delete")
    assert group not in tool("--list").split()


def test_a_group_goes_on_at_the_next_coordinator(cluster: Cluster, servers: str) -> None:
    topic = group = "survivors"
    fill(servers, topic)
    members = [member(servers, topic, group) for _ in range(2)]
    try:
        consumed(members, COUNT)
        balance(members)
        for each in members:
            places = [TopicPartition(topic, part.partition, 25, "kept") for part in each.assignment()]
            each.commit(offsets=places, asynchronous=False)
        leader = coordinator(servers, group)
        cluster.kill(leader)
        try:
            assert wait_until(lambda: coordinator(servers, group) not in (leader, -1), WAIT_S)
            more(servers, topic)
            assert len(consumed(members, COUNT)) >= COUNT
            assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 25)
            balance(members)
            for each in members:
                places = [TopicPartition(topic, part.partition, 50) for part in each.assignment()]
                each.commit(offsets=places, asynchronous=False)
            assert offsets_of(servers, group) == dict.fromkeys(range(PARTITIONS), 50)
        finally:
            cluster.start_node(leader)
    finally:
        for each in members:
            each.close()
