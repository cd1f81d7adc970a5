"""Transactions of real clients: librdkafka copies records exactly once, also while the coordinator is killed."""

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kquorum.broker.coordinators.partitioning import partition_of
from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.transactional_copy import (
    COUNT,
    PARTITIONS,
    WAIT_S,
    committed,
    copy,
    create,
    fill,
    read_all,
    transactional,
)
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TRANSACTION_PARTITIONS = 5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    overrides = {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.num.partitions": TRANSACTION_PARTITIONS,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
        "min.insync.replicas": 2,
        "replica.lag.time.max.ms": 3_000,
    }
    folder = tmp_path_factory.mktemp("transactions")
    with Cluster(folder, controllers=1, brokers=3, overrides=overrides) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> str:
    return ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)


def test_a_reader_of_committed_records_sees_those_of_committed_transactions_alone(servers: str) -> None:
    create(servers, "ends")
    producer = transactional(servers, "ends")
    for word, ends in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce("ends", word, partition=partition)
        # An abort drops what the client has not sent.
        assert producer.flush(WAIT_S) == 0
        ends(WAIT_S)
    producer.begin_transaction()
    producer.produce("ends", b"last", partition=0)
    producer.commit_transaction(WAIT_S)
    assert Counter(read_all(servers, "ends")) == {b"kept": PARTITIONS, b"last": 1}
    everything = Counter(read_all(servers, "ends", "read_uncommitted"))
    assert everything == {b"kept": PARTITIONS, b"dropped": PARTITIONS, b"last": 1}


def test_records_are_copied_exactly_once_with_their_offsets(servers: str) -> None:
    create(servers, "source", "copy")
    fill(servers, "source")
    outcome = copy(servers, "source", "copy", "copier")
    assert outcome["transactions"] >= COUNT // 20
    assert Counter(read_all(servers, "copy")) == Counter(b"%d" % each for each in range(COUNT))
    assert committed(servers, "copy-source", "source") == [COUNT // PARTITIONS] * PARTITIONS


def test_a_second_producer_fences_the_first(servers: str) -> None:
    create(servers, "fenced")
    first = transactional(servers, "fenced")
    first.begin_transaction()
    first.produce("fenced", b"old", partition=0)
    assert first.flush(WAIT_S) == 0
    second = transactional(servers, "fenced")
    second.begin_transaction()
    second.produce("fenced", b"new", partition=0)
    second.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(WAIT_S)
    assert refused.value.args[0].fatal()
    assert read_all(servers, "fenced") == [b"new"]


def test_a_transaction_past_its_time_is_aborted(servers: str) -> None:
    create(servers, "late")
    producer = transactional(servers, "late", **{"transaction.timeout.ms": 1_000})
    producer.begin_transaction()
    producer.produce("late", b"late", partition=0)
    assert producer.flush(WAIT_S) == 0
    # The coordinator's marker moves the last stable offset to the end.
    reader = Consumer({"bootstrap.servers": servers, "group.id": "late", "isolation.level": "read_committed"})
    place = TopicPartition("late", 0)
    assert wait_until(lambda: reader.get_watermark_offsets(place, WAIT_S)[1] == 2, WAIT_S)
    reader.close()
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(WAIT_S)
    assert refused.value.args[0].fatal()
    assert read_all(servers, "late") == []


@pytest.mark.parametrize("victim", ["transactions", "partition"])
def test_the_copy_is_exact_although_a_broker_is_killed(cluster: Cluster, servers: str, victim: str) -> None:
    """The coordinator of the transactions, or the leader of a partition that is written."""
    source, target = f"source-{victim}", f"copy-{victim}"
    create(servers, source, target)
    fill(servers, source)
    admin = AdminClient({"bootstrap.servers": servers})
    outcome = copy(servers, source, target, victim, count=40)
    assert outcome["records"] >= 40
    topics = admin.list_topics(timeout=WAIT_S).topics
    if victim == "transactions":
        index = partition_of(victim, TRANSACTION_PARTITIONS)
        killed = topics["__transaction_state"].partitions[index].leader
    else:
        killed = topics[target].partitions[0].leader
    cluster.kill(killed)
    try:
        copy(servers, source, target, victim)
    finally:
        cluster.start_node(killed)
    assert Counter(read_all(servers, target)) == Counter(b"%d" % each for each in range(COUNT))


PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


def test_the_java_producer_and_kafkas_tool(kafka: Kafka, servers: str) -> None:
    """A producer of transaction.version 2 (KIP-890), and kafka-transactions."""
    create(servers, "java")
    kafka.run(
        PERFORMANCE,
        "--topic",
        "java",
        "--num-records",
        "2000",
        "--record-size",
        "10",
        "--throughput",
        "-1",
        "--bootstrap-server",
        servers,
        "--transactional-id",
        "java-1",
        "--transaction-duration-ms",
        "50",
        "--command-property",
        "acks=all",
    )
    assert len(read_all(servers, "java")) == 2_000

    def tool(*arguments: str) -> str:
        return kafka.run(TRANSACTIONS, "--bootstrap-server", servers, *arguments)

    [line] = [each for each in tool("list").splitlines() if each.startswith("java-1")]
    assert "CompleteCommit" in line
    described = tool("describe", "--transactional-id", "java-1")
    assert "CompleteCommit" in described
    hanging = transactional(servers, "hanging")
    hanging.begin_transaction()
    hanging.produce("java", b"hangs", partition=0)
    assert hanging.flush(WAIT_S) == 0
    assert "Ongoing" in tool("describe", "--transactional-id", "hanging")
    producers = tool("describe-producers", "--topic", "java", "--partition", "0").splitlines()
    [start] = [each.split()[-1] for each in producers[1:] if each.split()[-1].isdecimal()]
    tool("abort", "--topic", "java", "--partition", "0", "--start-offset", start)
    assert len(read_all(servers, "java")) == 2_000
