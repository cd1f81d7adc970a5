"""Which partitions a broker leaves if it goes, found in the columns of all topics.

A million partitions are looked through in tens of milliseconds, most of which may have nothing to do with the broker.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

import numpy as np

from metadata.controller.bulk_elections import Movement, concerned_rows
from metadata.image.partition_changes import StackedTables
from metadata.image.partition_columns import Column
from metadata.image.topics import TopicImage, TopicsImage

TOPICS_AT_ONCE: Final = 1024

Found = list[tuple[TopicImage, Column]]


def concerned_partitions(topics: TopicsImage, movement: Movement, most: int | None = None) -> Found:
    """Each topic with the ids of those of its partitions, ascending. Once there are more than `most`, further topics
    may be left out: so many are not decided at once."""
    found: Found = []
    count = 0
    left = iter(topics.by_id.values())
    while some := list(islice(left, TOPICS_AT_ONCE)):
        for topic, ids in _concerned(_touched(some, movement), movement):
            found.append((topic, ids))
            count += ids.size
        if most is not None and count > most:
            break
    return found


def _touched(topics: Sequence[TopicImage], movement: Movement) -> Sequence[TopicImage]:
    """Of ten thousand topics most have nothing to do with a broker: only the others are gone into."""
    columns = [topic.partitions.isr_cells for topic in topics]
    ends = np.cumsum([len(column) for column in columns])
    hits = np.flatnonzero(np.concatenate(columns) == movement.broker_id)
    is_touched = np.zeros(len(topics), dtype=np.bool_)
    is_touched[ends.searchsorted(hits, side="right")] = True
    if movement.is_for_good:
        is_touched |= np.fromiter((bool(topic.partitions.rare_lists) for topic in topics), dtype=np.bool_)
    return [topics[number] for number in np.flatnonzero(is_touched).tolist()]


def _concerned(topics: Sequence[TopicImage], movement: Movement) -> Iterator[tuple[TopicImage, Column]]:
    stack = StackedTables([topic.partitions for topic in topics])
    rows = concerned_rows(stack, movement)
    numbers, ids = stack.numbers[rows], stack.ids[rows]
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(rows)]):
        yield topics[numbers[begin]], ids[begin:end]
