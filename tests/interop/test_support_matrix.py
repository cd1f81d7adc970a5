"""Each release of Apache Kafka that is supported: its brokers on our controllers, and our brokers on its controllers.

Each column of the table in docs/interop.md is a cell here. A cell that fails does not keep the others from being tried;
the test fails at the end. With KQUORUM_MATRIX=FILE the outcomes are appended to it, and `python -m
tests.interop.matrix_table FILE` writes the table.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kquorum.cli.main import run
from kquorum.cli.processes import NodeFailed, wait_until
from tests.interop.kafka_process import Kafka, ServerFailed, ToolFailed
from tests.interop.kafka_release import Unavailable, find_release
from tests.interop.site import WAIT_S, Layout, Site
from tests.interop.transactional_copy import transactional

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# The newest of each minor release, and the release whose metadata.version comes before.
RELEASES = {"3.7.2": "3.6", "3.9.2": "3.8", "4.0.1": "3.9", "4.1.2": "4.0", "4.2.1": "4.1", "4.3.1": "4.2"}
CONTROLLERS, BROKERS = (1, 2, 3), (101, 102)
COUNT = 30
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
INTERNAL = {
    "offsets.topic.replication.factor": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 2,
    "share.coordinator.state.topic.num.partitions": 3,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
KAFKA_BROKERS, OUR_BROKERS = "kafka-brokers", "our-brokers"


def minor(release: str) -> tuple[int, int]:
    first, second = release.split(".")[:2]
    return int(first), int(second)


class Cells:
    """The outcomes of one row."""

    def __init__(self, direction: str, release: str) -> None:
        self._row = {"direction": direction, "release": release}
        self.outcomes: dict[str, str] = {}

    @contextmanager
    def cell(self, name: str) -> Iterator[None]:
        try:
            yield
        except (AssertionError, KafkaException, NodeFailed, ServerFailed, ToolFailed) as error:
            self.outcomes[name] = f"failed: {str(error)[:2000]}"
        else:
            self.outcomes[name] = "ok"

    def skip(self, name: str) -> None:
        """The release does not have it."""
        self.outcomes[name] = "-"

    def finish(self) -> None:
        if path := os.environ.get("KQUORUM_MATRIX"):
            with Path(path).open("a") as file:
                file.write(json.dumps({**self._row, "cells": self.outcomes}) + "\n")
        failed = {name: outcome for name, outcome in self.outcomes.items() if outcome.startswith("failed")}
        assert failed == {}


class Row:
    """One cluster, and what is tried on it, in this order."""

    def __init__(self, site: Site, kafka: Kafka, release: str, folder: Path) -> None:
        self.site = site
        self.kafka = kafka
        self.release = release
        self.folder = folder
        self.servers = ",".join(site.nodes[each].address for each in BROKERS)

    def kquorum(self, *arguments: str) -> None:
        assert run([*arguments, "--bootstrap-server", self.servers]) == 0, f"{arguments}\n{self.site.tails()}"

    def produce(self, topic: str, count: int = COUNT) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 0})
        errors: list[object] = []
        for number in range(count):
            producer.produce(topic, b"%d" % number, callback=lambda error, _: errors.append(error))
        assert producer.flush(WAIT_S) == 0
        assert set(errors) == {None}, errors[:3]

    def consume(self, topic: str, group: str, count: int, **options: object) -> list[bytes]:
        """As a member of a group, which commits."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **options,
            }
        )
        consumer.subscribe([topic])
        found: list[bytes] = []

        def has_all() -> bool:
            found.extend(each.value() for each in consumer.consume(100, 0.5) if each.error() is None)
            return len(found) >= count

        assert wait_until(has_all, WAIT_S), f"{len(found)} of {count}\n{self.site.tails()}"
        consumer.commit(asynchronous=False)
        consumer.close()
        return found

    # The cells

    def topics(self) -> None:
        self.kquorum("topics", "create", "made", "-p", "4", "-r", "2")
        self.kquorum("configs", "alter", "--topic", "made", "--set", "retention.ms=3600000")
        self.kquorum("topics", "alter", "made", "--partitions", "6")
        self.kquorum("topics", "create", "gone", "-p", "1", "-r", "2")
        self.kquorum("topics", "delete", "gone")
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

        def are_known() -> bool:
            known = admin.list_topics(timeout=WAIT_S).topics
            return "gone" not in known and "made" in known and len(known["made"].partitions) == 6

        assert wait_until(are_known, WAIT_S)
        self.produce("made")

    def groups(self) -> None:
        assert len(self.consume("made", "classic", COUNT)) == COUNT

    def consumer_protocol(self) -> None:
        assert len(self.consume("made", "modern", COUNT, **{"group.protocol": "consumer"})) == COUNT

    def transactions(self) -> None:
        self.kquorum("topics", "create", "exact", "-p", "2", "-r", "2")
        producer = transactional(self.servers, "matrix", log_level=0)
        for values, commits in (((b"1", b"2"), True), ((b"3",), False), ((b"4",), True)):
            producer.begin_transaction()
            for value in values:
                producer.produce("exact", value, partition=0)
            if commits:
                producer.commit_transaction(WAIT_S)
            else:
                assert producer.flush(WAIT_S) == 0
                producer.abort_transaction(WAIT_S)
        committed = {"isolation.level": "read_committed"}
        assert self.consume("exact", "exact", 3, **committed) == [b"1", b"2", b"4"]

    def share_groups(self) -> None:
        self.kquorum("topics", "create", "shared", "-p", "1", "-r", "2")
        arguments = ("--bootstrap-server", self.servers, "--topic", "shared", "--group", "sharers")
        self.kquorum("configs", "alter", "--group", "sharers", "--set", "share.auto.offset.reset=earliest")
        self.produce("shared", 5)
        found = self.kafka.run(
            SHARE_CONSUMER, *arguments, "--max-messages", "5", "--timeout-ms", "60000", timeout_s=90
        )
        assert found.split() == [str(number) for number in range(5)]

    def reassignment(self) -> None:
        self.kquorum("topics", "create", "moved", "-p", "1", "-r", "1")
        self.produce("moved")
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

        def where() -> tuple[list[int], list[int]]:
            [partition] = admin.list_topics("moved", timeout=WAIT_S).topics["moved"].partitions.values()
            return partition.replicas, partition.isrs

        assert wait_until(lambda: where()[0] != [], WAIT_S)
        [before] = where()[0]
        [after] = [each for each in BROKERS if each != before]
        plan = self.folder / "plan.json"
        move = {"topic": "moved", "partition": 0, "replicas": [after]}
        plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
        self.kquorum("reassign", "execute", str(plan))
        assert wait_until(lambda: where() == ([after], [after]), WAIT_S), where()
        assert len(self.consume("moved", "movers", COUNT)) == COUNT

    def eligible_leader_replicas(self) -> None:
        """A broker that leaves an ISR at min.insync.replicas may still lead."""
        self.kquorum("features", "upgrade", "--feature", "eligible.leader.replicas.version=1")
        self.kquorum(
            "topics", "create", "kept", "-p", "1", "-r", "2", "--topic-config", "min.insync.replicas=2"
        )
        self.produce("kept")
        self.stop(BROKERS[1])
        tool = "org.apache.kafka.tools.TopicCommand"
        server = self.site.nodes[BROKERS[0]].address

        def is_eligible() -> bool:
            said = self.kafka.run(tool, "--bootstrap-server", server, "--describe", "--topic", "kept")
            return f"Elr: {BROKERS[1]}" in said

        try:
            assert wait_until(is_eligible, WAIT_S)
        finally:
            self.start_broker(BROKERS[1])

    def rolling_restart(self) -> None:
        for number, node_id in enumerate(CONTROLLERS):
            self.stop(node_id)
            self.start_controller(node_id)
            self.kquorum("topics", "create", f"rolled-{number}", "-p", "1", "-r", "2")
        for node_id in BROKERS:
            self.stop(node_id)
            self.start_broker(node_id)
        self.produce("made")

    def feature_upgrade(self) -> None:
        release = ".".join(map(str, minor(self.release)))
        self.kquorum("features", "upgrade", "--release-version", release)
        self.kquorum("topics", "create", "upgraded", "-p", "1", "-r", "2")
        self.produce("upgraded")

    def stop(self, node_id: int) -> None:
        self.site.stop(node_id)

    start_broker: Callable[[int], object]
    start_controller: Callable[[int], object]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("direction", [KAFKA_BROKERS, OUR_BROKERS])
def test_a_release(direction: str, release: str, tmp_path: Path) -> None:
    try:
        kafka = Kafka(find_release(release), tmp_path)
    except Unavailable as error:
        pytest.skip(str(error))
    cells = Cells(direction, release)
    nodes = (*CONTROLLERS, *BROKERS)
    layout = Layout(
        controllers=CONTROLLERS,
        brokers=BROKERS,
        release=RELEASES[release],
        settings=dict.fromkeys(BROKERS, INTERNAL),
    )
    with Site(kafka, tmp_path, layout) as site:
        row = Row(site, kafka, release, tmp_path)
        if direction == KAFKA_BROKERS:
            ours, kafkas = CONTROLLERS, BROKERS
            row.start_controller, row.start_broker = site.start_ours, site.start_kafka
        else:
            ours, kafkas = BROKERS, CONTROLLERS
            row.start_controller, row.start_broker = site.start_kafka, site.start_ours
        site.format_with_ours(nodes)
        if direction == KAFKA_BROKERS:
            site.start_ours(*ours)
            with cells.cell("boot"):
                site.start_kafka(*kafkas)
        else:
            with cells.cell("boot"):
                site.start_kafka(*kafkas)
                site.start_ours(*ours)
        for name, act, since in (
            ("topics", row.topics, (3, 7)),
            ("feature upgrade", row.feature_upgrade, (3, 7)),
            ("groups", row.groups, (3, 7)),
            ("consumer protocol", row.consumer_protocol, (4, 0)),
            ("transactions", row.transactions, (3, 7)),
            ("reassignment", row.reassignment, (3, 7)),
            ("ELR", row.eligible_leader_replicas, (4, 0)),
            ("share groups", row.share_groups, (4, 2) if direction == KAFKA_BROKERS else (99, 0)),
            ("rolling restart", row.rolling_restart, (3, 7)),
        ):
            if minor(release) < since:
                cells.skip(name)
                continue
            with cells.cell(name):
                act()
    cells.finish()
