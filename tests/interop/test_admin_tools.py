"""Kafka's command line tools ask and change a running quorum of ours, and a broker of Kafka's serves it."""

import re
from collections.abc import Iterator

import pytest

from kquorum.cli.commands.features.metadata_versions import name_of
from kquorum.cli.processes import wait_until
from kquorum.snapshots.bootstrap import DEFAULT_METADATA_VERSION
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import KafkaRelease
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = pytest.mark.interop

OUR_BROKER, KAFKA_BROKER = 101, 102
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture(scope="module")
def site(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Controller 1 is a dynamic quorum of its own, controller 2 and a broker follow it."""
    folder = tmp_path_factory.mktemp("admin")
    layout = Layout(controllers=(1, 2), brokers=(OUR_BROKER, KAFKA_BROKER), is_dynamic=True)
    with Site(Kafka(kafka_release, folder), folder, layout) as started:
        started.format_with_ours((1, 2, OUR_BROKER))
        started.start_ours(1, 2, OUR_BROKER)
        yield started


def replication(kafka: Kafka, *where: str) -> dict[int, tuple[str, str]]:
    """Node id -> (directory id, status)."""
    printed = kafka.run(QUORUM, *where, "describe", "--replication")
    header, *rows = [line.split() for line in printed.splitlines() if line.strip()]
    assert header[:2] == ["NodeId", "DirectoryId"], printed
    return {int(row[0]): (row[1], row[-1]) for row in rows}


def status(kafka: Kafka, *where: str) -> dict[str, str]:
    printed = kafka.run(QUORUM, *where, "describe", "--status")
    return dict(re.findall(r"^(\w+): +(.*)$", printed, flags=re.MULTILINE))


@pytest.mark.slow
def test_the_tool_for_quorums_describes_and_changes_the_voters(kafka: Kafka, site: Site) -> None:
    controller = ("--bootstrap-controller", site.nodes[1].address)
    broker = ("--bootstrap-server", site.nodes[OUR_BROKER].address)
    for where in (controller, broker):
        told = status(kafka, *where)
        assert (told["LeaderId"], told["LeaderEpoch"]) == ("1", "1")
        assert int(told["HighWatermark"]) > 0
        assert '"id": 1' in told["CurrentVoters"]
        assert f'"endpoints": ["CONTROLLER://{site.nodes[1].address}"]' in told["CurrentVoters"]
    site.await_quorum(lambda quorum: {each.replica_id for each in quorum.observers} >= {2, OUR_BROKER})
    replicas = replication(kafka, *controller)
    roles = {node_id: role for node_id, (_, role) in replicas.items()}
    assert (roles[1], roles[2], roles[OUR_BROKER]) == ("Leader", "Observer", "Observer")
    kafka.run(QUORUM, *controller, "--command-config", str(site.nodes[2].kafka_path), "add-controller")
    added = replication(kafka, *controller)
    assert {node_id for node_id, (_, role) in added.items() if role != "Observer"} == {1, 2}
    directory = added[2][0]
    assert directory in (site.nodes[2].data / "meta.properties").read_text()
    remove = ("remove-controller", "--controller-id", "2", "--controller-directory-id", directory)
    kafka.run(QUORUM, *broker, *remove)
    left = site.await_quorum(lambda quorum: len(quorum.voters) == 1)
    assert [voter.replica_id for voter in left.voters] == [1]


def test_the_tools_for_features_and_topics(kafka: Kafka, site: Site) -> None:
    broker = ("--bootstrap-server", site.nodes[OUR_BROKER].address)
    for where in (broker, ("--bootstrap-controller", site.nodes[1].address)):
        features = kafka.run(FEATURES, *where, "describe")
        levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", features))
        assert levels["kraft.version"] == "1"
        assert levels["metadata.version"] == name_of(DEFAULT_METADATA_VERSION)
    create = ("--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "1")
    kafka.run(TOPICS, *broker, *create, "--config", "retention.ms=60000")
    assert "orders" in kafka.run(TOPICS, *broker, "--list").split()
    described = kafka.run(TOPICS, *broker, "--describe", "--topic", "orders")
    assert "PartitionCount: 3" in described
    assert "retention.ms=60000" in described
    assert described.count(f"Leader: {OUR_BROKER}") == 3
    kafka.run(TOPICS, *broker, "--delete", "--topic", "orders")
    assert "orders" not in kafka.run(TOPICS, *broker, "--list").split()


def test_a_broker_of_kafkas_joins_our_controllers(kafka: Kafka, site: Site) -> None:
    site.format_with_kafka([KAFKA_BROKER])
    site.start_kafka(KAFKA_BROKER)
    site.create_topic("shared", KAFKA_BROKER, partitions=4)
    assert wait_until(lambda: "shared" in site.topics(OUR_BROKER), WAIT_S), site.tails()
    broker = ("--bootstrap-server", site.nodes[OUR_BROKER].address)
    described = kafka.run(TOPICS, *broker, "--describe", "--topic", "shared")
    leaders = sorted(re.findall(r"Leader: (\d+)", described))
    assert leaders == ["101", "101", "102", "102"]
    site.stop(KAFKA_BROKER)
    assert site.await_quorum(lambda quorum: quorum.leader_id == 1).leader_epoch == 1
