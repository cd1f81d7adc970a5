"""The topics, by id and by name."""

from dataclasses import dataclass, field
from uuid import UUID

from immutables import Map

from metadata.image.partition_state import PartitionState
from metadata.image.partitions import PartitionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    name: str
    id: UUID
    partitions: PartitionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsImage:
    """Invariant: the three maps hold the same topics.

    `colliding_names` holds, under the name with each '.' made '_', the topics whose names have either: their metrics
    would share names, so two such topics may not exist together.
    """

    by_id: Map[UUID, TopicImage] = field(default_factory=Map)
    by_name: Map[str, TopicImage] = field(default_factory=Map)
    colliding_names: Map[str, frozenset[str]] = field(default_factory=Map)

    @property
    def is_empty(self) -> bool:
        return not self.by_id

    def partition(self, topic_id: UUID, partition_id: int) -> PartitionState | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def is_leading_any(self, broker_id: int) -> bool:
        return any(len(topic.partitions.led_by(broker_id)) for topic in self.by_id.values())

    def with_topic(self, topic: TopicImage) -> "TopicsImage":
        return TopicsImage(
            by_id=self.by_id.set(topic.id, topic),
            by_name=self.by_name.set(topic.name, topic),
            colliding_names=_with_name(self.colliding_names, topic.name),
        )

    def without_topic(self, topic: TopicImage) -> "TopicsImage":
        return TopicsImage(
            by_id=self.by_id.delete(topic.id),
            by_name=self.by_name.delete(topic.name),
            colliding_names=_without_name(self.colliding_names, topic.name),
        )


def has_collision_characters(name: str) -> bool:
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Equal for names which metrics cannot tell apart."""
    return name.replace(".", "_")


def _with_name(names: Map[str, frozenset[str]], name: str) -> Map[str, frozenset[str]]:
    if not has_collision_characters(name):
        return names
    key = collision_key(name)
    known = names.get(key, frozenset())
    return names if name in known else names.set(key, known | {name})


def _without_name(names: Map[str, frozenset[str]], name: str) -> Map[str, frozenset[str]]:
    if not has_collision_characters(name):
        return names
    key = collision_key(name)
    others = names[key] - {name}
    return names.set(key, others) if others else names.delete(key)
