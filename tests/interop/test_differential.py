"""The same stories happen to Kafka's controller and to ours, with Kafka's brokers on both. The records of both logs
must be the same, with the bounds of their atomic groups.

A group is a batch, or all batches of a metadata transaction. The bounds matter: a broker that reads the first of two
groups acts on it, which stalled producers when a fence stood in another group than the changes of the partitions. Ids,
epochs of brokers, ports and times differ between two runs; they are left out or named after what they belong to.

A story in which brokers themselves decide what is sent in one request (their return to ISRs) is lived through, but not
compared.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from tests.interop.dumps import Dumped, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONTROLLER = 1
BROKERS = FIRST, SECOND, THIRD = 101, 102, 103
SETTINGS = {
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
    # A producer that is late would create a deleted topic again.
    "auto.create.topics.enable": False,
}
# What only one of the two writes, on purpose (docs/divergence.md): story and record.
DEPARTURES = {
    ("a broker dies below min.insync.replicas", 'clearelrrecord {"topicname": "eligible"}'),
    (
        "a fenced broker is unregistered",
        'partitionchangerecord {"eligibleleaderreplicas": [], "leader": -2, "leaderrecoverystate": -1, '
        '"partitionid": 0, "topic": "eligible"}',
    ),
}
# Two runs differ in them, and so do two runs of Kafka's.
INCIDENTAL = frozenset(
    {
        "brokerepoch",
        "incarnationid",
        "endpoints",
        "features",
        "logdirs",
        "directories",
        "topicid",
        "auditnote",
        "rack",
        "unknowntaggedfields",
    }
)
# Signs of life and of the controllers themselves.
IGNORED = frozenset(
    {"nooprecord", "registercontrollerrecord", "begintransactionrecord", "endtransactionrecord"}
)
Group = tuple[str, ...]


@dataclass
class Written:
    """The groups of each story, as text."""

    stories: dict[str, list[Group]] = field(default_factory=dict)


class Story:
    """Makes stories happen on one cluster, and notes what its controller wrote."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.servers = ",".join(site.nodes[each].address for each in BROKERS)
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self.written = Written()
        self._names: dict[str, str] = {}
        self._read = 0

    def run(self, name: str, act: Callable[[], None], *, is_compared: bool = True) -> None:
        self._new_groups()
        act()
        groups = self._new_groups()
        if is_compared:
            self.written.stories[name] = [
                tuple(each for each in group if (name, each) not in DEPARTURES) for group in groups
            ]

    def kquorum(self, *arguments: str) -> None:
        assert run([*arguments, "--bootstrap-server", self.servers]) == 0, self.site.tails()

    def new_topic(self, topic: str, *replicas: list[int], configs: Mapping[str, str] | None = None) -> None:
        new = NewTopic(topic, len(replicas), replica_assignment=list(replicas), config=dict(configs or {}))
        self.admin.create_topics([new])[topic].result(WAIT_S)

    def await_partitions(self, condition: Callable[[list[Any]], bool], *topics: str) -> None:
        """Of the partitions of these topics, as brokers know them."""

        def holds() -> bool:
            known = self.admin.list_topics(timeout=WAIT_S).topics
            return all(each in known for each in topics) and condition(
                [part for each in topics for part in known[each].partitions.values()]
            )

        assert wait_until(holds, WAIT_S, 0.2), self.site.tails()

    def await_out(self, broker_id: int, *topics: str) -> None:
        """The broker is in no ISR and leads nothing."""
        self.await_partitions(
            lambda found: all(broker_id not in each.isrs and broker_id != each.leader for each in found),
            *topics,
        )
        self.await_written("brokerregistrationchangerecord", brokerid=broker_id, fenced=1)

    def await_in(self, *topics: str) -> None:
        """All replicas are in sync."""
        self.await_partitions(
            lambda found: all(set(each.isrs) == set(each.replicas) for each in found), *topics
        )

    def await_written(self, record_type: str, **fields: object) -> None:
        """Since the last story."""

        def is_there() -> bool:
            return any(
                each.type == record_type and fields.items() <= dict(each.payload).items()
                for each in self._records()[self._read :]
            )

        assert wait_until(is_there, WAIT_S, 0.2), f"{record_type} {fields}: {self.site.tails()}"

    # What was written

    def _records(self) -> list[Dumped]:
        paths = self.site.nodes[CONTROLLER].segments()
        return [record for path in paths for record in dump_with_ours(path) if not record.is_control]

    def _new_groups(self) -> list[Group]:
        records = self._records()
        new, self._read = records[self._read :], len(records)
        for record in records:
            if record.type == "topicrecord":
                self._names[record.payload["topicid"]] = record.payload["name"]
        groups = []
        for group in _groups(new):
            texts = [self._text(each) for each in group if each.type not in IGNORED]
            if texts:
                groups.append(tuple(sorted(texts)))
        return groups

    def _text(self, record: Dumped) -> str:
        payload = dict(record.payload)
        topic = self._names.get(payload.get("topicid", ""))
        kept = {
            name: value for name, value in payload.items() if name not in INCIDENTAL and value is not None
        }
        if topic is not None:
            kept["topic"] = topic
        for secret in ("salt", "storedkey", "serverkey"):
            if secret in kept:
                kept[secret] = "..."
        return f"{record.type} {json.dumps(kept, sort_keys=True, default=str)}"


def _groups(records: list[Dumped]) -> Iterator[list[Dumped]]:
    """Batches; those of a transaction are one group."""
    open_group: list[Dumped] = []
    is_open = False
    for _, batch in groupby(records, key=lambda each: each.batch_base_offset):
        found = list(batch)
        open_group += found
        types = [each.type for each in found]
        is_open = (is_open or "begintransactionrecord" in types) and "endtransactionrecord" not in types
        if not is_open:
            yield open_group
            open_group = []


class Stories(Story):
    """Each ends when its last record is there."""

    def create(self) -> None:
        self.new_topic("kept", [FIRST, SECOND, THIRD], [SECOND, THIRD, FIRST], [THIRD, FIRST, SECOND])
        self.new_topic("gone", [FIRST, SECOND], [THIRD, FIRST])
        self.await_in("kept", "gone")

    def grow(self) -> None:
        new = NewPartitions("kept", 4, replica_assignment=[[SECOND, FIRST, THIRD]])
        self.admin.create_partitions([new])["kept"].result(WAIT_S)
        self.await_partitions(lambda found: len(found) == 4, "kept")

    def configs(self) -> None:
        self.kquorum(
            "configs",
            "alter",
            "--topic",
            "kept",
            "--set",
            "retention.ms=99000",
            "--set",
            "segment.bytes=2000000",
        )
        self.kquorum("configs", "alter", "--topic", "kept", "--delete", "retention.ms")

    def quotas(self) -> None:
        self.kquorum(
            "quotas", "set", "producer_byte_rate=1000000", "consumer_byte_rate=2000000", "--user", "alice"
        )
        self.kquorum("quotas", "remove", "--user", "alice")

    def session_ends(self) -> None:
        self.site.kill(THIRD)
        self.await_out(THIRD, "kept", "gone")

    def third_returns(self) -> None:
        self.site.start_kafka(THIRD)
        self.await_in("kept", "gone")

    def leaves_in_order(self) -> None:
        self.site.stop(SECOND)
        self.await_out(SECOND, "kept", "gone")

    def second_returns(self) -> None:
        self.site.start_kafka(SECOND)
        self.await_in("kept", "gone")

    def preferred_election(self) -> None:
        self.kquorum("elect-leaders", "--all")
        self.await_partitions(
            lambda found: all(each.leader == each.replicas[0] for each in found), "kept", "gone"
        )

    def reassignment(self) -> None:
        """To replicas that are in sync already: nothing is to be waited for."""
        plan = Path(self.site.nodes[CONTROLLER].kafka_path).with_name("plan.json")
        moves = [{"topic": "kept", "partition": 0, "replicas": [SECOND, THIRD]}]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))
        self.kquorum("reassign", "execute", str(plan))
        self.await_partitions(lambda found: any(each.replicas == [SECOND, THIRD] for each in found), "kept")

    def deletion_under_load(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0, "message.timeout.ms": 3_000})
        for number in range(200):
            producer.produce("gone", b"%d" % number)
        producer.poll(0)
        self.admin.delete_topics(["gone"])["gone"].result(WAIT_S)
        self.await_written("removetopicrecord")
        producer.purge()

    def eligible_leaders(self) -> None:
        self.new_topic("eligible", [FIRST, SECOND], configs={"min.insync.replicas": "2"})
        self.await_in("eligible")
        self.site.kill(SECOND)
        self.await_out(SECOND, "eligible", "kept")

    def unregistering(self) -> None:
        self.kquorum("brokers", "unregister", str(SECOND))
        self.await_written("unregisterbrokerrecord", brokerid=SECOND)

    def run_all(self) -> Written:
        self.run("topics are created", self.create)
        self.run("a topic grows", self.grow)
        self.run("configs are changed", self.configs)
        self.run("quotas are set and removed", self.quotas)
        self.run("a session ends", self.session_ends)
        self.run("the broker returns", self.third_returns, is_compared=False)
        self.run("leaders are elected after the return", self.preferred_election)
        self.run("a broker leaves in order", self.leaves_in_order)
        self.run("the other broker returns", self.second_returns, is_compared=False)
        self.run("preferred leaders are elected", self.preferred_election)
        self.run("a partition moves to replicas in sync", self.reassignment)
        self.run("a topic is deleted under load", self.deletion_under_load)
        self.run("a broker dies below min.insync.replicas", self.eligible_leaders)
        self.run("a fenced broker is unregistered", self.unregistering)
        return self.written


def written_by(kafka: Kafka, folder: Path, *, is_ours: bool) -> Written:
    folder.mkdir()
    layout = Layout(
        controllers=(CONTROLLER,),
        brokers=BROKERS,
        release=".".join(VERSION.split(".")[:2]),
        settings=dict.fromkeys((CONTROLLER, *BROKERS), SETTINGS),
    )
    with Site(kafka, folder, layout) as site:
        if is_ours:
            site.format_with_kafka(BROKERS)
            site.format_with_ours([CONTROLLER])
            site.start_ours(CONTROLLER)
        else:
            site.format_with_kafka()
            site.start_kafka(CONTROLLER)
        site.start_kafka(*BROKERS)
        return Stories(site).run_all()


def test_both_controllers_write_the_same_groups(kafka: Kafka, tmp_path: Path) -> None:
    theirs = written_by(kafka, tmp_path / "kafka", is_ours=False)
    ours = written_by(kafka, tmp_path / "ours", is_ours=True)
    (tmp_path / "written.json").write_text(
        json.dumps({"kafka": theirs.stories, "ours": ours.stories}, indent=1)
    )
    different = {
        name: {"kafka": groups, "ours": ours.stories[name]}
        for name, groups in theirs.stories.items()
        if groups != ours.stories[name]
    }
    assert not different, json.dumps(different, indent=1)
