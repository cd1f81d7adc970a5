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
    if not same_columns(old_table, new.partitions):
        yield from _partitions(new, old_table)


def _topic_change(topic: TopicImage, action: Action, fields: tuple[FieldChange, ...]) -> StateChange:
    topic_id = uuid_to_text(topic.id)
    return StateChange(
        StateKind.TOPIC, action, topic.name, (("topic", topic.name), ("topic_id", topic_id)), fields
    )


def same_columns(one: PartitionTable, other: PartitionTable) -> bool:
    """Whether the tables are equal to the last byte: the quick answer for large ones, where False says nothing."""
    return one is other or (
        one.directory_ids == other.directory_ids
        and one.rare_lists == other.rare_lists
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in (
                "ids",
                "leaders",
                "leader_epochs",
                "partition_epochs",
                "recovery_states",
                "replicas",
                "isr",
                "directories",
            )
        )
    )


def _partitions(topic: TopicImage, old_table: PartitionTable) -> Iterator[StateChange]:
    for partition_id, old, new in _side_by_side(old_table, topic.partitions):
        if old != new:
            action = Action.ADDED if old is None else Action.REMOVED if new is None else Action.CHANGED
            keys = (
                ("topic", topic.name),
                ("topic_id", uuid_to_text(topic.id)),
                ("partition", partition_id),
            )
            fields = field_changes(old, new, _PARTITION_FIELDS)
            yield StateChange(StateKind.PARTITION, action, f"{topic.name}-{partition_id}", keys, fields)


def _side_by_side(
    old_table: PartitionTable, new_table: PartitionTable
) -> Iterator[tuple[int, PartitionState | None, PartitionState | None]]:
    """Both tables ascend: walk them together and hold one row of each."""
    old_rows, new_rows = old_table.items(), new_table.items()
    old, new = next(old_rows, None), next(new_rows, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old[0] < new[0]):
            assert old is not None, "one side has a row left"
            yield old[0], old[1], None
            old = next(old_rows, None)
        elif old is None or new[0] < old[0]:
            yield new[0], None, new[1]
            new = next(new_rows, None)
        else:
            yield new[0], old[1], new[1]
            old, new = next(old_rows, None), next(new_rows, None)
