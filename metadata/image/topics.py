"""The topics, by id and by name."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from immutables import Map

from metadata.image.partition_columns import Column
from metadata.image.partition_state import NO_LEADER, PartitionState
from metadata.image.partitions import PartitionTable

_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    name: str
    id: UUID
    partitions: PartitionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsImage:
    """Invariant: the first three maps hold the same topics. What follows from `by_id` is not compared.

    `led_counts` says of how many partitions a broker is the leader; brokers that lead none are not in it.
    `colliding_names` holds, under the name with each '.' made '_', the topics whose names have either: their metrics
    would share names, so two such topics may not exist together.
    """

    by_id: Map[UUID, TopicImage] = field(default_factory=Map)
    by_name: Map[str, TopicImage] = field(default_factory=Map, compare=False)
    colliding_names: Map[str, frozenset[str]] = field(default_factory=Map, compare=False)
    led_counts: Map[int, int] = field(default_factory=Map, compare=False)

    @property
    def is_empty(self) -> bool:
        return not self.by_id

    def partition(self, topic_id: UUID, partition_id: int) -> PartitionState | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def is_leading_any(self, broker_id: int) -> bool:
        return broker_id in self.led_counts

    def with_topic(self, topic: TopicImage) -> "TopicsImage":
        """With a topic that is new."""
        return TopicsImage(
            by_id=self.by_id.set(topic.id, topic),
            by_name=self.by_name.set(topic.name, topic),
            colliding_names=_with_name(self.colliding_names, topic.name),
            led_counts=_counted(self.led_counts, [(None, topic.partitions)]),
        )

    def with_partitions(self, topics: Collection[TopicImage]) -> "TopicsImage":
        """With topics in place of those of the same ids and names."""
        if not topics:
            return self
        tables = [(self.by_id[topic.id].partitions, topic.partitions) for topic in topics]
        by_id, by_name = self.by_id.mutate(), self.by_name.mutate()
        for topic in topics:
            by_id[topic.id] = topic
            by_name[topic.name] = topic
        return TopicsImage(
            by_id=by_id.finish(),
            by_name=by_name.finish(),
            colliding_names=self.colliding_names,
            led_counts=_counted(self.led_counts, tables),
        )

    def without_topic(self, topic: TopicImage) -> "TopicsImage":
        return TopicsImage(
            by_id=self.by_id.delete(topic.id),
            by_name=self.by_name.delete(topic.name),
            colliding_names=_without_name(self.colliding_names, topic.name),
            led_counts=_counted(self.led_counts, [(topic.partitions, None)]),
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


def _counted(
    counts: Map[int, int], tables: Sequence[tuple[PartitionTable | None, PartitionTable | None]]
) -> Map[int, int]:
    """The counts of leaders after tables gave way to others."""
    before = [old.leaders for old, _ in tables if old is not None]
    after = [new.leaders for _, new in tables if new is not None]
    changes = _count_of(after)
    changes.subtract(_count_of(before))
    for broker_id, change in changes.items():
        count = counts.get(broker_id, 0) + change
        if change and broker_id != NO_LEADER:
            counts = counts.set(broker_id, count) if count else counts.delete(broker_id)
    return counts


def _count_of(columns: Sequence[Column]) -> Counter[int]:
    """How often each number is in the columns."""
    if sum(map(len, columns)) <= _FEW:
        # np.unique costs as much as some hundred numbers, and most changes are of some partitions.
        return Counter(number for column in columns for number in column.tolist())
    numbers, counts = np.unique(np.concatenate(columns), return_counts=True)
    return Counter(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
