"""Leaders for partitions that have none although one of those that have all of their data is up.

In Kafka there are no such partitions, for a broker's change of state and what follows from it for all of its partitions
are one decision. Here they are several where a broker has more than 10,000 partitions: it may speak again when half of
what it led was taken off it, and a controller may lose its office before it has given a returned broker all that it is
to lead.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.election_candidates import leaderless_with_active_replica
from metadata.controller.partitions.partition_change_builder import change_of
from metadata.controller.periodic_task import Outcome, PeriodicTask
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partitions import PartitionTable
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import PartitionChangeRecord

INTERVAL_MS: Final = 10_000
MOST_ELECTIONS: Final = 1_000
# Some that are looked at cannot be led after all: their directory is offline.
MOST_LOOKED_AT: Final = 10_000


def elect_clean_leaders(context: DecisionContext) -> Outcome:
    topics = context.image.topics
    if sum(topics.led_counts.values()) == sum(len(each.partitions) for each in topics.by_id.values()):
        return Outcome()
    records = tuple(islice(_records(context), MOST_ELECTIONS))
    return Outcome(records, has_more=len(records) == MOST_ELECTIONS)


def _records(context: DecisionContext) -> Iterator[PartitionChangeRecord]:
    for topic, partition_id in islice(_candidates(context), MOST_LOOKED_AT):
        state = topic.partitions.get(partition_id)
        assert state is not None, "a query of a table answers ids that the table has"
        record = change_of(context, topic, partition_id, state).record()
        # A broker in controlled shutdown gave away what it led; at an old level the image does not say that it leaves.
        if record is not None and context.liveness.shutdown_offset(record.leader) is None:
            yield record


def _candidates(context: DecisionContext) -> Iterator[tuple[TopicImage, int]]:
    """Those with an active member in the ISR, or else among the eligible and last known leaders."""
    cluster = context.image.cluster
    active = np.array([each.id for each in cluster.brokers.values() if each.is_active], dtype=np.int32)
    for topic, ids in leaderless_with_active_replica(_topics(context), cluster):
        for partition_id in _with_data(topic.partitions, ids, active).tolist():
            yield topic, partition_id


def _with_data(table: PartitionTable, partition_ids: Column, active: Column) -> Column:
    isr = table.isr[table.ids.searchsorted(partition_ids)]
    has_data: NDArray[np.bool_] = np.atleast_1d(np.isin(isr, active).any(axis=1))
    is_up = frozenset(active.tolist())
    for place in np.flatnonzero((isr == PADDING).all(axis=1)).tolist():
        lists = table.rare_lists.get(int(partition_ids[place]))
        has_data[place] = lists is not None and not is_up.isdisjoint((*lists.elr, *lists.last_known_elr))
    found: Column = partition_ids[has_data]
    return found


def _topics(context: DecisionContext) -> Sequence[TopicImage]:
    """Each time from another one on, so that those that cannot be led do not hide others for ever."""
    topics = tuple(context.image.topics.by_id.values())
    start = context.now_ms // INTERVAL_MS % len(topics)
    return topics[start:] + topics[:start]


CLEAN_ELECTION = PeriodicTask(
    name="elect clean leaders", interval_ms=lambda _config: INTERVAL_MS, run=elect_clean_leaders
)
