"""Requests of any API and version with random fields: plausible ones, so that they get far, and hostile ones.

Values come from kio's schema by type, and from the state of a cluster by name: ids of what there is, epochs that are
right, and what is next to them. Each went over the wire once, so nothing is sent that no peer could send.
"""

from dataclasses import fields, is_dataclass
from random import Random
from types import NoneType
from typing import Any, get_args
from uuid import UUID

from kquorum.metadata.delegation_tokens import token_hmac
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.kio.classes import request_class
from tests.support.kio.codec import decode, encode
from tests.support.kio.entities import build
from tests.support.plausible_values import CHOICES, LISTS, SELDOM, TEXTS, Subject

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class HostileRequests:
    def __init__(self, seed: int, cluster_id: str, secret_key: str) -> None:
        self.random = Random(seed)
        self._cluster_id = cluster_id
        self._secret_key = secret_key
        self._hostility = 0.1
        self._incarnations = 0

    def request(self, api_key: ApiKey, version: int, image: MetadataImage) -> Any:
        """A body as it is decoded."""
        self._hostility = self.random.choice((0.0, 0.03, 0.1, 0.5))
        cls: Any = request_class(api_key, version)
        entity = self._struct(cls, self._subject(image), "", 0)
        return decode(cls, encode(entity))[0]

    def _subject(self, image: MetadataImage) -> Subject:
        random = self.random
        brokers = tuple(image.cluster.brokers)
        broker_id = random.choice((*brokers, random.choice((*range(1, 7), -1))))
        broker = image.cluster.brokers.get(broker_id)
        topics = list(image.topics.by_id.values())
        topic = random.choice(topics) if topics else None
        partition_id = 0 if topic is None else random.randrange(len(topic.partitions))
        partition = None if topic is None else topic.partitions.get(partition_id)
        if partition is not None and partition.leader in image.cluster.brokers and random.random() < 0.5:
            broker_id, broker = partition.leader, image.cluster.brokers[partition.leader]
        tokens = list(image.security.delegation_tokens)
        self._incarnations += 1
        new = UUID(int=10**6 + self._incarnations)
        return Subject(
            broker_id=broker_id,
            broker_epoch=-1 if broker is None else broker.epoch,
            incarnation_id=new if broker is None or random.random() < 0.5 else broker.incarnation_id,
            log_dirs=(UUID(int=10_000 + broker_id),) if broker is None else broker.log_dirs,
            partition_id=partition_id,
            partition=partition,
            topic_id=UUID(int=7) if topic is None else topic.id,
            topic_name="t0" if topic is None else topic.name,
            hmac=token_hmac(self._secret_key, random.choice(tokens)) if tokens else b"",
            brokers=brokers,
        )

    def _struct(self, cls: Any, subject: Subject, within: str, depth: int) -> Any:
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
        if name in LISTS and self._is_plausible():
            listed = LISTS[name](self.random, subject)
            if listed is not None:
                return tuple(self._member(parts[0], each) for each in listed)
        members = [
            self._field(name, parts[0], kafka_type, subject, within, depth)
            for _ in range(self._length(name, depth))
        ]
        if members and not self._is_plausible():
            members.append(members[0])
        return tuple(members)

    def _member(self, cls: Any, value: Any) -> Any:
        if not is_dataclass(cls) or not isinstance(cls, type):
            return value
        if not isinstance(value, str):
            return build(cls, {"broker_id": value, "broker_epoch": -1})
        low = 0 if value == "group.version" else 1
        return build(cls, {"name": value, "min_supported_version": low, "max_supported_version": 30})

    def _length(self, name: str, depth: int) -> int:
        if name in SELDOM and self.random.random() < 0.7:
            return 0
        if self.random.random() < self._hostility / 20:
            return 300 if depth < 2 else 40
        return self.random.choice((0, 1, 1, 1, 2, 2, 3))

    def _is_plausible(self) -> bool:
        return self.random.random() >= self._hostility

    def _scalar(self, name: str, kafka_type: str, subject: Subject, within: str) -> Any:
        if self._is_plausible():
            value = self._plausible(name, subject, within)
            if value is not None:
                return value
        return self._of_type(kafka_type)

    def _plausible(self, name: str, subject: Subject, within: str) -> Any:
        """None if nothing is known of a field but its type."""
        if name == "cluster_id":
            return self._cluster_id
        choose = CHOICES.get((within, name)) or CHOICES.get(name)
        return None if choose is None else choose(self.random, subject)

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
                return random.choice((*TEXTS, "x" * 249, "x" * 250, "x" * 30_000, "\U0001f600"))
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
