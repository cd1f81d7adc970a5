"""Which ISRs lack a replica, asked of the columns of whole topics: one failure may change a hundred thousand."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from metadata.image.cluster import ClusterImage
from metadata.image.image import MetadataImage
from metadata.image.partition_columns import PADDING, Column, stacked
from metadata.image.partitions import PartitionTable
from metadata.image.topics import TopicImage

Places = NDArray[np.intp]


def active_brokers(cluster: ClusterImage) -> Column:
    """Ids of those that may be in an ISR."""
    return np.array([each for each, broker in cluster.brokers.items() if broker.is_active], dtype=np.int32)


def incomplete(
    topics: Iterable[tuple[TopicImage, Column | None]], leader: int, active: Column
) -> Iterator[tuple[TopicImage, Column]]:
    """For each topic with such, the ids of its partitions (among those named, or all) which this broker leads and whose
    ISR lacks an active replica.

    The ids given ascend and are in the table; those answered ascend.
    """
    led = [(topic, rows) for topic, ids in topics if len(rows := _led(topic.partitions, ids, leader))]
    if not led:
        return
    replicas = stacked([topic.partitions.replicas[rows] for topic, rows in led])
    isr = stacked([topic.partitions.isr[rows] for topic, rows in led])
    is_in_sync = (replicas[:, :, np.newaxis] == isr[:, np.newaxis, :]).any(axis=2)
    lacks = (~is_in_sync & np.isin(replicas, active)).any(axis=1)
    end = 0
    for topic, rows in led:
        start, end = end, end + len(rows)
        if lacks[start:end].any():
            yield topic, topic.partitions.ids[rows[lacks[start:end]]]


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


def has_new_active_broker(before: MetadataImage, after: MetadataImage) -> bool:
    if before.cluster.brokers is after.cluster.brokers:
        return False
    return any(
        broker.is_active and not before.cluster.is_active(broker_id)
        for broker_id, broker in after.cluster.brokers.items()
    )
