"""The topics' part of an image's hash: which tables have to be looked at, and which of their rows."""

from collections.abc import Callable, Collection, Iterator
from uuid import UUID

import numpy as np

from metadata.image.delta import MetadataDelta
from metadata.image.partition_columns import Column
from metadata.image.partitions import PartitionTable
from metadata.image.state_hash_partitions import Rows, hash_of_rows, seed_of
from metadata.image.topics import TopicImage, TopicsImage

Hash = Callable[..., int]


def hash_of_topics(topics: TopicsImage, hash_of: Hash) -> int:
    """`hash_of` is what makes a hash of a topic's name and id, and of what is rare in a partition."""
    return _whole(list(topics.by_id.values()), hash_of)


def hash_of_topics_change(delta: MetadataDelta, old: TopicsImage, new: TopicsImage, hash_of: Hash) -> int:
    """What `delta` adds to the hash, below zero where it takes off."""
    gone = [old.by_id[topic_id] for topic_id in delta.deleted_topic_ids]
    made = [new.by_id[topic_id] for topic_id in delta.created_topic_ids]
    total = _whole(made, hash_of) - _whole(gone, hash_of)
    before: list[Rows] = []
    after: list[Rows] = []
    for topic_id, ids in delta.topics.settled_ids():
        if not len(ids) or (made and topic_id in delta.created_topic_ids):
            continue
        seed = seed_of(topic_id)
        was, is_now = old.by_id[topic_id].partitions, new.by_id[topic_id].partitions
        places = _places(is_now, ids)
        after.append(Rows(seed, is_now, places))
        # Partitions only ever come, so that as many are the same.
        before.append(Rows(seed, was, places if len(was) == len(is_now) else _places(was, ids)))
        if is_now.rare_lists or was.rare_lists:
            known = ids.tolist()
            total += _rare(topic_id, is_now, hash_of, known) - _rare(topic_id, was, hash_of, known)
    return total + hash_of_rows(after) - hash_of_rows(before)


def _whole(topics: Collection[TopicImage], hash_of: Hash) -> int:
    total = 0
    for topic in topics:
        total += hash_of("topic", topic.id, topic.name)
        total += _rare(topic.id, topic.partitions, hash_of, topic.partitions.rare_lists)
    return total + hash_of_rows(_all_rows(topics))


def _all_rows(topics: Collection[TopicImage]) -> Iterator[Rows]:
    return (Rows(seed_of(topic.id), topic.partitions, None) for topic in topics)


def _rare(topic_id: UUID, table: PartitionTable, hash_of: Hash, ids: Collection[int]) -> int:
    """Of what hardly any partition has, beside its row."""
    lists = table.rare_lists
    if not lists:
        return 0
    return sum(hash_of("rare", topic_id, each, lists[each]) for each in ids if each in lists)


def _places(table: PartitionTable, ids: Column) -> Column:
    """Where in the table those of the partitions stand that are in it."""
    known = table.ids
    if not len(known):
        return known[:0]
    if known[0] == 0 and known[-1] == len(known) - 1:
        return ids if ids[-1] < len(known) else ids[ids < len(known)]
    places = np.minimum(known.searchsorted(ids), len(known) - 1)
    found: Column = places[known[places] == ids]
    return found
