"""Taking a broker off its partitions, before that is written which must not be before it.

A registration is only replaced or deleted, a broker only fenced on its own wish, and a directory only given up when no
partition counts on it any more. Where few partitions are concerned, all of it is one decision, as in Kafka. Where there
are more, they go first, some in each turn; meanwhile the broker is kept from joining ISRs and from leading, and the
request is handled when nothing is left to be done before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from metadata.controller.bulk_elections import Movement
from metadata.controller.change_run import ChangeRun, movement_records
from metadata.controller.context import DecisionContext
from metadata.controller.sweep import PartitionWalk
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partition_state import NO_LEADER
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

    def movement(self, context: DecisionContext) -> Movement:
        return Movement(
            broker_id=self.broker_id,
            is_leaving=True,
            is_for_good=self.is_for_good,
            failed_directories=self.failed_directories,
            is_last_kept=not context.is_elr_enabled,
        )

    def found(self, context: DecisionContext, most: int) -> Found:
        """The partitions that change if it goes. Topics beyond those that have more than `most` are left out: so many
        are not decided at once."""
        found: Found = []
        count = 0
        for topic in self._topics(context):
            ids = self._concerned(context, topic.partitions)
            if ids.size:
                found.append((topic, ids))
                count += ids.size
            if count > most:
                break
        return found

    def _topics(self, context: DecisionContext) -> Iterator[TopicImage]:
        seen = set()
        for topic, _ in context.image.topics.in_isr(self.broker_id):
            seen.add(topic.id)
            yield topic
        if self.is_for_good:
            for topic in context.image.topics.by_id.values():
                if topic.partitions.rare_lists and topic.id not in seen:
                    yield topic

    def _concerned(self, context: DecisionContext, table: PartitionTable) -> Column:
        """The ids, ascending."""
        ids = table.in_isr(self.broker_id)
        if not context.is_elr_enabled:
            ids = ids[~_is_settled(table, ids)]
        if self.failed_directories:
            ids = ids[self._is_in_failed_directory(table, ids)]
        if self.is_for_good and table.rare_lists:
            ids = np.union1d(ids, table.in_elr(self.broker_id))
        return ids

    def _is_in_failed_directory(self, table: PartitionTable, ids: Column) -> NDArray[np.bool_]:
        numbers = [
            number for number, each in enumerate(table.directory_ids) if each in self.failed_directories
        ]
        rows = table.ids.searchsorted(ids)
        is_its_own = table.replicas[rows] == self.broker_id
        is_failed = np.isin(table.directories[rows], numbers)
        found: NDArray[np.bool_] = (is_its_own & is_failed).any(axis=1)
        return found


class BrokerRemoval:
    """Partitions are looked up again when their turn comes, so whatever happened to them meanwhile counts."""

    def __init__(self, context: DecisionContext, departure: Departure) -> None:
        self.broker_id = departure.broker_id
        self._departure = departure
        self._walk = PartitionWalk(context)
        if not departure.failed_directories:
            context.liveness.begin_removal(departure.broker_id)

    @property
    def is_done(self) -> bool:
        return self._walk.is_done

    def next_run(self, context: DecisionContext) -> ChangeRun:
        """The changes of the next partitions; there may be none."""
        return self._walk.next_run(context, self._departure.movement(context))


def records_or_removal(
    context: DecisionContext, departure: Departure
) -> tuple[list[PartitionChangeRecord], BrokerRemoval | None]:
    """What is to be written before anything else: all of it, or how to come to where it is little."""
    found = departure.found(context, PARTITIONS_AT_ONCE)
    if sum(ids.size for _, ids in found) > PARTITIONS_AT_ONCE:
        return [], BrokerRemoval(context, departure)
    return list(movement_records(context, found, departure.movement(context))), None


def _is_settled(table: PartitionTable, ids: Column) -> NDArray[np.bool_]:
    """Which of the partitions that have the broker in their ISR have nobody else in it and no leader: without eligible
    leader replicas the last member stays, and nothing changes when it goes."""
    rows = table.ids.searchsorted(ids)
    members = (table.isr[rows] != PADDING).sum(axis=1)
    settled: NDArray[np.bool_] = (members == 1) & (table.leaders[rows] == NO_LEADER)
    return settled
