"""What differs between the topics of two images.

Of a removed topic its partitions are counted, not listed: they went with it. Of a new one each is told.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

import numpy as np

from metadata.image.partition_state import PartitionState
from metadata.image.partitions import EMPTY_PARTITIONS, PartitionTable
from metadata.image.state_change import Action, FieldChange, StateChange, StateKind, field_changes
from metadata.image.topics import TopicImage, TopicsImage
from wire.uuids import uuid_to_text

_PARTITION_FIELDS = (
    "leader",
    "leader_epoch",
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "elr",
    "last_known_elr",
    "leader_recovery_state",
    "partition_epoch",
    "directories",
)


def diff_topics(before: TopicsImage, after: TopicsImage) -> Iterator[StateChange]:
    if before is after:
        return
    by_name = sorted(_changed_ids(before.by_id, after.by_id), key=lambda pair: pair[0])
    for _, topic_id in by_name:
        yield from _topic(before.by_id.get(topic_id), after.by_id.get(topic_id))


def _changed_ids(
    before: Mapping[UUID, TopicImage], after: Mapping[UUID, TopicImage]
) -> Iterator[tuple[tuple[str, int], UUID]]:
    """Topics that may differ, with what they are sorted by; a topic that is the same object on both sides cannot."""
    for topic_id, topic in before.items():
        if after.get(topic_id) is not topic:
            yield (topic.name, topic_id.int), topic_id
    for topic_id, topic in after.items():
        if topic_id not in before:
            yield (topic.name, topic_id.int), topic_id


def _topic(old: TopicImage | None, new: TopicImage | None) -> Iterator[StateChange]:
    if new is None:
        assert old is not None, "the topic is on one side at least"
        yield _topic_change(old, Action.REMOVED, (FieldChange("partitions", len(old.partitions), None),))
        return
    if old is None:
        yield _topic_change(new, Action.ADDED, (FieldChange("partitions", None, len(new.partitions)),))
    elif old.name != new.name:
        yield _topic_change(new, Action.CHANGED, (FieldChange("name", old.name, new.name),))
    old_table = EMPTY_PARTITIONS if old is None else old.partitions
    yield from _partitions(new, old_table)


def _topic_change(topic: TopicImage, action: Action, fields: tuple[FieldChange, ...]) -> StateChange:
    topic_id = uuid_to_text(topic.id)
    return StateChange(
        StateKind.TOPIC, action, topic.name, (("topic", topic.name), ("topic_id", topic_id)), fields
    )


def _partitions(topic: TopicImage, old_table: PartitionTable) -> Iterator[StateChange]:
    for partition_id, old, new in _differing(old_table, topic.partitions):
        action = Action.ADDED if old is None else Action.REMOVED if new is None else Action.CHANGED
        keys = (
            ("topic", topic.name),
            ("topic_id", uuid_to_text(topic.id)),
            ("partition", partition_id),
        )
        fields = field_changes(old, new, _PARTITION_FIELDS)
        yield StateChange(StateKind.PARTITION, action, f"{topic.name}-{partition_id}", keys, fields)


def _differing(
    old_table: PartitionTable, new_table: PartitionTable
) -> Iterator[tuple[int, PartitionState | None, PartitionState | None]]:
    """The partitions that are not the same in both tables; the columns tell which, so only these are looked at."""
    changed = new_table.ids_not_in(old_table)
    gone = np.setdiff1d(old_table.ids, new_table.ids)
    for partition_id in np.union1d(changed, gone).tolist():
        yield partition_id, old_table.get(partition_id), new_table.get(partition_id)
