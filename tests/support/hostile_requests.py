"""Requests of any API and version with random fields: plausible ones, so that they get far, and hostile ones.

Values come from kio's schema by type, and from the state of a cluster by name: ids of what there is, epochs that are
right, and what is next to them. Each went over the wire once, so nothing is sent that no peer could send.
"""

from dataclasses import dataclass, fields, is_dataclass
from random import Random
from types import NoneType
from typing import Any, get_args
from uuid import UUID

from metadata.image.image import MetadataImage
from wire.codec import decode, encode
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import request_class, supported_versions
from wire.protocol.entities import build

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = (
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
_SMALL_ENUMS = frozenset(
    (
        *(
            "config_operation",
            "election_type",
            "leader_recovery_state",
            "match_type",
            "mechanism",
            "operation",
        ),
        *("pattern_type_filter", "permission_type", "resource_pattern_type", "resource_type", "upgrade_type"),
        *("resource_type_filter", "security_protocol", "resource_types"),
    )
)


@dataclass(slots=True)
class _Subject:
    """What one request is mostly about."""

    broker_id: int
    broker_epoch: int
    incarnation_id: UUID
    log_dirs: tuple[UUID, ...]
    partition: Any
    topic_id: UUID
    topic_name: str


class HostileRequests:
    def __init__(self, seed: int, cluster_id: str) -> None:
        self.random = Random(seed)
        self._cluster_id = cluster_id
        self._hostility = 0.1
        self._incarnations = 0

    def request(self, api_key: ApiKey, image: MetadataImage) -> tuple[int, Any]:
        """A version, and a body as it is decoded."""
        self._hostility = self.random.choice((0.0, 0.03, 0.1, 0.5))
        version = self.random.randint(*supported_versions(api_key))
        cls: Any = request_class(api_key, version)
        entity = self._struct(cls, self._subject(image), "", 0)
        return version, decode(cls, encode(entity))[0]

    def _subject(self, image: MetadataImage) -> _Subject:
        random = self.random
        broker_id = random.choice([*image.cluster.brokers, random.randint(1, 6)])
        broker = image.cluster.brokers.get(broker_id)
        topics = list(image.topics.by_id.values())
        topic = random.choice(topics) if topics else None
        partition = None if topic is None else topic.partitions.get(random.randrange(len(topic.partitions)))
        if partition is not None and partition.leader in image.cluster.brokers and random.random() < 0.5:
            broker_id, broker = partition.leader, image.cluster.brokers[partition.leader]
        self._incarnations += 1
        new = UUID(int=10**6 + self._incarnations)
        return _Subject(
            broker_id=broker_id,
            broker_epoch=-1 if broker is None else broker.epoch,
            incarnation_id=new if broker is None or random.random() < 0.5 else broker.incarnation_id,
            log_dirs=(UUID(int=10_000 + broker_id),) if broker is None else broker.log_dirs,
            partition=partition,
            topic_id=UUID(int=7) if topic is None else topic.id,
            topic_name="t0" if topic is None else topic.name,
        )

    def _struct(self, cls: Any, subject: _Subject, within: str, depth: int) -> Any:
        values = {
            field.name: self._field(
                field.name, field.type, field.metadata.get("kafka_type"), subject, within, depth
            )
            for field in fields(cls)
        }
        return build(cls, values)

    def _field(
        self, name: str, annotation: Any, kafka_type: str | None, subject: Any, within: str, depth: int
    ) -> Any:
        parts = get_args(annotation)
        if NoneType in parts:
            if self.random.random() < 0.2:
                return None
            (annotation,) = (part for part in parts if part is not NoneType)
            parts = get_args(annotation)
        if Ellipsis not in parts:
            if is_dataclass(annotation):
                return self._struct(annotation, subject, name, depth + 1)
            return self._scalar(name, kafka_type or "", subject, within)
        if name in ("log_dirs", "offline_log_dirs") and self._is_plausible():
            return subject.log_dirs if name == "log_dirs" or self.random.random() < 0.1 else ()
        if name == "features" and self._is_plausible():
            return tuple(
                self._known_feature(parts[0], each) for each in ("metadata.version", "group.version")
            )
        members = [
            self._field(name, parts[0], kafka_type, subject, within, depth)
            for _ in range(self._length(depth))
        ]
        if members and not self._is_plausible():
            members.append(members[0])
        return tuple(members)

    def _known_feature(self, cls: Any, name: str) -> Any:
        return build(
            cls,
            {"name": name, "min_supported_version": 0 if "group" in name else 1, "max_supported_version": 30},
        )

    def _length(self, depth: int) -> int:
        if self.random.random() < self._hostility / 20:
            return 300 if depth < 2 else 40
        return self.random.choice((0, 1, 1, 1, 2, 2, 3))

    def _is_plausible(self) -> bool:
        return self.random.random() >= self._hostility

    def _scalar(self, name: str, kafka_type: str, subject: _Subject, within: str) -> Any:
        if self._is_plausible():
            value = self._plausible(name, subject, within)
            if value is not None:
                return value
        return self._of_type(kafka_type)

    def _plausible(self, name: str, subject: _Subject, within: str) -> Any:  # noqa: PLR0911 - a table by name
        random, partition = self.random, subject.partition
        match name:
            case "broker_id" if within in ("new_isr_with_epochs",):
                return random.choice((*range(1, 5), subject.broker_id))
            case "new_isr" | "broker_ids" | "replicas" | "broker_ids":
                return random.randint(1, 5)
            case "broker_id":
                return subject.broker_id
            case "broker_epoch" if within in ("new_isr_with_epochs",):
                return random.choice((-1, -1, subject.broker_epoch))
            case "broker_epoch":
                return subject.broker_epoch
            case "previous_broker_epoch":
                return random.choice((subject.broker_epoch, -1))
            case "incarnation_id":
                return subject.incarnation_id
            case "cluster_id":
                return self._cluster_id
            case "topic_id":
                return subject.topic_id
            case "leader_epoch" | "partition_epoch" if partition is not None:
                return getattr(partition, name) + random.choice((0, 0, 0, 0, 1, -1))
            case "partition_index" | "partitions":
                return random.choice((0, 0, 1, 2))
            case "current_metadata_offset":
                return random.choice((1 << 40, 1 << 40, 0))
            case "want_fence" | "want_shut_down" | "is_migrating_zk_broker" | "zk_migration_ready":
                return random.random() < 0.1
            case "timeout":
                return random.choice((1000, 1000, 0, -1))
            case "num_partitions" | "count":
                return random.choice((-1, 1, 2, 3, 10))
            case "replication_factor":
                return random.choice((-1, 1, 2, 3))
            case "iterations":
                return random.choice((4096, 8192, 4095, 16385))
            case "max_version_level":
                return random.choice((0, 1, 2, 20, 25, 26, 29, 30))
            case "resource_name" | "resource_name_filter":
                return random.choice(_RESOURCE_NAMES)
            case "topic" | "name" if within in ("topics", "topic_partitions", "topic_names"):
                return random.choice((subject.topic_name, *_TEXTS))
            case "name" | "configuration_keys" if within in ("configs", "resources"):
                return random.choice(_CONFIG_KEYS)
            case "value" if within == "ops":
                return random.choice((1.0, 0.5, 1e6, 2.0**62))
            case "port":
                return 9092
            case "security_protocol":
                return 0
            case _ if name in _SMALL_ENUMS:
                return random.randint(0, 5)
            case _ if name in _WORDS:
                return random.choice(_WORDS[name])
        return None

    def _of_type(self, kafka_type: str) -> Any:
        random = self.random
        if kafka_type in _BITS:
            top = 1 << (_BITS[kafka_type] - 1)
            return random.choice((0, 1, -1, -2, 2, top - 1, -top, random.randrange(-top, top)))
        match kafka_type:
            case "uint16":
                return random.choice((0, 1, 65535))
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice(
                    (0.0, -0.0, -1.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7e308, 1.5)
                )
            case "string":
                return random.choice((*_TEXTS, "x" * 249, "x" * 250, "x" * 30_000, "\U0001f600"))
            case "bytes":
                return random.choice((b"", b"\0", b"s" * 32, b"x" * 10_000))
            case "uuid":
                return UUID(int=random.choice((0, 1, 2, 3, 99, 100, 10_001, 1 << 127)))
            case "timedelta_i32":
                return random.choice((0, -1, 1, -(1 << 31), (1 << 31) - 1))
            case "timedelta_i64":
                # The most that Python's durations hold; a longer one does not decode.
                return random.choice(
                    (0, -1, 1, 10**15, -(10**15), 86_399_999_999_999_999, -86_399_999_913_600_000)
                )
        raise AssertionError(f"no values for a field of type {kafka_type!r}")
