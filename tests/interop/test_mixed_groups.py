"""Coordinators move between brokers of Kafka's and of ours: each loads what the other wrote."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kquorum.cli.failures import CliError
from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION
from tests.interop.site import Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BROKERS = (11, 12, 13)
# One is of Kafka's, so that each group has had coordinators of both kinds when each broker was killed once.
KAFKAS = (11,)
TOPIC, OFFSETS = "shared", "__consumer_offsets"
PARTITIONS = 3
GROUPS = tuple(f"group-{number}" for number in range(6))
WAIT_S = 90.0
SETTINGS = {
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 500,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": PARTITIONS,
    "group.initial.rebalance.delay.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.session.timeout.ms": 3_000,
    "group.consumer.session.timeout.ms": 6_000,
}
# What a client of each protocol adds.
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic": {"session.timeout.ms": 6_000},
    "consumer": {"group.protocol": "consumer"},
}


def start(site: Site, broker_id: int) -> None:
    if broker_id in KAFKAS:
        site.start_kafka(broker_id)
    else:
        site.start_ours(broker_id)


def await_all_in_sync(site: Site, topic: str) -> None:
    def are_in_sync() -> bool:
        try:
            partitions = site.topic(BROKERS[1], topic).partitions
        except CliError:
            return False
        return len(partitions) == PARTITIONS and all(len(each.isr) == len(BROKERS) for each in partitions)

    assert wait_until(are_in_sync, WAIT_S, 0.3), site.tails()


def servers(site: Site) -> str:
    return ",".join(site.nodes[broker_id].address for broker_id in BROKERS)


@contextmanager
def member(site: Site, group: str, protocol: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers(site),
            "group.id": group,
            "enable.auto.commit": False,
            **PROTOCOLS[protocol],
        }
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def has_all(consumer: Consumer) -> bool:
    consumer.poll(0.2)
    return len(consumer.assignment()) == PARTITIONS


def commit(consumer: Consumer, offset: int) -> None:
    """Again while the coordinator moves, or the group rebalances."""

    def is_committed() -> bool:
        if not has_all(consumer):
            return False
        try:
            places = [TopicPartition(TOPIC, index, offset) for index in range(PARTITIONS)]
            consumer.commit(offsets=places, asynchronous=False)
        except KafkaException:
            return False
        return True

    assert wait_until(is_committed, WAIT_S)


def committed(site: Site, group: str) -> set[int]:
    admin = AdminClient({"bootstrap.servers": servers(site)})
    told: list[set[int]] = []

    def is_told() -> bool:
        [found] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        try:
            told.append({each.offset for each in found.result(WAIT_S).topic_partitions})
        except KafkaException:
            return False
        return True

    assert wait_until(is_told, WAIT_S), site.tails()
    return told[-1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_go_on_while_each_broker_is_killed_in_turn(
    kafka: Kafka, tmp_path: Path, protocol: str
) -> None:
    release = ".".join(VERSION.split(".")[:2])
    settings = dict.fromkeys((1, *BROKERS), SETTINGS)
    layout = Layout(brokers=BROKERS, release=release, settings=settings)
    with Site(kafka, tmp_path, layout) as site:
        site.format_with_ours((1,))
        site.format_with_kafka(BROKERS)
        site.start_ours(1)
        for broker_id in BROKERS:
            start(site, broker_id)
        site.create_topic(TOPIC, BROKERS[1], PARTITIONS, replicas=3)
        await_all_in_sync(site, TOPIC)
        for group in GROUPS:
            with member(site, group, protocol) as consumer:
                commit(consumer, 1)
        with member(site, "living", protocol) as living:
            commit(living, 1)
            for number, broker_id in enumerate(BROKERS, 2):
                await_all_in_sync(site, OFFSETS)
                site.kill(broker_id)
                for group in GROUPS:
                    assert committed(site, group) == {number - 1}
                commit(living, number)
                assert committed(site, "living") == {number}
                start(site, broker_id)
                await_all_in_sync(site, OFFSETS)
                for group in GROUPS:
                    with member(site, group, protocol) as consumer:
                        commit(consumer, number)
