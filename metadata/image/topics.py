"""The topics, by id and by name, and how records change them and their partitions.

The delta collects changed partitions per topic (`_pending`) and puts them into the topic's table once, when it is
applied (`_settle`): so a thousand changes to a table cost one copy of its columns. Only very many pending partitions
are put into their tables earlier.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

import numpy as np
from immutables import Map

from kquorum.metadata.image.errors import CannotReplayError
from kquorum.metadata.image.partition_changes import PartitionChanges, stretches, tables_after
from kquorum.metadata.image.partition_state import (
    NO_LEADER,
    PartitionState,
    partition_after_change,
    partition_from_record,
)
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS, Column, PartitionTable, table_of
from kquorum.wire.codegen.kinds import uuid_of
from kquorum.wire.metadata_records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.uuids import uuid_to_text

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
    `partition_count` is of all topics together.
    `colliding_names` holds, under the name with each '.' made '_', the topics whose names have either: their metrics
    would share names, so two such topics may not exist together.
    """

    by_id: Map[UUID, TopicImage] = field(default_factory=Map)
    by_name: Map[str, TopicImage] = field(default_factory=Map, compare=False)
    colliding_names: Map[str, frozenset[str]] = field(default_factory=Map, compare=False)
    led_counts: Map[int, int] = field(default_factory=Map, compare=False)
    partition_count: int = field(default=0, compare=False)

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
            partition_count=self.partition_count + len(topic.partitions),
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
            partition_count=self.partition_count + sum(len(new) - len(old) for old, new in tables),
        )

    def without_topic(self, topic: TopicImage) -> "TopicsImage":
        return TopicsImage(
            by_id=self.by_id.delete(topic.id),
            by_name=self.by_name.delete(topic.name),
            colliding_names=_without_name(self.colliding_names, topic.name),
            led_counts=_counted(self.led_counts, [(topic.partitions, None)]),
            partition_count=self.partition_count - len(topic.partitions),
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


# The most pending partitions of a delta. Each takes half a kilobyte beside the image.
MOST_PENDING: Final = 1 << 16
# Where records are replayed in slices, so many pending partitions are put into their tables before more are replayed:
# it takes about twenty milliseconds.
MUCH_PENDING: Final = 1 << 13


class TopicsDelta:
    """`_pending` are partitions whose new state is not in `_image` yet; `_settled` the ids of those that are in it."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._pending: dict[UUID, dict[int, PartitionState]] = {}
        self._pending_count = 0  # partitions, and a topic counts as one
        self._settled: dict[UUID, list[Column]] = {}
        self.created_topic_ids: set[UUID] = set()
        self.deleted_topic_ids: set[UUID] = set()

    @property
    def changed_topics(self) -> Mapping[UUID, Collection[int]]:
        """For each topic with a changed or new partition (or newly made), these partitions' ids, each once."""
        changed: dict[UUID, Collection[int]] = {}
        for topic_id in self._settled.keys() | self._pending.keys():
            settled, pending = self._settled.get(topic_id), self._pending.get(topic_id, {})
            if settled:
                ids = np.concatenate([*settled, np.array(list(pending), dtype=np.int32)])
                changed[topic_id] = np.unique(ids).tolist()
            else:
                changed[topic_id] = pending.keys()
        return changed

    def settled_ids(self) -> Iterator[tuple[UUID, Column]]:
        """What `changed_topics` says, once all is applied: the ids ascend."""
        assert not self._pending, "the delta is applied first"
        for topic_id, columns in self._settled.items():
            yield topic_id, columns[0] if len(columns) == 1 else np.unique(np.concatenate(columns))

    def has_topic(self, topic_id: UUID) -> bool:
        return topic_id in self._image.by_id

    def replay_topic(self, record: TopicRecord) -> None:
        if record.topic_id in self._image.by_id:
            raise CannotReplayError(f"topic id {uuid_to_text(record.topic_id)} exists already")
        if record.name in self._image.by_name:
            raise CannotReplayError(f"topic '{record.name}' exists already")
        topic = TopicImage(name=record.name, id=record.topic_id, partitions=EMPTY_PARTITIONS)
        self._image = self._image.with_topic(topic)
        self._pending[topic.id] = {}
        self._pending_count += 1
        self.created_topic_ids.add(topic.id)

    def replay_partition(self, record: PartitionRecord) -> None:
        self._topic(record.topic_id)
        self._put(record.topic_id, record.partition_id, partition_from_record(record))

    def replay_partitions(self, tables: Sequence[tuple[UUID, PartitionTable]]) -> None:
        """Replay these rows as if each were a PartitionRecord. The topics exist; a topic may be in several tables."""
        topic_ids = dict.fromkeys(topic_id for topic_id, _ in tables)
        self._settle([topic_id for topic_id in topic_ids if topic_id in self._pending])
        self._settle_rows(tables)

    def replay_changes(self, changes: PartitionChanges) -> bool:
        """Replay these changes as if each were a PartitionChangeRecord. Returns False, and does nothing, if a topic or
        a partition does not exist or a partition comes twice: then the caller must replay them one by one."""
        numbers: dict[UUID, int] = {}
        table_numbers = np.empty(len(changes), dtype=np.intp)
        for start, stop in stretches(changes.topic_ids):
            topic_id = uuid_of(changes.topic_ids[start].tobytes())
            table_numbers[start:stop] = numbers.setdefault(topic_id, len(numbers))
        if any(topic_id not in self._image.by_id for topic_id in numbers):
            return False
        self._settle([topic_id for topic_id in numbers if topic_id in self._pending])
        topics = [self._image.by_id[topic_id] for topic_id in numbers]
        tables = tables_after([topic.partitions for topic in topics], table_numbers, changes)
        if tables is None:
            return False
        self._image = self._image.with_partitions(
            [
                TopicImage(name=topic.name, id=topic.id, partitions=table)
                for topic, table in zip(topics, tables, strict=True)
            ]
        )
        for start, stop in stretches(changes.topic_ids):
            topic_id = uuid_of(changes.topic_ids[start].tobytes())
            self._settled.setdefault(topic_id, []).append(_ascending(changes.partition_ids[start:stop]))
        return True

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        state = self._partition(self._topic(record.topic_id), record.partition_id)
        self._put(record.topic_id, record.partition_id, partition_after_change(state, record))

    def replay_remove_topic(self, record: RemoveTopicRecord) -> TopicImage:
        """Returns the removed topic. A topic that this same delta created does not count as deleted: no image has
        it."""
        topic = self._topic(record.topic_id)
        self._image = self._image.without_topic(topic)
        self._take_pending(topic.id)
        self._settled.pop(topic.id, None)
        if topic.id in self.created_topic_ids:
            self.created_topic_ids.remove(topic.id)
        else:
            self.deleted_topic_ids.add(topic.id)
        return topic

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """The empty name stands for every topic."""
        for topic in self._named(record.topic_name):
            cleared = {
                partition_id: replace(
                    state, elr=(), last_known_elr=(), partition_epoch=state.partition_epoch + 1
                )
                for partition_id, state in self._with_elr(topic)
            }
            for partition_id, state in cleared.items():
                self._put(topic.id, partition_id, state)

    def become(self, target: TopicsImage) -> None:
        """Lead to `target`, starting from the image that this delta was made for (nothing replayed yet)."""
        current = self._image
        self.created_topic_ids = {topic_id for topic_id in target.by_id if topic_id not in current.by_id}
        self.deleted_topic_ids = {topic_id for topic_id in current.by_id if topic_id not in target.by_id}
        for topic_id, topic in target.by_id.items():
            known = current.by_id.get(topic_id)
            if known is topic:
                continue
            old = EMPTY_PARTITIONS if known is None else known.partitions
            changed = topic.partitions.ids_not_in(old)
            if known is None or len(changed):
                self._settled[topic_id] = [changed]
        self._image = target

    def apply(self) -> TopicsImage:
        self._settle(list(self._pending))
        return self._image

    def settle_some(self, most: int) -> bool:
        """Put what is pending for some topics into their tables, until so many partitions are in; whether more is
        pending then. All of them together cost one image of the topics."""
        topic_ids: list[UUID] = []
        count = 0
        for topic_id, pending in self._pending.items():
            if count >= most:
                break
            topic_ids.append(topic_id)
            count += 1 + len(pending)
        self._settle(topic_ids)
        return bool(self._pending)

    @property
    def has_much_pending(self) -> bool:
        return self._pending_count >= MUCH_PENDING

    def _put(self, topic_id: UUID, partition_id: int, state: PartitionState) -> None:
        pending = self._pending.get(topic_id)
        if pending is None:
            pending = self._pending[topic_id] = {}
            self._pending_count += 1
        self._pending_count += partition_id not in pending
        pending[partition_id] = state
        if self._pending_count >= MOST_PENDING:
            self.apply()

    def _take_pending(self, topic_id: UUID) -> dict[int, PartitionState]:
        pending = self._pending.pop(topic_id, None)
        if pending is None:
            return {}
        self._pending_count -= 1 + len(pending)
        return pending

    def _settle(self, topic_ids: Sequence[UUID]) -> None:
        """Put what is pending for these topics into their tables."""
        self._settle_rows([(topic_id, table_of(self._take_pending(topic_id))) for topic_id in topic_ids])

    def _settle_rows(self, tables: Sequence[tuple[UUID, PartitionTable]]) -> None:
        topics: dict[UUID, TopicImage] = {}
        for topic_id, rows in tables:
            self._settled.setdefault(topic_id, []).append(rows.ids)
            if len(rows):
                topic = topics.get(topic_id) or self._image.by_id[topic_id]
                topics[topic_id] = TopicImage(
                    name=topic.name, id=topic_id, partitions=topic.partitions.with_rows(rows)
                )
        self._image = self._image.with_partitions(topics.values())

    def _topic(self, topic_id: UUID) -> TopicImage:
        topic = self._image.by_id.get(topic_id)
        if topic is None:
            raise CannotReplayError(f"there is no topic with id {uuid_to_text(topic_id)}")
        return topic

    def _named(self, name: str) -> list[TopicImage]:
        if not name:
            return list(self._image.by_id.values())
        topic = self._image.by_name.get(name)
        if topic is None:
            raise CannotReplayError(f"there is no topic '{name}'")
        return [topic]

    def _partition(self, topic: TopicImage, partition_id: int) -> PartitionState:
        state = self._pending.get(topic.id, {}).get(partition_id) or topic.partitions.get(partition_id)
        if state is None:
            raise CannotReplayError(f"topic '{topic.name}' has no partition {partition_id}")
        return state

    def _with_elr(self, topic: TopicImage) -> Iterator[tuple[int, PartitionState]]:
        """The partitions that have eligible leader replicas, or know of earlier ones."""
        pending = self._pending.get(topic.id, {})
        for partition_id, state in pending.items():
            if state.elr or state.last_known_elr:
                yield partition_id, state
        for partition_id, lists in topic.partitions.rare_lists.items():
            if partition_id not in pending and (lists.elr or lists.last_known_elr):
                state_in_table = topic.partitions.get(partition_id)
                assert state_in_table is not None, "rare lists are of partitions in the table"
                yield partition_id, state_in_table


def _ascending(ids: Column) -> Column:
    return ids if (ids[1:] > ids[:-1]).all() else np.sort(ids)
