"""Replicas on a full disk leave their ISR and their leadership, where others can take over (docs/data-plane.md).

A partition whose log refused records is assigned to the directory LOST (AssignReplicasToDirs, KIP-858). The controller,
also Kafka's, then elects another leader and takes this replica out of the ISR at once. The replica stays here, follows
and is read; without another replica that can lead it stays leader, and refuses records. When there is space again, the
replica is assigned to the directory where it lies. A broker that starts does the same for each replica that is LOST,
and leaves again with the first records for which there is no space.

Sans-IO.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kquorum.broker.replica.partition import Partition
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.directories import LOST, is_online
from kquorum.metadata.image.partition_state import PartitionState

log = logging.getLogger("broker.replica")
_REFUSALS_OF_A_FOLLOWER: Final = 2
"""A follower waits for a second refusal, some time later: where the disks of all brokers run full together, the leader
would else leave at the same moment, and the partition would have no leader at all."""


@dataclass(slots=True)
class _Away:
    directory_id: UUID
    partition_epoch: int
    """Of the state by which the replica left. It may be back in the ISR later, caught up with a partition at rest."""


class FullDisk:
    """`assign` asks the controller for the directory of a replica."""

    def __init__(self, broker_id: int, assign: Callable[[UUID, int, UUID], None]) -> None:
        self._broker_id = broker_id
        self._assign = assign
        self._refusals: dict[tuple[UUID, int], int] = {}
        self._away: dict[tuple[UUID, int], _Away] = {}

    def is_away(self, topic_id: UUID, index: int) -> bool:
        """Whether the replica waits for space, so that it is not to be assigned to the directory where it lies."""
        return (topic_id, index) in self._away

    def refused(
        self, partition: Partition, state: PartitionState, brokers: Mapping[int, BrokerRegistration]
    ) -> None:
        """The log of a partition refused records for lack of space; `state` is that of the newest image."""
        key = (partition.topic_id, partition.topic_partition.partition)
        self._refusals[key] = self._refusals.get(key, 0) + 1
        if self._broker_id not in state.isr or not self._has_others(state, brokers):
            return
        if state.leader != self._broker_id and self._refusals[key] < _REFUSALS_OF_A_FOLLOWER:
            return
        known = self._away.get(key)
        if known is not None and known.partition_epoch == state.partition_epoch:
            return
        self._away[key] = _Away(partition.log.directory_id, state.partition_epoch)
        log.warning(
            "%s-%d: no space is left for its records, so this replica leaves them to the others in sync",
            *partition.topic_partition,
        )
        self._assign(*key, LOST)

    def _has_others(self, state: PartitionState, brokers: Mapping[int, BrokerRegistration]) -> bool:
        """Whether another replica in sync can lead: its disk has space, as far as the controller knows."""
        return any(
            member != self._broker_id
            and member in brokers
            and brokers[member].is_active
            and is_online(state.directory_of(member), brokers[member].log_dirs)
            for member in state.isr
        )

    def has_space(self, directory_id: UUID) -> None:
        """There is space again in a log directory."""
        self._refusals.clear()
        for key in [each for each, away in self._away.items() if away.directory_id == directory_id]:
            del self._away[key]
            self._assign(*key, directory_id)

    def stopped(self, topic_id: UUID, index: int) -> None:
        """The broker has the replica no more, or its log directory failed."""
        self._refusals.pop((topic_id, index), None)
        self._away.pop((topic_id, index), None)
