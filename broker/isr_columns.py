"""Which ISRs lack a replica, asked of the columns of whole topics: one failure may change a hundred thousand."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.partitions import PADDING, Column, PartitionTable, stacked
from kquorum.metadata.image.topics import TopicImage

Places = NDArray[np.intp]


def active_brokers(cluster: ClusterImage) -> frozenset[int]:
    """Those that may be in an ISR."""
    return frozenset(each for each, broker in cluster.brokers.items() if broker.is_active)


def incomplete(
    topics: Sequence[tuple[TopicImage, Column | None]], leader: int, active: Collection[int]
) -> Iterator[Column]:
    """For each topic the ids of its partitions (among those named, or all) which this broker leads and whose ISR lacks
    an active replica.

    The ids given ascend and are in the table; those answered ascend.
    """
    if not topics:
        return
    tables = [topic.partitions for topic, _ in topics]
    led = [_led(table, ids, leader) for table, (_, ids) in zip(tables, topics, strict=True)]
    if not any(map(len, led)):
        # Of most changes in a large cluster a broker leads nothing.
        yield from (table.ids[:0] for table in tables)
        return
    replicas = stacked([table.replicas[rows] for table, rows in zip(tables, led, strict=True)])
    isr = stacked([table.isr[rows] for table, rows in zip(tables, led, strict=True)])
    is_in_sync = (replicas[:, :, np.newaxis] == isr[:, np.newaxis, :]).any(axis=2)
    may_join = np.isin(replicas, np.array(sorted(active), dtype=np.int32))
    lacks = (~is_in_sync & may_join).any(axis=1)
    end = 0
    for table, rows in zip(tables, led, strict=True):
        start, end = end, end + len(rows)
        yield table.ids[rows[lacks[start:end]]]


def _led(table: PartitionTable, ids: Column | None, leader: int) -> Places:
    """The rows that this broker leads."""
    if ids is None:
        return np.flatnonzero(table.leaders == leader)
    rows = table.ids.searchsorted(ids)
    led: Places = rows[table.leaders[rows] == leader]
    return led


def shrunk(before: PartitionTable, after: PartitionTable, ids: Column) -> frozenset[int]:
    """Of partitions in `after`, those that were there with a longer ISR before."""
    if not len(before) or not len(ids):
        return frozenset()
    rows = np.minimum(before.ids.searchsorted(ids), len(before) - 1)
    were_there = before.ids[rows] == ids
    length_before = (before.isr[rows] != PADDING).sum(axis=1)
    length_after = (after.isr[after.ids.searchsorted(ids)] != PADDING).sum(axis=1)
    return frozenset(ids[were_there & (length_after < length_before)].tolist())
