"""Transactions of real clients: librdkafka copies records exactly once, also while the coordinator is killed."""

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kquorum.broker.coordinators.partitioning import partition_of
from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

WAIT_S = 60.0
PARTITIONS = 4
COUNT = 400
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


def create(servers: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(each, PARTITIONS, 3) for each in topics]).values():
        created.result(WAIT_S)
    assert wait_until(lambda: set(topics) <= set(admin.list_topics(timeout=WAIT_S).topics), WAIT_S)


def fill(servers: str, topic: str, count: int = COUNT) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def transactional(servers: str, transactional_id: str, **options: object) -> Producer:
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": transactional_id, "linger.ms": 0, **options}
    )
    producer.init_transactions(WAIT_S)
    return producer


def read_all(servers: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """From the beginning to the end that readers of this isolation see."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"reader-of-{topic}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int] = set()

    def has_all() -> bool:
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                values.append(message.value())
            else:
                ended.add(message.partition())
        return len(ended) == PARTITIONS

    assert wait_until(has_all, WAIT_S)
    consumer.close()
    return values


def committed(servers: str, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    places = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    found = consumer.committed(places, WAIT_S)
    consumer.close()
    return [each.offset for each in found]


def copy(servers: str, source: str, target: str, transactional_id: str, count: int = COUNT) -> Counter[str]:
    """Until the group has read `count` records of the source; errors abort the transaction, and it is done again."""
    group = f"copy-{source}"
    outcome = Counter({"records": sum(max(each, 0) for each in committed(servers, group, source))})
    while outcome["records"] < count:
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
            }
        )
        consumer.subscribe([source])
        try:
            producer = transactional(servers, transactional_id)
            _copy_some(consumer, producer, target, outcome, count)
        except KafkaException as error:
            outcome[error.args[0].name()] += 1
            outcome["records"] = sum(max(each, 0) for each in committed(servers, group, source))
        finally:
            consumer.close()
    return outcome


def _copy_some(
    consumer: Consumer, producer: Producer, target: str, outcome: Counter[str], count: int
) -> None:
    while outcome["records"] < count:
        messages = [each for each in consumer.consume(20, 1.0) if each.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(target, message.value(), partition=message.partition())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), WAIT_S
            )
            producer.commit_transaction(WAIT_S)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(WAIT_S)
            raise
        outcome["transactions"] += 1
        outcome["records"] += len(messages)


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
