"""The model's state: objects in dicts. Everything is changed in place; a copy is a deep one."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

NO_BROKER = -1
# Directories are numbers here; these two stand for "not known", of an old broker and of one with several.
MIGRATING, UNASSIGNED = 0, 1
DIRECTORIES_FROM = 17

# What a record says, without what is drawn at random (ids), so that it can be compared.
Record = tuple[Any, ...]


class Refused(Exception):
    """The name of Kafka's error code; what was decided before may stand nevertheless."""

    def __init__(self, code: str, *, is_written: bool = False) -> None:
        self.code = code
        self.is_written = is_written
        super().__init__(code)


@dataclass
class Broker:
    """`contact_ms`, `read_offset` and `shutdown_offset` are what only the active controller knows."""

    id: int
    epoch: int
    incarnation: int
    registered_at: int
    fenced: bool = True
    leaving: bool = False
    directories: list[int] = field(default_factory=list)
    contact_ms: int = 0
    read_offset: int = -1
    shutdown_offset: int | None = None

    @property
    def is_active(self) -> bool:
        """By what the log says."""
        return not self.fenced and not self.leaving

    @property
    def is_going(self) -> bool:
        """In controlled shutdown; below level 7 only the active controller knows."""
        return self.leaving or self.shutdown_offset is not None


@dataclass
class Partition:
    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    eligible: set[int] = field(default_factory=set)
    last_known: list[int] = field(default_factory=list)
    is_recovering: bool = False
    directories: list[int] = field(default_factory=list)


@dataclass
class Topic:
    name: str
    partitions: list[Partition]


@dataclass
class Cluster:
    """`configs` are of topics by name and of all brokers by ""; `log` is what was decided and not compared yet;
    `election_due_ms` is when partitions without a leader are looked at the next time. Where more partitions than
    `changes_at_once` are to change with a broker's fence, that comes first."""

    level: int
    has_elr: bool
    session_ms: int
    now_ms: int
    election_due_ms: int
    changes_at_once: int
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: list[Record] = field(default_factory=list)

    def copy(self) -> "Cluster":
        return deepcopy(self)

    def active(self) -> set[int]:
        return {broker.id for broker in self.brokers.values() if broker.is_active}

    def going(self) -> set[int]:
        return {broker.id for broker in self.brokers.values() if broker.is_going}

    def has_session(self, broker_id: int) -> bool:
        return self.now_ms <= self.brokers[broker_id].contact_ms + self.session_ms

    def default_directory(self, broker_id: int) -> int:
        known = self.brokers[broker_id].directories if broker_id in self.brokers else []
        if not known:
            return MIGRATING
        return known[0] if len(known) == 1 else UNASSIGNED

    def is_online(self, part: Partition, broker_id: int) -> bool:
        """Whether its replica lies in a directory that the broker still has."""
        where = dict(zip(part.replicas, part.directories, strict=True)).get(broker_id, MIGRATING)
        known = self.brokers[broker_id].directories
        return where in (MIGRATING, UNASSIGNED) or not known or where in known

    def allows_unclean(self, topic: str) -> bool:
        return self.config(topic, "unclean.leader.election.enable") == "true"

    def min_isr(self, topic: str) -> int:
        return int(self.config(topic, "min.insync.replicas") or 1)

    def config(self, topic: str, key: str) -> str | None:
        own = self.configs.get(topic, {}).get(key)
        return own if own is not None else self.configs.get("", {}).get(key)

    def leads_any(self, broker_id: int) -> bool:
        return any(part.leader == broker_id for _, _, part in self.places())

    def places(self) -> list[tuple[str, int, Partition]]:
        return [
            (name, index, part)
            for name, topic in self.topics.items()
            for index, part in enumerate(topic.partitions)
        ]

    def partition(self, topic: str, index: int) -> Partition:
        """Raises Refused."""
        if topic not in self.topics or not 0 <= index < len(self.topics[topic].partitions):
            raise Refused("unknown_topic_or_partition")
        return self.topics[topic].partitions[index]

    def broker(self, broker_id: int, epoch: int) -> Broker:
        """Raises Refused."""
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise Refused("stale_broker_epoch")
        return broker
