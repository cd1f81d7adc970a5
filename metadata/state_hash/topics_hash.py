"""The topics' part of an image's hash: which tables have to be looked at, and which of their rows."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final
from uuid import UUID

import numpy as np

from metadata.image.delta import MetadataDelta
from metadata.image.partition_columns import Column
from metadata.image.partitions import PartitionTable
from metadata.image.topics import TopicImage, TopicsImage
from metadata.state_hash.partition_hash import Rows, hash_of_rows, seed_of

Hash = Callable[..., int]


# What is hashed without a pause: so many rows, of which a topic of its own counts as some.
_ROWS_AT_ONCE: Final = 1 << 14
_ROWS_OF_A_TOPIC: Final = 100

# Whether it is added (1) or taken off (-1), the hash of what stands beside the rows, and the rows.
_Work = tuple[int, int, Rows]


def hash_of_topics(topics: TopicsImage, hash_of: Hash) -> int:
    """`hash_of` is what makes a hash of a topic's name and id, and of what is rare in a partition."""
    return sum(_sums(_whole(topic, 1, hash_of) for topic in topics.by_id.values()))


def hashes_of_topics_change(
    delta: MetadataDelta, old: TopicsImage, new: TopicsImage, hash_of: Hash
) -> Iterator[int]:
    """What `delta` adds to the hash, below zero where it takes off, in parts of some milliseconds of work."""
    return _sums(_changed(delta, old, new, hash_of))


def _changed(delta: MetadataDelta, old: TopicsImage, new: TopicsImage, hash_of: Hash) -> Iterator[_Work]:
    for topic_id in delta.created_topic_ids:
        yield _whole(new.by_id[topic_id], 1, hash_of)
    for topic_id in delta.deleted_topic_ids:
        yield _whole(old.by_id[topic_id], -1, hash_of)
    for topic_id, ids in delta.topics.settled_ids():
        if not len(ids) or topic_id in delta.created_topic_ids:
            continue
        seed = seed_of(topic_id)
        was, is_now = old.by_id[topic_id].partitions, new.by_id[topic_id].partitions
        rare_then = rare_now = 0
        if is_now.rare_lists or was.rare_lists:
            known = ids.tolist()
            rare_then = _rare(topic_id, was, hash_of, known)
            rare_now = _rare(topic_id, is_now, hash_of, known)
        places = _places(is_now, ids)
        yield 1, rare_now, Rows(seed, is_now, places)
        # Partitions only ever come, so that as many are the same.
        yield -1, rare_then, Rows(seed, was, places if len(was) == len(is_now) else _places(was, ids))


def _whole(topic: TopicImage, sign: int, hash_of: Hash) -> _Work:
    beside = hash_of("topic", topic.id, topic.name)
    beside += _rare(topic.id, topic.partitions, hash_of, topic.partitions.rare_lists)
    return sign, beside, Rows(seed_of(topic.id), topic.partitions, None)


def _sums(work: Iterable[_Work]) -> Iterator[int]:
    total = count = 0
    rows_by_sign: dict[int, list[Rows]] = {1: [], -1: []}
    for sign, beside, rows in work:
        total += sign * beside
        for piece in rows.pieces(_ROWS_AT_ONCE):
            rows_by_sign[sign].append(piece)
            count += piece.count + _ROWS_OF_A_TOPIC
            if count >= _ROWS_AT_ONCE:
                yield total + hash_of_rows(rows_by_sign[1]) - hash_of_rows(rows_by_sign[-1])
                total = count = 0
                rows_by_sign = {1: [], -1: []}
    yield total + hash_of_rows(rows_by_sign[1]) - hash_of_rows(rows_by_sign[-1])


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
