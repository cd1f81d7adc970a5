"""The change record of one partition: election, epochs, completion of a reassignment.

Rules: KIP-631 and Kafka's partition change rules. Eligible leader replicas (KIP-966) are treated as off: lists that a
log brings along are cleared when their partition next changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from metadata.image.metadata_version import (
    DIRECTORIES,
    LEADER_RECOVERY,
    NO_LEADER_EPOCH_BUMP_ON_ISR_SHRINK,
)
from metadata.image.partition_state import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionState,
)
from wire.metadata_records.topics import PartitionChangeRecord


class Election(Enum):
    """PREFERRED moves to the first replica where it can; UNCLEAN may lose data rather than have no leader."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Elected:
    leader: int
    is_unclean: bool = False


@dataclass(slots=True, kw_only=True)
class PartitionChange:
    """Set the `target_*` fields to what is wanted, then `record`. `is_acceptable` says who may lead at all."""

    topic_id: UUID
    partition_id: int
    partition: PartitionState
    metadata_version: int
    is_acceptable: Callable[[int], bool]
    default_directory: Callable[[int], UUID]
    election: Election = Election.ONLINE
    target_isr: tuple[int, ...] | None = None
    target_replicas: tuple[int, ...] | None = None
    target_removing: tuple[int, ...] | None = None
    target_adding: tuple[int, ...] | None = None
    target_recovery_state: int | None = None

    def record(self) -> PartitionChangeRecord | None:
        """None when nothing would change."""
        partition = self.partition
        isr = _or(self.target_isr, partition.isr)
        replicas = _or(self.target_replicas, partition.replicas)
        removing = _or(self.target_removing, partition.removing_replicas)
        adding = _or(self.target_adding, partition.adding_replicas)
        if (removing or adding) and _is_reassigned(isr, replicas, removing):
            isr, replicas = _without(isr, removing), _without(replicas, removing)
            removing, adding = (), ()
        elected = self._elect(isr, replicas)
        new_isr = self._new_isr(isr, elected)
        record = PartitionChangeRecord(
            topic_id=self.topic_id,
            partition_id=self.partition_id,
            isr=new_isr,
            leader=self._new_leader(elected, new_isr, replicas),
            replicas=_changed(partition.replicas, replicas),
            removing_replicas=_changed(partition.removing_replicas, removing),
            adding_replicas=_changed(partition.adding_replicas, adding),
            leader_recovery_state=self._new_recovery_state(elected),
            directories=self._new_directories(replicas),
            eligible_leader_replicas=_changed(partition.elr, ()),
        )
        is_change = record != PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id)
        return record if is_change else None

    def _elect(self, isr: tuple[int, ...], replicas: tuple[int, ...]) -> Elected:
        """The first choice that is in the ISR and acceptable; without one nobody, or anybody if UNCLEAN."""
        choices = (self.partition.leader, *replicas)
        if self.election is Election.PREFERRED:
            choices = (*replicas[:1], *choices)
        for choice in choices:
            if choice in isr and self.is_acceptable(choice):
                return Elected(choice)
        if self.election is Election.UNCLEAN:
            for replica in replicas:
                if self.is_acceptable(replica):
                    return Elected(replica, is_unclean=True)
        return Elected(NO_LEADER)

    def _new_isr(self, isr: tuple[int, ...], elected: Elected) -> tuple[int, ...] | None:
        """The last member stays when it goes: it alone has all of the data."""
        if elected.is_unclean:
            return (elected.leader,)
        return _changed(self.partition.isr, isr) if isr else None

    def _new_leader(
        self, elected: Elected, new_isr: tuple[int, ...] | None, replicas: tuple[int, ...]
    ) -> int:
        """Naming the same leader again bumps its epoch, which makes replicas that were dropped stop."""
        if elected.leader != self.partition.leader:
            return elected.leader
        lost_replica = not set(self.partition.replicas) <= set(replicas)
        shrank = new_isr is not None and not set(self.partition.isr) <= set(new_isr)
        if lost_replica or (shrank and self.metadata_version < NO_LEADER_EPOCH_BUMP_ON_ISR_SHRINK):
            return self.partition.leader
        return NO_LEADER_CHANGE

    def _new_recovery_state(self, elected: Elected) -> int:
        current = self.partition.leader_recovery_state
        if elected.is_unclean and current != RECOVERING and self.metadata_version >= LEADER_RECOVERY:
            return RECOVERING
        if self.target_recovery_state is None or self.target_recovery_state == current:
            return NO_RECOVERY_CHANGE
        return self.target_recovery_state

    def _new_directories(self, replicas: tuple[int, ...]) -> tuple[UUID, ...] | None:
        if self.metadata_version < DIRECTORIES or replicas == self.partition.replicas:
            return None
        known = dict(zip(self.partition.replicas, self.partition.directories, strict=True))
        directories = tuple(
            known[replica] if replica in known else self.default_directory(replica) for replica in replicas
        )
        return None if directories == self.partition.directories else directories


def _or(target: tuple[int, ...] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if target is None else target


def _changed(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if old == new else new


def _without(members: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(member for member in members if member not in removed)


def _is_reassigned(isr: tuple[int, ...], replicas: tuple[int, ...], removing: tuple[int, ...]) -> bool:
    """Whether all that are to stay are in sync, so that those to be removed can go."""
    staying = set(_without(replicas, removing))
    return bool(staying) and staying <= set(_without(isr, removing))
