"""One controller of Kafka's and two of ours are one quorum: either leads, and what is committed survives its death."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kquorum.cli.clients.quorum_client import QuorumStatus
from kquorum.cli.processes import wait_until
from tests.interop.dumps import Dumped, assert_same_dumps, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.site import QUORUM_TOOL, WAIT_S, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

KAFKA, OURS, BROKER = 1, (2, 3), 101
CONTROLLERS = (KAFKA, *OURS)

# The node with the shortest timeout becomes a candidate first, so that a test may choose the leader.
HASTE = {"controller.quorum.election.timeout.ms": 150, "controller.quorum.fetch.timeout.ms": 1_000}
PATIENCE = {"controller.quorum.election.timeout.ms": 2_000, "controller.quorum.fetch.timeout.ms": 3_000}


def site_of(kafka: Kafka, folder: Path, *, is_dynamic: bool = False) -> Site:
    settings = {KAFKA: HASTE, **dict.fromkeys(OURS, PATIENCE)}
    layout = Layout(controllers=CONTROLLERS, brokers=(BROKER,), is_dynamic=is_dynamic, settings=settings)
    return Site(kafka, folder, layout)


def await_caught_up(site: Site, voters: Iterable[int]) -> QuorumStatus:
    def are_caught_up(status: QuorumStatus) -> bool:
        lags = {voter.replica_id: voter.lag for voter in status.voters}
        return all(lags.get(voter) in {0, 1} for voter in voters)

    return site.await_quorum(are_caught_up)


def create(site: Site, made: set[str]) -> None:
    """One more topic, through our broker; every topic made before is still there."""
    name = f"topic-{len(made)}"
    site.create_topic(name, BROKER)
    made.add(name)
    assert wait_until(lambda: site.topics(BROKER) == made, WAIT_S), site.tails()


def common_records(site: Site) -> tuple[Dumped, ...]:
    """The records that all three controllers have; AssertionError where they differ within them."""
    logs = [
        tuple(record for path in site.nodes[node_id].segments() for record in dump_with_ours(path))
        for node_id in CONTROLLERS
    ]
    common = min(map(len, logs))
    assert len({repr(log[:common]) for log in logs}) == 1
    return logs[0][:common]


def test_kafka_leads_dies_returns_and_leads_again(kafka: Kafka, tmp_path: Path) -> None:
    made: set[str] = set()
    with site_of(kafka, tmp_path) as site:
        site.format_with_kafka([KAFKA])
        site.format_with_ours([*OURS, BROKER])
        site.start_kafka(KAFKA)
        site.start_ours(*OURS, BROKER)
        first = await_caught_up(site, CONTROLLERS)
        assert first.leader_id == KAFKA
        create(site, made)

        site.kill(KAFKA)
        second = site.await_quorum(lambda status: status.leader_id in OURS)
        assert second.leader_epoch > first.leader_epoch
        create(site, made)

        site.start_kafka(KAFKA)
        await_caught_up(site, CONTROLLERS)
        create(site, made)
        site.kill(second.leader_id)
        third = site.await_quorum(lambda status: status.leader_id not in {-1, second.leader_id})
        assert third.leader_epoch > second.leader_epoch
        create(site, made)

        site.start_ours(second.leader_id)
        await_caught_up(site, CONTROLLERS)
        create(site, made)
        assert await_caught_up(site, CONTROLLERS).leader_epoch == third.leader_epoch
        site.stop(BROKER, *CONTROLLERS)
        check_logs(kafka, site, made)


def remove_voter(kafka: Kafka, site: Site, node_id: int) -> None:
    status = site.quorum()
    voter = status.voter(node_id)
    assert voter is not None
    assert voter.directory_id is not None
    where = ("--bootstrap-controller", site.nodes[status.leader_id].address)
    who = ("--controller-id", str(node_id), "--controller-directory-id", voter.directory_id)
    kafka.run(QUORUM_TOOL, *where, "remove-controller", *who)


def test_ours_join_a_quorum_of_kafkas_and_take_it_over(kafka: Kafka, tmp_path: Path) -> None:
    made: set[str] = set()
    with site_of(kafka, tmp_path, is_dynamic=True) as site:
        site.format_with_kafka([KAFKA])
        site.format_with_ours([*OURS, BROKER])
        site.start_kafka(KAFKA)
        site.start_ours(*OURS, BROKER)
        create(site, made)
        for node_id in OURS:
            site.add_voter(node_id)
        first = await_caught_up(site, CONTROLLERS)
        assert first.leader_id == KAFKA
        create(site, made)

        site.kill(KAFKA)
        second = site.await_quorum(lambda status: status.leader_id in OURS)
        create(site, made)
        remove_voter(kafka, site, KAFKA)
        create(site, made)

        site.start_kafka(KAFKA)
        site.add_voter(KAFKA)
        await_caught_up(site, CONTROLLERS)
        create(site, made)
        site.kill(second.leader_id)
        third = site.await_quorum(lambda status: status.leader_id not in {-1, second.leader_id})
        assert third.leader_epoch > second.leader_epoch
        create(site, made)
        site.start_ours(second.leader_id)
        await_caught_up(site, CONTROLLERS)
        site.stop(BROKER, *CONTROLLERS)
        check_logs(kafka, site, made)


def check_logs(kafka: Kafka, site: Site, topics: set[str]) -> None:
    records = common_records(site)
    assert [record.offset for record in records] == list(range(len(records)))
    assert {record.payload["name"] for record in records if record.type == "topicrecord"} == topics
    for node_id in CONTROLLERS:
        assert_same_dumps(kafka, site.nodes[node_id].segments())
