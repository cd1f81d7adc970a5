"""All that a cluster of Kafka's can hold goes through our log and our snapshot, and Kafka sees the same behind it."""

from contextlib import suppress
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.interop.dumps import assert_same_dumps, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.node_config import NodeConfig
from tests.interop.shell import shown
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONTROLLER, BROKER = 1, 101
TOPICS = 31
UNFENCED_WITHIN_S = 10.0
ACLS, CONFIGS = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"
OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": 3_000,
    "metadata.log.max.snapshot.interval.ms": 1_000,
    "metadata.max.retention.bytes": 12_000,
    "metadata.log.segment.bytes": 4_096,
}
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# What our controller has no part in changing, and must hand on as it is.
HANDED_ON = ("acls", "clientQuotas", "configs", "delegationToken", "features", "scram")


def fill(kafka: Kafka, site: Site) -> None:
    where = ("--bootstrap-server", site.nodes[BROKER].address)
    acl = ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic")
    kafka.run(ACLS, *where, *acl, "orders")
    kafka.run(
        ACLS, *where, *acl, "pay", "--resource-pattern-type", "prefixed", "--deny-principal", "User:bob"
    )
    alter = (*where, "--alter")
    quota = ("--add-config", "producer_byte_rate=1024,request_percentage=12.5", "--entity-type", "users")
    kafka.run(
        CONFIGS, *alter, *quota, "--entity-name", "alice", "--entity-type", "clients", "--entity-default"
    )
    scram = ("--add-config", "SCRAM-SHA-256=[iterations=4096,password=secret]", "--entity-type", "users")
    kafka.run(CONFIGS, *alter, *scram, "--entity-name", "alice")
    of_topic = (
        "--add-config",
        "retention.ms=60000,cleanup.policy=[compact,delete]",
        "--entity-type",
        "topics",
    )
    kafka.run(CONFIGS, *alter, *of_topic, "--entity-name", "orders")
    of_all = ("--add-config", "log.cleaner.threads=2", "--entity-type", "brokers", "--entity-default")
    kafka.run(CONFIGS, *alter, *of_all)


def is_complete(node: NodeConfig) -> bool:
    """Whether a snapshot has all topics; it may go away while it is read."""
    with suppress(OSError):
        records = dump_with_ours(node.snapshots()[-1])
        return sum(record.type == "topicrecord" for record in records) == TOPICS
    return False


def test_what_only_kafka_changes_goes_through_our_snapshot(kafka: Kafka, tmp_path: Path) -> None:
    layout = Layout(
        controllers=(CONTROLLER,), brokers=(BROKER,), is_dynamic=True, ours=OFTEN, kafkas=AUTHORIZED
    )
    with Site(kafka, tmp_path, layout) as site:
        node = site.nodes[CONTROLLER]
        site.format_with_kafka()
        site.start_kafka(CONTROLLER, BROKER)
        site.create_topic("orders", BROKER)
        fill(kafka, site)
        site.stop(BROKER, CONTROLLER)
        (log,) = node.segments()
        kafkas = shown(kafka, log)
        assert len(kafkas["acls"]["byId"]) == 3
        assert all(kafkas[part] for part in ("clientQuotas", "configs", "features", "scram")), kafkas

        site.start_ours(CONTROLLER, BROKER)
        site.create_topics([f"ours-{each}" for each in range(TOPICS - 1)], BROKER)
        assert wait_until(lambda: node.log_start() > 0 and is_complete(node), WAIT_S), site.tails()
        site.stop(BROKER, CONTROLLER)
        assert_same_dumps(kafka, [*node.segments(), *node.checkpoints()])
        ours = shown(kafka, node.snapshots()[-1])
        assert {part: ours.get(part) for part in HANDED_ON} == {part: kafkas.get(part) for part in HANDED_ON}
        assert len(ours["topics"]["byName"]) == TOPICS

        site.start_kafka(CONTROLLER, BROKER)
        where = ("--bootstrap-server", site.nodes[BROKER].address)
        listed = kafka.run(ACLS, *where, "--list")
        assert listed.count("User:alice") == 2
        assert "retention.ms=60000" in kafka.run(CONFIGS, *where, "--describe", "--entity-type", "topics")
        site.stop(BROKER, CONTROLLER)


def test_a_partition_whose_isr_kafka_emptied_is_led_again(kafka: Kafka, tmp_path: Path) -> None:
    """As it is since Kafka 4.1 when its last replica stops: the ISR is empty, and the others know who may lead."""
    with Site(kafka, tmp_path, Layout(controllers=(CONTROLLER,), brokers=(BROKER,))) as site:
        site.format_with_kafka()
        site.start_kafka(CONTROLLER, BROKER)
        site.create_topic("orders", BROKER, partitions=1)
        site.stop(BROKER, CONTROLLER)
        site.start_ours(CONTROLLER, BROKER)
        assert_orders_is_led(site)
        site.stop(BROKER, CONTROLLER)
        site.start_kafka(CONTROLLER, BROKER)
        assert_orders_is_led(site)


def assert_orders_is_led(site: Site) -> None:
    led = wait_until(
        lambda: site.topic(BROKER, "orders").partitions[0].leader == BROKER, UNFENCED_WITHIN_S, 0.2
    )
    assert led, site.topic(BROKER, "orders")
