"""Which partitions another leader might be elected for, found in the columns of all topics at once.

A million partitions are looked through in milliseconds; only what is found is worth a closer look, one by one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from metadata.image.cluster import ClusterImage
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partition_state import NO_LEADER
from metadata.image.partitions import NUMBER_COLUMNS
from metadata.image.topics import TopicImage

# A topic, and the ids of partitions in it.
Found = Iterator[tuple[TopicImage, Column]]
_Mask = NDArray[np.bool_]

_TOPICS_AT_ONCE: Final = 4096


def without_preferred_leader(topics: Iterable[TopicImage]) -> Found:
    for having in _having_replicas(topics):
        yield from _selected(having, _leaders(having) != _preferred(having))


def electable_preferred(topics: Iterable[TopicImage], cluster: ClusterImage) -> Found:
    """Of these, the partitions whose preferred replica is up and in sync (or nobody is in sync)."""
    active = _active(cluster)

    def is_wanted(topics: Sequence[TopicImage]) -> _Mask:
        preferred = _preferred(topics)
        wanted: _Mask = (_leaders(topics) != preferred) & np.isin(preferred, active)
        return wanted

    def is_electable(alike: Sequence[TopicImage]) -> _Mask:
        isr = np.concatenate([topic.partitions.isr for topic in alike])
        is_in_sync = (isr == _preferred(alike)[:, None]).any(axis=1) | (isr == PADDING).all(axis=1)
        electable: _Mask = is_in_sync & is_wanted(alike)
        return electable

    for having in _having_replicas(topics):
        yield from _refined(_selected(having, is_wanted(having)), is_electable)


def leaderless(topics: Iterable[TopicImage]) -> Found:
    for having in _having_replicas(topics):
        yield from _selected(having, _leaders(having) == NO_LEADER)


def leaderless_with_active_replica(topics: Iterable[TopicImage], cluster: ClusterImage) -> Found:
    active = _active(cluster)

    def is_electable(alike: Sequence[TopicImage]) -> _Mask:
        replicas = np.concatenate([topic.partitions.replicas for topic in alike])
        is_up = np.isin(replicas, active).any(axis=1)
        electable: _Mask = np.logical_and(is_up, _leaders(alike) == NO_LEADER)
        return electable

    for having in _having_replicas(topics):
        leaderless_ones = _selected(having, _leaders(having) == NO_LEADER)
        yield from _refined(leaderless_ones, is_electable)


def _having_replicas(topics: Iterable[TopicImage]) -> Iterator[list[TopicImage]]:
    """Some topics at a time: who has found enough need not go through the others."""
    having = (topic for topic in topics if topic.partitions.replica_width)
    while some := list(islice(having, _TOPICS_AT_ONCE)):
        yield some


def _active(cluster: ClusterImage) -> Column:
    return np.array([broker.id for broker in cluster.brokers.values() if broker.is_active], dtype=np.int32)


def _leaders(topics: Sequence[TopicImage]) -> Column:
    leaders: Column = np.concatenate([topic.partitions.leaders for topic in topics])
    return leaders


def _preferred(topics: Sequence[TopicImage]) -> Column:
    """The first replicas, which are a row of a table's cells: there may be very many topics."""
    preferred: Column = np.concatenate([topic.partitions.cells[NUMBER_COLUMNS] for topic in topics])
    return preferred


def _refined(found: Found, test: Callable[[Sequence[TopicImage]], _Mask]) -> Found:
    """Topics whose replica lists and ISRs are equally wide are put to the test together."""
    by_widths: defaultdict[tuple[int, int], list[TopicImage]] = defaultdict(list)
    for topic, _ in found:
        by_widths[topic.partitions.replica_width, topic.partitions.isr_width].append(topic)
    for alike in by_widths.values():
        yield from _selected(alike, test(alike))


def _selected(topics: Sequence[TopicImage], mask: _Mask) -> Found:
    """`mask` is of the partitions of all topics, one topic behind the other."""
    places = np.flatnonzero(mask)
    if not len(places):
        return
    ends = np.cumsum([len(topic.partitions) for topic in topics])
    bounds = places.searchsorted(ends)
    start = 0
    for number in np.flatnonzero(np.diff(bounds, prepend=0)).tolist():
        table, stop = topics[number].partitions, int(bounds[number])
        yield topics[number], table.ids[places[start:stop] - (int(ends[number]) - len(table))]
        start = stop
