"""How records change topics and partitions.

Changed rows are gathered per topic and put into its table once, when the delta is applied: a thousand changes to a
table cost one copy of its columns.
"""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from metadata.image.errors import CannotReplayError
from metadata.image.partition_state import PartitionState, partition_after_change, partition_from_record
from metadata.image.partitions import EMPTY_PARTITIONS
from metadata.image.topics import TopicImage, TopicsImage
from wire.metadata_records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from wire.uuids import uuid_to_text


class TopicsDelta:
    """`changed_topics` holds, for each topic with a changed or new partition (or newly made), those partitions' ids."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._pending: dict[UUID, dict[int, PartitionState]] = {}
        self.created_topic_ids: set[UUID] = set()
        self.deleted_topic_ids: set[UUID] = set()

    @property
    def changed_topics(self) -> dict[UUID, set[int]]:
        return {topic_id: set(changes) for topic_id, changes in self._pending.items()}

    def replay_topic(self, record: TopicRecord) -> None:
        if record.topic_id in self._image.by_id:
            raise CannotReplayError(f"topic id {uuid_to_text(record.topic_id)} exists already")
        if record.name in self._image.by_name:
            raise CannotReplayError(f"topic '{record.name}' exists already")
        topic = TopicImage(name=record.name, id=record.topic_id, partitions=EMPTY_PARTITIONS)
        self._image = self._image.with_topic(topic)
        self._pending[topic.id] = {}
        self.created_topic_ids.add(topic.id)

    def replay_partition(self, record: PartitionRecord) -> None:
        self._topic(record.topic_id)
        state = partition_from_record(record)
        self._pending.setdefault(record.topic_id, {})[record.partition_id] = state

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        state = self._partition(self._topic(record.topic_id), record.partition_id)
        changed = partition_after_change(state, record)
        self._pending.setdefault(record.topic_id, {})[record.partition_id] = changed

    def replay_remove_topic(self, record: RemoveTopicRecord) -> TopicImage:
        """Answers the removed topic; one made in this same delta was never there, so it is not "deleted" either."""
        topic = self._topic(record.topic_id)
        self._image = self._image.without_topic(topic)
        self._pending.pop(topic.id, None)
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
                for partition_id, state in self._partitions(topic)
                if state.elr or state.last_known_elr
            }
            if cleared:
                self._pending.setdefault(topic.id, {}).update(cleared)

    def become(self, target: TopicsImage) -> None:
        """Lead to `target`, starting from the image that this delta was made for (nothing replayed yet)."""
        current = self._image
        self.created_topic_ids = set(target.by_id) - set(current.by_id)
        self.deleted_topic_ids = set(current.by_id) - set(target.by_id)
        for topic in target.by_id.values():
            known = current.by_id.get(topic.id)
            old = EMPTY_PARTITIONS if known is None else known.partitions
            changes = {p: state for p, state in topic.partitions.items() if old.get(p) != state}
            if known is None or changes:
                self._pending[topic.id] = changes
        self._image = target

    def apply(self) -> TopicsImage:
        image = self._image
        for topic_id, changes in self._pending.items():
            if changes:
                topic = image.by_id[topic_id]
                image = image.with_topic(replace(topic, partitions=topic.partitions.with_changes(changes)))
        return image

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

    def _partitions(self, topic: TopicImage) -> Iterator[tuple[int, PartitionState]]:
        pending = self._pending.get(topic.id, {})
        yield from pending.items()
        for partition_id, state in topic.partitions.items():
            if partition_id not in pending:
                yield partition_id, state
