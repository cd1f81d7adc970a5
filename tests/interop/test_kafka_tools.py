"""Kafka's command line tools administer a running cluster of ours, one after the other."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka, ToolFailed
from tests.interop.kafka_release import KafkaRelease
from tests.interop.site import WAIT_S
from tests.support.cluster import Cluster

pytestmark = pytest.mark.interop

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def cluster(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("tools"), controllers=1, brokers=3) as running:
        running.start()
        yield running


@pytest.fixture
def tool(kafka: Kafka, cluster: Cluster) -> Tool:
    """Runs a tool against all brokers, and answers what it prints."""
    servers = ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)
    return lambda name, *arguments: kafka.run(name, "--bootstrap-server", servers, *arguments)


def plan_of(folder: Path, topic: str, *replicas: int) -> tuple[str, str]:
    """The options that name a plan for partition 0 of the topic."""
    path = folder / f"{topic}-{'-'.join(map(str, replicas))}.json"
    wanted = {"topic": topic, "partition": 0, "replicas": replicas}
    path.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    return "--reassignment-json-file", str(path)


def shows(tool: Tool, pattern: str, name: str, *arguments: str) -> bool:
    """Whether the tool prints it, now or soon: brokers follow what was changed a moment later."""
    return wait_until(lambda: re.search(pattern, tool(name, *arguments)) is not None, WAIT_S, 0.5)


@pytest.mark.slow
def test_topics_are_altered(tool: Tool) -> None:
    tool(TOPICS, "--create", "--topic", "grown", "--partitions", "2", "--replication-factor", "2")
    tool(TOPICS, "--alter", "--topic", "grown", "--partitions", "4")
    assert shows(tool, "PartitionCount: 4", TOPICS, "--describe", "--topic", "grown")
    with pytest.raises(ToolFailed, match="partitions"):
        tool(TOPICS, "--alter", "--topic", "grown", "--partitions", "1")


@pytest.mark.slow
def test_configs_of_topics_brokers_and_the_cluster(cluster: Cluster, tool: Tool) -> None:
    tool(TOPICS, "--create", "--topic", "tuned")
    topic = ("--entity-type", "topics", "--entity-name", "tuned")
    tool(CONFIGS, "--alter", *topic, "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    assert shows(tool, r"retention\.ms=60000", CONFIGS, "--describe", *topic)
    assert "cleanup.policy=compact,delete" in tool(CONFIGS, "--describe", *topic)
    tool(CONFIGS, "--alter", *topic, "--delete-config", "cleanup.policy")
    everything = tool(CONFIGS, "--describe", "--all", *topic)
    assert "cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG" in everything
    default = ("--entity-type", "brokers", "--entity-default")
    tool(CONFIGS, "--alter", *default, "--add-config", "log.retention.ms=120000")
    assert shows(tool, r"log\.retention\.ms=120000", CONFIGS, "--describe", *default)
    broker = ("--entity-type", "brokers", "--entity-name", str(cluster.broker_ids[0]))
    tool(CONFIGS, "--alter", *broker, "--add-config", "log.cleaner.threads=2")
    assert shows(tool, r"log\.cleaner\.threads=2", CONFIGS, "--describe", *broker)
    with pytest.raises(ToolFailed, match=r"retention\.ms"):
        tool(CONFIGS, "--alter", *topic, "--add-config", "retention.ms=soon")


@pytest.mark.slow
def test_users_groups_and_client_metrics_have_configs(tool: Tool) -> None:
    user = ("--entity-type", "users", "--entity-name", "erin")
    tool(CONFIGS, "--alter", *user, "--add-config", "producer_byte_rate=1024")
    assert shows(tool, r"producer_byte_rate=1024", CONFIGS, "--describe", *user)
    tool(CONFIGS, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=4096,password=swordfish]")
    assert shows(tool, r"SCRAM-SHA-256=iterations=4096", CONFIGS, "--describe", *user)
    group = ("--entity-type", "groups", "--entity-name", "readers")
    tool(CONFIGS, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert shows(tool, r"consumer\.session\.timeout\.ms=50000", CONFIGS, "--describe", *group)
    metrics = ("--entity-type", "client-metrics", "--entity-name", "slow-clients")
    tool(CONFIGS, "--alter", *metrics, "--add-config", "interval.ms=1000")
    assert shows(tool, r"interval\.ms=1000", CONFIGS, "--describe", *metrics)


def test_acls(tool: Tool) -> None:
    mine = ("--topic", "orders", "--resource-pattern-type", "prefixed")
    tool(ACLS, "--add", "--allow-principal", "User:frank", "--operation", "Read", *mine)
    assert shows(tool, r"principal=User:frank.*operation=READ", ACLS, "--list")
    tool(ACLS, "--remove", "--force", *mine)
    assert wait_until(lambda: "User:frank" not in tool(ACLS, "--list"), WAIT_S, 0.5)


@pytest.mark.slow
def test_partitions_are_reassigned_and_leaders_elected(cluster: Cluster, tool: Tool, tmp_path: Path) -> None:
    first, second, third = cluster.broker_ids
    tool(TOPICS, "--create", "--topic", "moved", "--replica-assignment", f"{first}:{second}")
    moved = plan_of(tmp_path, "moved", third, second)
    tool(REASSIGN, *moved, "--execute")
    assert shows(tool, "Reassignment of partition moved-0 is completed", REASSIGN, *moved, "--verify")
    assert "No partition reassignments found." in tool(REASSIGN, "--list")
    described = (TOPICS, "--describe", "--topic", "moved")
    assert shows(tool, rf"Leader: {third}\s+Replicas: {third},{second}\s", *described)
    # Another order of the same replicas: the leader stays until the preferred one is elected.
    tool(REASSIGN, *plan_of(tmp_path, "moved", second, third), "--execute")
    assert shows(tool, rf"Leader: {third}\s+Replicas: {second},{third}\s", *described)
    elect = ("--election-type", "preferred", "--topic", "moved", "--partition", "0")
    assert "Successfully completed leader election (PREFERRED)" in tool(ELECTION, *elect)
    assert shows(tool, rf"Leader: {second}\s", *described)
    assert "Valid replica already elected" in tool(ELECTION, *elect)


@pytest.mark.slow
def test_a_broker_that_died_is_unregistered(cluster: Cluster, kafka: Kafka) -> None:
    first, _second, third = cluster.broker_ids
    servers = ("--bootstrap-server", cluster.address(first))

    def state(broker_id: int) -> str | None:
        listed = kafka.run(CLUSTER, "list-endpoints", *servers, "--include-fenced-brokers")
        return dict(re.findall(r"^(\d+)\s.*\s(fenced|unfenced)\s+broker", listed, re.MULTILINE)).get(
            str(broker_id)
        )

    cluster.kill(third)
    assert wait_until(lambda: state(third) == "fenced", WAIT_S, 0.5)
    unregister = ("unregister", *servers, "--id", str(third))
    assert f"Broker {third} is no longer registered." in kafka.run(CLUSTER, *unregister)
    with pytest.raises(ToolFailed, match=f"Broker ID {third} is not currently registered"):
        kafka.run(CLUSTER, *unregister)
    assert wait_until(lambda: state(third) is None, WAIT_S, 0.5)
    cluster.start_node(third)
    assert wait_until(lambda: state(third) == "unfenced", WAIT_S, 0.5)


@pytest.mark.slow
def test_features_go_up_and_down(tool: Tool) -> None:
    up = tool(FEATURES, "upgrade", "--metadata", "4.1-IV1")
    assert "metadata.version was upgraded" in up
    assert shows(tool, r"metadata\.version.*FinalizedVersionLevel: 4\.1-IV1", FEATURES, "describe")
    with pytest.raises(ToolFailed, match=r"metadata\.version"):
        tool(FEATURES, "upgrade", "--metadata", "4.0-IV3")
    down = ("downgrade", "--feature", "group.version=0")
    assert "group.version can be downgraded to 0" in tool(FEATURES, *down, "--dry-run")
    assert re.search(r"group\.version.*FinalizedVersionLevel: 1\b", tool(FEATURES, "describe"))
    assert "group.version was downgraded to 0" in tool(FEATURES, *down)
    assert shows(tool, r"group\.version.*FinalizedVersionLevel: 0\b", FEATURES, "describe")


def test_the_quorum_is_described(cluster: Cluster, tool: Tool) -> None:
    assert re.search(r"LeaderId:\s+1\b", tool(QUORUM, "describe", "--status"))
    replicas = tool(QUORUM, "describe", "--replication")
    roles = dict(re.findall(r"^(\d+)\s.*\b(Leader|Follower|Observer)\b", replicas, re.MULTILINE))
    assert roles == {"1": "Leader", **{str(broker_id): "Observer" for broker_id in cluster.broker_ids}}


@pytest.mark.slow
def test_every_broker_tells_its_log_directories(cluster: Cluster, tool: Tool) -> None:
    told = json.loads(tool(LOG_DIRS, "--describe").splitlines()[-1])
    folders = {each["broker"]: [folder["logDir"] for folder in each["logDirs"]] for each in told["brokers"]}
    assert folders == {broker_id: [str(cluster.data_folder(broker_id))] for broker_id in cluster.broker_ids}
