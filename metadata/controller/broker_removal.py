"""Taking a broker off its partitions, before that is written which must not be before it.

A registration is only replaced or deleted, a broker only fenced on its own wish, and a directory only given up when no
partition counts on it any more. Where few partitions are concerned, all of it is one decision, as in Kafka. Where there
are more, they go first, some in each turn; meanwhile the broker is kept from joining ISRs and from leading, and the
request is handled when nothing is left to be done before.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from metadata.controller.context import DecisionContext
from metadata.controller.transitions import leader_and_isr_records
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partition_state import NO_LEADER, PartitionState
from metadata.image.partitions import PartitionTable
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import PartitionChangeRecord

PARTITIONS_AT_ONCE: Final = 500

Found = list[tuple[TopicImage, Column]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Which partitions a broker leaves. `is_for_good`: it loses its eligibility as well, because it crashed or is no
    broker any more. `failed_directories`: only those there, and without being kept from coming back."""

    broker_id: int
    is_for_good: bool = False
    failed_directories: frozenset[UUID] = frozenset()

    def found(self, context: DecisionContext) -> Found:
        topics = context.image.topics.by_id.values()
        found = [(topic, self.concerned(context, topic.partitions)) for topic in topics]
        return [(topic, ids) for topic, ids in found if ids.size]

    def concerned(self, context: DecisionContext, table: PartitionTable) -> Column:
        """The ids of the partitions that change if it goes, ascending."""
        ids = table.in_isr(self.broker_id)
        if not context.is_elr_enabled:
            ids = ids[~_is_settled(table, ids)]
        if self.is_for_good and table.rare_lists:
            ids = np.union1d(ids, table.in_elr(self.broker_id))
        return ids

    def records(
        self, context: DecisionContext, affected: Iterable[tuple[TopicImage, Column]]
    ) -> list[PartitionChangeRecord]:
        if self.is_for_good:
            return list(leader_and_isr_records(context, affected, unclean_broker=self.broker_id))
        if not self.failed_directories:
            return list(leader_and_isr_records(context, affected, broker_to_remove=self.broker_id))
        return list(
            leader_and_isr_records(
                context, affected, broker_to_remove=self.broker_id, is_concerned=self._is_in_failed_directory
            )
        )

    def _is_in_failed_directory(self, state: PartitionState) -> bool:
        return state.directory_of(self.broker_id) in self.failed_directories


class BrokerRemoval:
    """Partitions are looked up again when their turn comes, so whatever happened to them meanwhile counts."""

    def __init__(self, context: DecisionContext, departure: Departure, found: Found) -> None:
        self.broker_id = departure.broker_id
        self._departure = departure
        self._left = deque((topic.id, ids) for topic, ids in found)
        if not departure.failed_directories:
            context.liveness.begin_removal(departure.broker_id)

    @property
    def is_done(self) -> bool:
        return not self._left

    def next_records(self, context: DecisionContext) -> list[PartitionChangeRecord]:
        """The changes of the next partitions; there may be none."""
        affected: Found = []
        room = PARTITIONS_AT_ONCE
        while self._left and room > 0:
            topic_id, ids = self._left.popleft()
            if ids.size > room:
                self._left.appendleft((topic_id, ids[room:]))
                ids = ids[:room]
            room -= ids.size
            topic = context.image.topics.by_id.get(topic_id)
            if topic is not None:
                still = np.intersect1d(ids, self._departure.concerned(context, topic.partitions))
                affected.append((topic, still))
        return self._departure.records(context, affected)


def records_or_removal(
    context: DecisionContext, departure: Departure
) -> tuple[list[PartitionChangeRecord], BrokerRemoval | None]:
    """What is to be written before anything else: all of it, or how to come to where it is little."""
    found = departure.found(context)
    if sum(ids.size for _, ids in found) <= PARTITIONS_AT_ONCE:
        return departure.records(context, found), None
    if not departure.failed_directories:
        return [], BrokerRemoval(context, departure, found)
    concerned = _in_directories(departure, found)
    if sum(ids.size for _, ids in concerned) <= PARTITIONS_AT_ONCE:
        return departure.records(context, concerned), None
    return [], BrokerRemoval(context, departure, concerned)


def _in_directories(departure: Departure, found: Found) -> Found:
    """Only those whose replica on the broker lies in a failed directory."""
    concerned: Found = []
    for topic, ids in found:
        table = topic.partitions
        failed = [
            number for number, each in enumerate(table.directory_ids) if each in departure.failed_directories
        ]
        rows = table.ids.searchsorted(ids)
        is_its_own = table.replicas[rows] == departure.broker_id
        is_failed = np.isin(table.directories[rows], failed)
        ids = ids[(is_its_own & is_failed).any(axis=1)]
        if ids.size:
            concerned.append((topic, ids))
    return concerned


def _is_settled(table: PartitionTable, ids: Column) -> NDArray[np.bool_]:
    """Which of the partitions that have the broker in their ISR have nobody else in it and no leader: without eligible
    leader replicas the last member stays, and nothing changes when it goes."""
    rows = table.ids.searchsorted(ids)
    members = (table.isr[rows] != PADDING).sum(axis=1)
    settled: NDArray[np.bool_] = (members == 1) & (table.leaders[rows] == NO_LEADER)
    return settled
