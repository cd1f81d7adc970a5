"""The workload audit: administrative changes; the audit of the logs has to agree with the clients' records of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.jepsen.checkers.audit import AuditAgrees
from tests.jepsen.checkers.audit_tables import CHANGE, CREATE, DELETE, DESCRIBE, GROW, SET, UNSET
from tests.jepsen.core.generator import Generator, OncePerNode, Ops, Phases, Stagger, TimeLimit, Turn, UntilOk
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.workloads.agreement import Agreement, OfSeats
from tests.jepsen.workloads.audit_client import IMPOSSIBLE_REPLICAS, KEYS, AuditWorker, topic_name
from tests.jepsen.workloads.voter_changes import VotersReader
from tests.jepsen.workloads.workload import RECOVERY_NS, Seat, Setup, WorkloadKind

NAME = "audit"
FOLLOWED = "followed-leader"
_PARTITIONS_MAX = 4
_FIRST_VALUE = 1_000_000  # of a config: each is given once
# Of a hundred operations.
_WEIGHTS = {CREATE: 35, SET: 27, GROW: 10, UNSET: 8, DELETE: 10}
_DESCRIBES, _IMPOSSIBLE = 5, 5


@dataclass(frozen=True, slots=True)
class Topic:
    """As the client which changed it last knows it."""

    name: str
    partitions: int
    keys: frozenset[str] = field(default_factory=frozenset)

    def changed(self, value: dict[str, Any]) -> "Topic | None":
        """None once it is deleted."""
        match value["change"]:
            case "grow":
                return replace(self, partitions=value["partitions"])
            case "set":
                return replace(self, keys=self.keys | {value["key"]})
            case "unset":
                return replace(self, keys=self.keys - {value["key"]})
            case "delete":
                return None
        return self


class Audit:
    """One client at a time changes a topic, so that the order of its changes is known; after a change in doubt no
    client touches it any more."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._random_source = setup.random_source
        self._nodes = setup.members.brokers
        self._quorum = setup.members.quorum
        self._free: dict[str, Topic] = {}
        self._busy: dict[str, Topic] = {}
        self._next_topic = 0
        self._next_value = _FIRST_VALUE
        self._barrier = ""

    def seats(self) -> Sequence[Seat]:
        """Those of the controllers come last, and have nothing to do before the end."""
        nodes = [self._nodes[place % len(self._nodes)] for place in range(self._setup.concurrency)]
        network, timeout_s = self._setup.network, self._setup.op_timeout_s
        return [
            *(Seat(AuditWorker(network, node, timeout_s), node) for node in nodes),
            *(Seat(VotersReader(network, node, timeout_s, FOLLOWED), node) for node in self._quorum),
        ]

    def main(self, time_ns: int) -> Generator:
        changes = OfSeats(self._changes, Ops(self._any, self._hear))
        return TimeLimit(time_ns, Stagger(self._setup.rate, changes, self._random_source))

    def final(self) -> Generator:
        """Also until all controllers have all: what a log lacks, nothing can be said of."""
        barrier = OfSeats(self._changes, UntilOk(self._create_barrier))
        views = OncePerNode(self._nodes, lambda turn: turn.invoke(DESCRIBE, final=True), self._shows_barrier)
        agreement = Agreement(self._quorum, FOLLOWED).phase()
        return Phases(TimeLimit(RECOVERY_NS, barrier), agreement, TimeLimit(RECOVERY_NS, views))

    def _changes(self, seat: int) -> bool:
        return seat < self._setup.concurrency

    def _any(self, turn: Turn) -> Op:
        at = self._random_source.randrange(100)
        if at < _DESCRIBES:
            return turn.invoke(DESCRIBE)
        if at < _DESCRIBES + _IMPOSSIBLE:
            return turn.invoke(CHANGE, self._new_topic() | {"replicas": IMPOSSIBLE_REPLICAS})
        return turn.invoke(CHANGE, self._change())

    def _change(self) -> dict[str, Any]:
        (kind,) = self._random_source.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))
        fitting = [topic for topic in self._free.values() if _fits(kind, topic)]
        if kind == CREATE or not fitting:
            value = self._new_topic()
            self._busy[value["topic"]] = Topic(value["topic"], value["partitions"])
            return value
        topic = self._random_source.choice(fitting)
        self._busy[topic.name] = self._free.pop(topic.name)
        return {"change": kind, "topic": topic.name} | self._details(kind, topic)

    def _details(self, kind: str, topic: Topic) -> dict[str, Any]:
        if kind == GROW:
            return {"partitions": topic.partitions + 1}
        if kind == SET:
            self._next_value += 1
            return {"key": self._random_source.choice(KEYS), "value": str(self._next_value)}
        return {"key": self._random_source.choice(sorted(topic.keys))} if kind == UNSET else {}

    def _new_topic(self) -> dict[str, Any]:
        self._next_topic += 1
        partitions = self._random_source.randint(1, _PARTITIONS_MAX)
        return {"change": CREATE, "topic": topic_name(self._next_topic), "partitions": partitions}

    def _hear(self, op: Op) -> None:
        if op.f != CHANGE or op.type is OpType.INVOKE:
            return
        topic = self._busy.pop(op.value["topic"], None)
        if topic is None or op.type is OpType.INFO or _never_was(op):
            return
        after = topic.changed(op.value) if op.type is OpType.OK else topic
        if after is not None:
            self._free[after.name] = after

    def _create_barrier(self, turn: Turn) -> Op:
        value = self._new_topic()
        self._barrier = value["topic"]
        return turn.invoke(CHANGE, value, final=True)

    def _shows_barrier(self, op: Op) -> bool:
        return op.type is OpType.OK and self._barrier in op.value["topics"]


def _fits(kind: str, topic: Topic) -> bool:
    return bool(topic.keys) if kind == UNSET else True


def _never_was(op: Op) -> bool:
    return op.type is OpType.FAIL and op.value["change"] == CREATE


KIND = WorkloadKind(
    name=NAME,
    about="topics and configs changed; the audit of the logs, made by Spark, tells what the clients were told",
    make=Audit,
    checkers=lambda judged: [AuditAgrees(judged.folder, judged.members)],
    writes=frozenset({CHANGE}),
    reads=frozenset({DESCRIBE}),
)
