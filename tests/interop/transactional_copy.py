"""librdkafka copies records in transactions, with the offsets of its group: exactly once, whatever dies meanwhile."""

from collections import Counter

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kquorum.cli.processes import wait_until

WAIT_S = 60.0
PARTITIONS = 4
COUNT = 400


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
