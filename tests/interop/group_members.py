"""Members of groups and their offsets, by librdkafka; for tests of groups with real clients."""

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kquorum.broker.coordinators.partitioning import partition_of
from kquorum.cli.processes import wait_until

WAIT_S = 60.0
PARTITIONS = 4
COUNT = 100
GROUP_PARTITIONS = 5
CONSUMER_PROTOCOL = {"group.protocol": "consumer"}


def fill(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(WAIT_S)
    assert wait_until(lambda: topic in admin.list_topics(timeout=WAIT_S).topics, WAIT_S)
    more(servers, topic)


def more(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def member(servers: str, topic: str, group: str, **options: object) -> Consumer:
    """Of the classic protocol, unless the options say otherwise."""
    sessions = {} if "group.protocol" in options else {"session.timeout.ms": 6_000}
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **sessions,
            **options,
        }
    )
    consumer.subscribe([topic])
    return consumer


def consumed(consumers: list[Consumer], count: int) -> list[bytes]:
    values: list[bytes] = []

    def has_all() -> bool:
        for consumer in consumers:
            for message in consumer.consume(50, 0.1):
                if message.error() is None:
                    values.append(message.value())
        return len(values) >= count

    assert wait_until(has_all, WAIT_S), len(values)
    return values


def balance(consumers: list[Consumer]) -> None:
    def is_even() -> bool:
        for consumer in consumers:
            consumer.poll(0.1)
        parts = [{each.partition for each in consumer.assignment()} for consumer in consumers]
        return set().union(*parts) == set(range(PARTITIONS)) and all(parts)

    assert wait_until(is_even, WAIT_S)


def offsets_of(servers: str, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": servers})
    [found] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {each.partition: each.offset for each in found.result(WAIT_S).topic_partitions}


def coordinator(servers: str, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": servers})
    topic = admin.list_topics("__consumer_offsets", timeout=WAIT_S).topics["__consumer_offsets"]
    leader: int = topic.partitions[partition_of(group, GROUP_PARTITIONS)].leader
    return leader
