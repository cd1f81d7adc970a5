"""Which partitions change if a broker goes or comes, found in the columns of all topics.

A million partitions are looked through in tens of milliseconds, most of which may have nothing to do with the broker.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from metadata.controller.partitions.broker_movement import Movement, concerned_rows
from metadata.image.partition_changes import StackedTables
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partition_state import NO_LEADER
from metadata.image.topics import TopicImage, TopicsImage

TOPICS_AT_ONCE: Final = 1024

Found = list[tuple[TopicImage, Column]]


def affected_partitions(topics: TopicsImage, movement: Movement, most: int | None = None) -> Found:
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


def counted_on(topics: TopicsImage, broker_ids: Collection[int]) -> set[int]:
    """Which of these brokers, all of them fenced, lead a partition, or are in an ISR beside others."""
    wanted = np.array(sorted(broker_ids), dtype=np.int32)
    found: set[int] = set()
    left = iter(topics.by_id.values() if broker_ids else ())
    while some := list(islice(left, TOPICS_AT_ONCE)):
        columns = [topic.partitions.isr_cells for topic in some]
        places = np.flatnonzero(_are_hit(columns, np.isin(np.concatenate(columns), wanted)))
        stack = StackedTables([some[place].partitions for place in places.tolist()])
        is_counted = (stack.leaders != NO_LEADER) | ((stack.isr != PADDING).sum(axis=0) > 1)
        found |= set(stack.isr[np.isin(stack.isr, wanted) & is_counted].tolist())
    return found


def _touched(topics: Sequence[TopicImage], movement: Movement) -> Sequence[TopicImage]:
    """Of ten thousand topics most have nothing to do with a broker: only the others are gone into."""
    if movement.is_leaving:
        columns, wanted = [topic.partitions.isr_cells for topic in topics], movement.broker_id
    else:
        columns, wanted = [topic.partitions.leaders for topic in topics], NO_LEADER
    is_touched = _are_hit(columns, np.concatenate(columns) == wanted)
    if movement.is_for_good:
        is_touched |= np.fromiter((bool(topic.partitions.rare_lists) for topic in topics), dtype=np.bool_)
    return [topics[number] for number in np.flatnonzero(is_touched).tolist()]


def _are_hit(columns: Sequence[Column], is_hit: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the columns, which lie one behind the other in `is_hit`, have a hit."""
    ends = np.cumsum([len(column) for column in columns])
    are_hit = np.zeros(len(columns), dtype=np.bool_)
    are_hit[ends.searchsorted(np.flatnonzero(is_hit), side="right")] = True
    return are_hit


def _concerned(topics: Sequence[TopicImage], movement: Movement) -> Iterator[tuple[TopicImage, Column]]:
    stack = StackedTables([topic.partitions for topic in topics])
    rows = concerned_rows(stack, movement)
    numbers, ids = stack.numbers[rows], stack.ids[rows]
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(rows)]):
        yield topics[numbers[begin]], ids[begin:end]
