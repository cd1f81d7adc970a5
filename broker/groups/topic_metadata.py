"""The topics as the coordinator of consumer groups looks at them: ids, names, partitions, and a hash of all that an
assignment depends on (rules G7.61 to G7.64)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

import xxhash

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicImage

_MAGIC: Final = b"\0"
_INT32: Final = struct.Struct("<i")
_INT64: Final = struct.Struct("<q")


class TopicMetadata:
    """As of the newest image. The hash of a topic is kept until the topic changes."""

    def __init__(self) -> None:
        self.image = MetadataImage.empty()
        self.newest_topics_version = -1
        """The offset of the newest image that brought new topics."""
        self._hashes: dict[str, int] = {}

    def begin(self, image: MetadataImage) -> None:
        self.image = image
        self._hashes.clear()
        self.newest_topics_version = self.version

    def change(self, delta: MetadataDelta, image: MetadataImage) -> set[str]:
        """The names of the topics that changed or are gone."""
        before: MetadataImage = delta.image
        changed = {
            topic.name
            for topic_id in delta.changed_topics
            if (topic := image.topics.by_id.get(topic_id)) is not None
        }
        changed |= {
            topic.name
            for topic_id in delta.deleted_topic_ids
            if (topic := self.image.topics.by_id.get(topic_id) or before.topics.by_id.get(topic_id))
            is not None
        }
        self.image = image
        for name in changed:
            self._hashes.pop(name, None)
        if delta.created_topic_ids or self.newest_topics_version < 0:
            self.newest_topics_version = self.version
        return changed

    @property
    def version(self) -> int:
        return self.image.provenance.last_contained_offset

    def id_of(self, name: str) -> UUID | None:
        found = self.image.topics.by_name.get(name)
        return None if found is None else found.id

    def name_of(self, topic_id: UUID) -> str | None:
        found = self.image.topics.by_id.get(topic_id)
        return None if found is None else found.name

    def ids_of(self, names: Iterable[str]) -> frozenset[UUID]:
        """Of those that exist."""
        by_name = self.image.topics.by_name
        return frozenset([found.id for name in names if (found := by_name.get(name)) is not None])

    def partition_count(self, topic_id: UUID) -> int:
        return len(self.image.topics.by_id[topic_id].partitions)

    def hash_of(self, names: Collection[str]) -> int:
        """Of a group that reads these topics; 0 if none of them exists."""
        hashes = [
            _INT64.pack(self._hash_of(topic))
            for name in sorted(names, key=_java_order)
            if (topic := self.image.topics.by_name.get(name)) is not None
        ]
        return _xxh3(b"".join(hashes)) if hashes else 0

    def _hash_of(self, topic: TopicImage) -> int:
        found = self._hashes.get(topic.name)
        if found is None:
            brokers = self.image.cluster.brokers
            racks = {
                broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None
            }
            found = self._hashes[topic.name] = topic_hash(topic, racks)
        return found


def topic_hash(topic: TopicImage, racks: Mapping[int, str]) -> int:
    """As Kafka computes it (KIP-1101), an XXH3 of 64 bits, signed. `racks` by broker id."""
    count = len(topic.partitions)
    number = topic.id.int
    parts = [
        _MAGIC,
        struct.pack("<QQ", number >> 64, number & (1 << 64) - 1),
        _string(topic.name),
        _INT32.pack(count),
    ]
    for index in range(count):
        parts.append(_INT32.pack(index))
        if not racks:
            continue
        partition = topic.partitions.get(index)
        if partition is None:
            continue
        of_replicas = [racks[replica] for replica in partition.replicas if replica in racks]
        for rack in sorted(of_replicas, key=_java_order):
            text = _string(rack)
            parts += [text[-_INT32.size :], text]
    return _xxh3(b"".join(parts))


def _string(text: str) -> bytes:
    """The UTF-16 code units, and behind them their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT32.pack(len(units) // 2)


def _java_order(text: str) -> bytes:
    """The order of Java's strings: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _xxh3(data: bytes) -> int:
    found: int = xxhash.xxh3_64_intdigest(data)
    return found - (1 << 64) if found >= 1 << 63 else found
