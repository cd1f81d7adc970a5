"""Brokers of Kafka's and brokers of ours replicate the same partitions, and take over each other's folders."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kquorum.cli.failures import CliError
from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION
from tests.interop.site import Layout, Site
from tests.support.record_load import RecordLoad, RecordReader, differing_logs, violations

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BROKERS = (11, 12, 13)
TOPIC = "shared"
PARTITIONS = 3
WAIT_S = 90.0
SETTINGS = {
    "min.insync.replicas": 2,
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 500,
    "log.segment.bytes": 1_048_576,
    "offsets.topic.replication.factor": 3,
}


def site_of(kafka: Kafka, folder: Path) -> Site:
    release = ".".join(VERSION.split(".")[:2])
    settings = dict.fromkeys((1, *BROKERS), SETTINGS)
    return Site(kafka, folder, Layout(brokers=BROKERS, release=release, settings=settings))


def await_all_in_sync(site: Site, asked: int) -> None:
    def are_in_sync() -> bool:
        try:
            partitions = site.topic(asked, TOPIC).partitions
        except CliError:
            return False
        return len(partitions) == PARTITIONS and all(len(each.isr) == len(BROKERS) for each in partitions)

    assert wait_until(are_in_sync, WAIT_S, 0.3), f"{site.topic(asked, TOPIC)}\n{site.tails()}"


def judge(site: Site, load: RecordLoad) -> None:
    """Nothing acknowledged is lost or moved, nothing is doubled; then, with all brokers stopped, the logs are equal."""
    assert load.errors == []
    assert all(len(acknowledged) > 200 for acknowledged in load.acknowledged)
    reader = RecordReader(servers(site), TOPIC, PARTITIONS)
    reader.read_on()
    assert violations(load.acknowledged, reader.found) == []
    await_all_in_sync(site, BROKERS[0])
    site.stop(*BROKERS)
    folders = [site.nodes[broker_id].data for broker_id in BROKERS]
    assert differing_logs(TOPIC, PARTITIONS, folders) == []


def servers(site: Site) -> str:
    return ",".join(site.nodes[broker_id].address for broker_id in BROKERS)


def start(site: Site, broker_id: int, kafkas: Iterable[int]) -> None:
    if broker_id in kafkas:
        site.start_kafka(broker_id)
    else:
        site.start_ours(broker_id)


def begin(site: Site, kafkas: Iterable[int]) -> None:
    site.format_with_ours((1,))
    site.format_with_kafka(BROKERS)
    site.start_ours(1)
    for broker_id in BROKERS:
        start(site, broker_id, kafkas)
    site.create_topic(TOPIC, BROKERS[0], PARTITIONS, replicas=3)
    await_all_in_sync(site, BROKERS[0])


@pytest.mark.parametrize("kafkas", [(11, 12), (12,), ()], ids=["two of Kafka's", "one of Kafka's", "none"])
def test_brokers_are_killed_in_turn_under_load(kafka: Kafka, tmp_path: Path, kafkas: tuple[int, ...]) -> None:
    with site_of(kafka, tmp_path) as site:
        begin(site, kafkas)
        with RecordLoad(servers(site), TOPIC, PARTITIONS) as load:
            for broker_id in BROKERS:
                load.await_more(site.tails)
                site.kill(broker_id)
                load.await_more(site.tails)
                start(site, broker_id, kafkas)
                await_all_in_sync(site, broker_id)
                load.await_more(site.tails)
        judge(site, load)


def test_each_program_goes_on_with_the_others_folder(kafka: Kafka, tmp_path: Path) -> None:
    """All are of Kafka's; one after the other becomes one of ours under load, and one after the other goes back. Some
    stop in order, some are killed."""
    with site_of(kafka, tmp_path) as site:
        begin(site, BROKERS)
        with RecordLoad(servers(site), TOPIC, PARTITIONS) as load:
            for kafkas in ((), BROKERS):
                for broker_id in BROKERS:
                    load.await_more(site.tails)
                    (site.kill if broker_id == BROKERS[1] else site.stop)(broker_id)
                    start(site, broker_id, kafkas)
                    await_all_in_sync(site, broker_id)
        judge(site, load)
