"""Values that requests to a controller may well have, by the names of the fields."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

TEXTS = (
    *("t4", "t5", "t6", "t7"),
    "",
    " ",
    "a",
    "t0",
    "t1",
    "t2",
    "t.3",
    "t_3",
    ".",
    "..",
    "__cluster_metadata",
    "__consumer_offsets",
    "é\u0000/",
)
_WORDS: dict[str, tuple[str, ...]] = {
    "entity_type": ("user", "client-id", "ip", "user", "client-id", ""),
    "entity_name": ("alice", "bob", "", "10.0.0.1", "::1", "no address"),
    "match": ("alice", "bob", "10.0.0.1"),
    "key": (
        "producer_byte_rate",
        "request_percentage",
        "connection_creation_rate",
        "controller_mutation_rate",
    ),
    "feature": (
        *("metadata.version", "kraft.version", "group.version", "transaction.version"),
        *("eligible.leader.replicas.version", "share.version", "streams.version", "no.such", ""),
    ),
    "principal": ("User:alice", "User:*", "Group:x", "alice", ""),
    "principal_type": ("User", "Group", ""),
    "host": ("*", "10.0.0.1", ""),
    "value": ("1", "2", "-1", "true", "no number", "1,2", "compact,delete", ""),
}
_CONFIG_KEYS = (
    *("min.insync.replicas", "unclean.leader.election.enable", "retention.ms", "cleanup.policy"),
    *(
        "log.cleanup.policy",
        "max.connections",
        "listeners",
        "metrics",
        "consumer.session.timeout.ms",
        "no.such",
        "",
    ),
)
_RESOURCE_NAMES = ("", "1", "2", "-1", "99", "t0", "t1", "t2", "alice", "kafka-cluster")


@dataclass(slots=True)
class Subject:
    """What one request is mostly about."""

    broker_id: int
    broker_epoch: int
    incarnation_id: UUID
    log_dirs: tuple[UUID, ...]
    partition_id: int
    partition: Any
    topic_id: UUID
    topic_name: str
    hmac: bytes
    brokers: tuple[int, ...]


_Choose = Callable[[Random, Subject], Any]


def _one_of(*values: Any) -> _Choose:
    return lambda random, _subject: random.choice(values)


def _of_subject(name: str) -> _Choose:
    return lambda _random, subject: getattr(subject, name)


def _near_epoch(name: str) -> _Choose:
    """The right one mostly, and those next to it; None if the subject has no partition."""

    def choose(random: Random, subject: Subject) -> int | None:
        if subject.partition is None:
            return None
        return int(getattr(subject.partition, name)) + random.choice((0, 0, 0, 0, 1, -1))

    return choose


def _partition_id(random: Random, subject: Subject) -> int:
    return random.choice((subject.partition_id, subject.partition_id, subject.partition_id, 0, 1, 2))


def _replicas(random: Random, subject: Subject) -> tuple[int, ...]:
    return tuple(random.sample(subject.brokers, random.randint(0, min(3, len(subject.brokers)))))


def _in_sync(random: Random, subject: Subject) -> tuple[int, ...] | None:
    """The leader, if there is one, and any of the other replicas."""
    if subject.partition is None:
        return None
    leader, replicas = subject.partition.leader, subject.partition.replicas
    members = [each for each in replicas if each == leader or random.random() < 0.6]
    return tuple(random.sample(members, len(members)))


def _own_directories(random: Random, subject: Subject) -> tuple[UUID, ...]:
    return subject.log_dirs if random.random() < 0.1 else ()


def _topic(random: Random, subject: Subject) -> str:
    return random.choice((subject.topic_name, *TEXTS))


# What goes with a few topics only: what makes a topic invalid makes it one that is not made.
SELDOM = frozenset(("assignments", "configs"))
_RARELY = _one_of(*[False] * 9, True)
_RESOURCE = _one_of(*_RESOURCE_NAMES)
_USER = _one_of("alice", "bob")
_CONFIG = _one_of(*_CONFIG_KEYS)
_SMALL_ENUMS = (
    *("config_operation", "election_type", "match_type", "mechanism", "operation"),
    *("pattern_type_filter", "permission_type", "resource_pattern_type", "resource_type", "upgrade_type"),
    *("resource_type_filter", "resource_types"),
)

# By the name of a field, or by the name of the field that its struct is in and its own.
CHOICES: dict[str | tuple[str, str], _Choose] = {
    **{name: _one_of(*words) for name, words in _WORDS.items()},
    **{name: _one_of(*range(6)) for name in _SMALL_ENUMS},
    **{name: _of_subject(name) for name in ("broker_id", "broker_epoch", "incarnation_id", "topic_id")},
    **{name: _near_epoch(name) for name in ("leader_epoch", "partition_epoch")},
    **dict.fromkeys(("partition_index", "partitions", "partition_indexes"), _partition_id),
    **dict.fromkeys(("want_fence", "want_shut_down"), _RARELY),
    **dict.fromkeys(("is_migrating_zk_broker", "zk_migration_ready"), _RARELY),
    **{name: _one_of(-1, 1, 2, 3, 10) for name in ("num_partitions", "count")},
    **dict.fromkeys(("resource_name", "resource_name_filter"), _RESOURCE),
    **{(within, "topic"): _topic for within in ("topics", "topic_partitions")},
    **{(within, "name"): _topic for within in ("topics", "topic_partitions")},
    "topic_names": _topic,
    **{(within, "name"): _CONFIG for within in ("configs", "resources")},
    "configuration_keys": _CONFIG,
    "leader_recovery_state": _one_of(0, 0, 0, 0, 1, 2),
    ("new_isr_with_epochs", "broker_epoch"): lambda random, subject: random.choice(
        (-1, -1, subject.broker_epoch)
    ),
    "previous_broker_epoch": lambda random, subject: random.choice((subject.broker_epoch, -1)),
    "current_metadata_offset": _one_of(1 << 40, 1 << 40, 0),
    "timeout": _one_of(*[1000] * 10, 0, -1),
    "replication_factor": _one_of(-1, 1, 2, 3),
    "iterations": _one_of(4096, 8192, 4095, 16385),
    "max_version_level": _one_of(0, 1, 2, 20, 25, 26, 29, 30),
    **dict.fromkeys((("deletions", "name"), ("upsertions", "name"), ("users", "name")), _USER),
    "salted_password": _one_of(b"s" * 32, b"s" * 64),
    "salt": _one_of(b"salt"),
    "hmac": _of_subject("hmac"),
    ("directories", "id_"): lambda random, subject: random.choice((*subject.log_dirs, UUID(int=100))),
    ("ops", "value"): _one_of(1.0, 0.5, 1e6, 2.0**62),
    ("listeners", "host"): _one_of("b1"),
    "port": _one_of(9092),
    "security_protocol": _one_of(0),
}

# Whole lists, of scalars or of the field that their structs are known by.
LISTS: dict[str, _Choose] = {
    "log_dirs": _of_subject("log_dirs"),
    "offline_log_dirs": _own_directories,
    "features": _one_of(("metadata.version", "group.version")),
    **dict.fromkeys(("replicas", "broker_ids"), _replicas),
    **dict.fromkeys(("new_isr", "new_isr_with_epochs"), _in_sync),
}
