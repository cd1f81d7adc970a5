"""Coordinators of transactions move between brokers of Kafka's and of ours: each loads what the other wrote."""

from collections import Counter
from pathlib import Path

import pytest

from kquorum.cli.failures import CliError
from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION
from tests.interop.site import Layout, Site
from tests.interop.transactional_copy import COUNT, copy, create, fill, read_all, transactional

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BROKERS = (11, 12, 13)
# One is of Kafka's, so that each id has had coordinators of both kinds when each broker was killed once.
KAFKAS = (11,)
STATE = "__transaction_state"
PARTITIONS = 3
IDS = ("a", "b", "c")
WAIT_S = 90.0
SETTINGS = {
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 500,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": PARTITIONS,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": PARTITIONS,
    "group.initial.rebalance.delay.ms": 0,
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
        return bool(partitions) and all(len(each.isr) == len(BROKERS) for each in partitions)

    assert wait_until(are_in_sync, WAIT_S, 0.3), site.tails()


def test_copies_are_exact_while_each_broker_is_killed_in_turn(kafka: Kafka, tmp_path: Path) -> None:
    release = ".".join(VERSION.split(".")[:2])
    settings = dict.fromkeys((1, *BROKERS), SETTINGS)
    layout = Layout(brokers=BROKERS, release=release, settings=settings)
    with Site(kafka, tmp_path, layout) as site:
        site.format_with_ours((1,))
        site.format_with_kafka(BROKERS)
        site.start_ours(1)
        for broker_id in BROKERS:
            start(site, broker_id)
        servers = ",".join(site.nodes[broker_id].address for broker_id in BROKERS)
        for each in IDS:
            create(servers, f"source-{each}", f"copy-{each}")
            fill(servers, f"source-{each}")
        # Open transactions and ended ones are in the logs that the others load.
        for each in IDS:
            copy(servers, f"source-{each}", f"copy-{each}", each, 40)
        kept_open = [
            transactional(servers, f"open-{each}", **{"transaction.timeout.ms": 600_000}) for each in IDS
        ]
        for producer, each in zip(kept_open, IDS, strict=True):
            producer.begin_transaction()
            producer.produce(f"copy-{each}", b"never", partition=0)
            assert producer.flush(WAIT_S) == 0
        for number, broker_id in enumerate(BROKERS, 2):
            await_all_in_sync(site, STATE)
            site.kill(broker_id)
            for each in IDS:
                copy(servers, f"source-{each}", f"copy-{each}", each, COUNT * number // 4)
            start(site, broker_id)
        for producer in kept_open:
            producer.abort_transaction(WAIT_S)
        for each in IDS:
            assert Counter(read_all(servers, f"copy-{each}")) == Counter(
                b"%d" % value for value in range(COUNT)
            )
