"""One partition: its row of the partition table, and how a change record alters it."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.errors import CannotReplayError
from kquorum.wire.drafts import draft_of
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERED = 0
RECOVERING = 1
NO_RECOVERY_CHANGE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Replicas come in order of preference.

    Invariant: `directories` has one id for each replica, in the same order.
    """

    replicas: tuple[int, ...]
    directories: tuple[UUID, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_recovery_state: int = RECOVERED
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def preferred_replica(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    def directory_of(self, replica_id: int) -> UUID:
        """MIGRATING for a broker that holds no replica."""
        for index, replica in enumerate(self.replicas):
            if replica == replica_id:
                return self.directories[index]
        return MIGRATING


# A million of them are made when a large log is replayed: see `draft_of` for what this saves.
StateDraft: Final = draft_of(PartitionState)


def partition_from_record(record: PartitionRecord) -> PartitionState:
    """The state that a PartitionRecord of any version creates; raises CannotReplayError."""
    state = StateDraft()
    state.replicas = record.replicas
    state.directories = _directories(record.directories, record.replicas)
    state.isr = record.isr
    state.removing_replicas = record.removing_replicas
    state.adding_replicas = record.adding_replicas
    state.leader = record.leader
    state.leader_recovery_state = record.leader_recovery_state
    state.leader_epoch = record.leader_epoch
    state.partition_epoch = record.partition_epoch
    state.elr = record.eligible_leader_replicas or ()
    state.last_known_elr = record.last_known_elr or ()
    state.__class__ = PartitionState
    made: PartitionState = state
    return made


def partition_after_change(state: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """Every change bumps the partition epoch; one that names a leader, even the same, bumps the leader epoch too."""
    has_leader = change.leader != NO_LEADER_CHANGE
    replicas = state.replicas if change.replicas is None else change.replicas
    after = StateDraft()
    after.replicas = replicas
    after.directories = _changed_directories(state, change, replicas)
    after.isr = state.isr if change.isr is None else change.isr
    after.removing_replicas = _changed(state.removing_replicas, change.removing_replicas)
    after.adding_replicas = _changed(state.adding_replicas, change.adding_replicas)
    after.leader = change.leader if has_leader else state.leader
    after.leader_recovery_state = _changed_recovery(state, change)
    after.leader_epoch = state.leader_epoch + 1 if has_leader else state.leader_epoch
    after.partition_epoch = state.partition_epoch + 1
    after.elr = _changed(state.elr, change.eligible_leader_replicas)
    after.last_known_elr = _changed(state.last_known_elr, change.last_known_elr)
    after.__class__ = PartitionState
    made: PartitionState = after
    return made


def _changed(old: tuple[int, ...], new: tuple[int, ...] | None) -> tuple[int, ...]:
    return old if new is None else new


def _changed_recovery(state: PartitionState, change: PartitionChangeRecord) -> int:
    if change.leader_recovery_state == NO_RECOVERY_CHANGE:
        return state.leader_recovery_state
    return change.leader_recovery_state


def _changed_directories(
    state: PartitionState, change: PartitionChangeRecord, replicas: tuple[int, ...]
) -> tuple[UUID, ...]:
    if change.directories is not None:
        return _directories(change.directories, replicas)
    if replicas == state.replicas:
        return state.directories
    return tuple(state.directory_of(replica) for replica in replicas)


def _directories(directories: tuple[UUID, ...], replicas: tuple[int, ...]) -> tuple[UUID, ...]:
    """Records from before directories existed leave them out: every replica is MIGRATING then."""
    if not directories:
        return (MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise CannotReplayError(f"{len(directories)} directories for {len(replicas)} replicas")
    return directories
