"""Snapshots change hands: a log whose beginning is only in a snapshot is gone on with, and fetched, by the other."""

from pathlib import Path

import pytest

from cli.processes import wait_until
from snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, snapshot_id_of
from tests.interop.dumps import assert_same_dumps, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.node_config import NodeConfig
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FIRST, SECOND = 1, 2
KAFKA_BROKER, OUR_BROKER, NEW_KAFKA_BROKER, NEW_BROKER_OF_OURS = 101, 102, 103, 104
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": 500}
QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"


def site_of(kafka: Kafka, folder: Path) -> Site:
    """A dynamic quorum of controller 1; every node makes snapshots often."""
    brokers = (KAFKA_BROKER, OUR_BROKER, NEW_KAFKA_BROKER, NEW_BROKER_OF_OURS)
    settings = dict.fromkeys((FIRST, SECOND, *brokers), OFTEN)
    return Site(
        kafka,
        folder,
        Layout(controllers=(FIRST, SECOND), brokers=brokers, is_dynamic=True, settings=settings),
    )


def snapshots(node: NodeConfig) -> list[Path]:
    """Those of the running log, the newest last."""
    ids = {path: snapshot_id_of(path.name) for path in node.checkpoints()}
    taken = [(each.order, path) for path, each in ids.items() if each and each != BOOTSTRAP_SNAPSHOT_ID]
    return [path for _, path in sorted(taken)]


def topics_in(path: Path) -> set[str]:
    return {record.payload["name"] for record in dump_with_ours(path) if record.type == "topicrecord"}


def await_snapshot_of(site: Site, node_id: int, topics: set[str]) -> None:
    """Until a snapshot has all of these; new records, which snapshots wait for, come by themselves."""
    node = site.nodes[node_id]
    assert wait_until(lambda: any(topics <= topics_in(path) for path in snapshots(node)), WAIT_S), (
        site.tails()
    )


def keep_only_newest_snapshot(node: NodeConfig) -> Path:
    """As the folder of a replica is that has just fetched it: who voted for whom stays."""
    newest = snapshots(node)[-1]
    for path in node.metadata.iterdir():
        if path.name not in {newest.name, "quorum-state", "partition.metadata"}:
            path.unlink()
    return newest


def starts_behind_snapshot(node: NodeConfig) -> bool:
    return int(node.segments()[0].stem) > 0


def check_files(kafka: Kafka, node: NodeConfig) -> None:
    assert_same_dumps(kafka, [*node.segments(), *node.checkpoints()])


def test_ours_goes_on_with_a_trimmed_log_of_kafkas(kafka: Kafka, tmp_path: Path) -> None:
    with site_of(kafka, tmp_path) as site:
        node = site.nodes[FIRST]
        site.format_with_kafka([FIRST, KAFKA_BROKER])
        site.start_kafka(FIRST, KAFKA_BROKER)
        site.create_topic("one", KAFKA_BROKER)
        await_snapshot_of(site, FIRST, {"one"})
        site.stop(KAFKA_BROKER, FIRST)
        check_files(kafka, node)
        keep_only_newest_snapshot(node)
        site.start_kafka(FIRST)
        before = site.await_quorum(lambda status: status.leader_id == FIRST)
        site.stop(FIRST)
        assert starts_behind_snapshot(node)

        site.format_with_ours([OUR_BROKER])
        site.start_ours(FIRST, OUR_BROKER)
        site.create_topic("two", OUR_BROKER)
        assert wait_until(lambda: site.topics(OUR_BROKER) == {"one", "two"}, WAIT_S), site.tails()
        assert site.quorum().leader_epoch > before.leader_epoch
        site.stop(OUR_BROKER, FIRST)
        check_files(kafka, node)


def test_a_controller_of_ours_fetches_kafkas_snapshot(kafka: Kafka, tmp_path: Path) -> None:
    with site_of(kafka, tmp_path) as site:
        node = site.nodes[FIRST]
        site.format_with_kafka([FIRST, KAFKA_BROKER])
        site.start_kafka(FIRST, KAFKA_BROKER)
        site.create_topic("one", KAFKA_BROKER)
        await_snapshot_of(site, FIRST, {"one"})
        site.stop(KAFKA_BROKER, FIRST)
        keep_only_newest_snapshot(node)
        site.format_with_ours([SECOND, OUR_BROKER])
        site.start_kafka(FIRST)
        site.start_ours(SECOND, OUR_BROKER)
        add_voter(kafka, site, SECOND)
        assert starts_behind_snapshot(site.nodes[SECOND])
        site.create_topic("two", OUR_BROKER)
        assert wait_until(lambda: site.topics(OUR_BROKER) == {"one", "two"}, WAIT_S), site.tails()
        site.stop(OUR_BROKER, SECOND, FIRST)
        check_files(kafka, site.nodes[SECOND])


def test_kafka_fetches_a_snapshot_of_ours(kafka: Kafka, tmp_path: Path) -> None:
    with site_of(kafka, tmp_path) as site:
        node = site.nodes[FIRST]
        site.format_with_ours([FIRST, OUR_BROKER])
        site.start_ours(FIRST, OUR_BROKER)
        site.create_topic("one", OUR_BROKER)
        await_snapshot_of(site, FIRST, {"one"})
        site.stop(OUR_BROKER, FIRST)
        check_files(kafka, node)
        keep_only_newest_snapshot(node)
        site.start_ours(FIRST, OUR_BROKER)
        site.format_with_kafka([SECOND, NEW_KAFKA_BROKER])
        site.start_kafka(SECOND, NEW_KAFKA_BROKER)
        add_voter(kafka, site, SECOND)
        assert starts_behind_snapshot(node)
        assert starts_behind_snapshot(site.nodes[SECOND])
        site.create_topic("two", NEW_KAFKA_BROKER)
        assert wait_until(lambda: site.topics(NEW_KAFKA_BROKER) == {"one", "two"}, WAIT_S), site.tails()
        assert_same_dumps(kafka, site.nodes[SECOND].segments())
        site.stop(NEW_KAFKA_BROKER, OUR_BROKER, FIRST)


def add_voter(kafka: Kafka, site: Site, node_id: int) -> None:
    site.await_quorum(lambda status: any(each.replica_id == node_id for each in status.observers))
    where = ("--bootstrap-controller", site.nodes[FIRST].address)
    kafka.run(QUORUM_TOOL, *where, "--command-config", str(site.nodes[node_id].path), "add-controller")
