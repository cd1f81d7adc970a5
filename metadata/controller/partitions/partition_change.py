"""The change record of one partition: election, epochs, eligible leader replicas, completion of a reassignment.

Rules C9, C10 and C12: KIP-631, KIP-966 and Kafka's PartitionChangeBuilder. An eligible leader replica (ELR) has left
an ISR that was or became smaller than min.insync.replicas. Nothing is committed while the ISR is that small, so the
replica has all that is committed, unless it crashed since. `unclean_shutdown_replicas` names the replicas that crashed.

These records differ from Kafka's where Kafka's would lose or hide something (docs/divergence.md): an eligible replica
must still be a replica; the last known leader must be able to lead; the last member of an ISR without a leader is
remembered by its own id.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from uuid import UUID

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.image.directories import is_online
from kquorum.metadata.image.metadata_version import (
    DIRECTORIES,
    LEADER_RECOVERY,
    NO_LEADER_EPOCH_BUMP_ON_ISR_SHRINK,
)
from kquorum.metadata.image.partition_state import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionState,
)
from kquorum.metadata.image.partitions import Column
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.metadata_records.topics import PartitionChangeRecord


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
    """A change of one partition: set the `target_*` fields to the wanted state, then call `record`.

    `is_acceptable` says which brokers may lead. `min_in_sync_replicas` is the topic's, and may exceed the number of
    replicas; None if the cluster does not keep eligible leader replicas. `target_directories` has only the replicas
    whose directory changes.
    """

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
    target_directories: Mapping[int, UUID] = field(default_factory=dict)
    min_in_sync_replicas: int | None = None
    unclean_shutdown_replicas: tuple[int, ...] = ()

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
        # The order matters: an election reads the eligible replicas, and the ISR, leader and ELR of the record all
        # follow from its result.
        eligible = self._eligible(isr, replicas)
        elected = self._elect(isr, replicas, eligible)
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
            eligible_leader_replicas=_changed_members(
                partition.elr, self._new_elr(isr, replicas, eligible, elected)
            ),
            last_known_elr=_changed(partition.last_known_elr, self._new_last_known(new_isr, elected)),
        )
        is_change = record != PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id)
        return record if is_change else None

    def _eligible(self, isr: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
        """The replicas that have all committed records without being in sync (KIP-966): a replica that leaves an ISR
        below min.insync.replicas stays eligible.

        Where the cluster no longer keeps the list, it holds only if the ISR was empty: nothing was written since.
        """
        partition = self.partition
        if self.min_in_sync_replicas is None:
            members = set() if partition.isr else set(partition.elr)
        elif self._is_enough(isr, replicas):
            members = set()
        else:
            members = {*partition.elr, *partition.isr} - set(isr)
        return tuple(sorted((members & set(replicas)) - set(self.unclean_shutdown_replicas)))

    def _is_enough(self, in_sync: tuple[int, ...], replicas: tuple[int, ...]) -> bool:
        """Whether the partition takes writes without the replicas that are not in sync."""
        assert self.min_in_sync_replicas is not None, "only where eligible leader replicas are kept"
        return len(in_sync) >= min(self.min_in_sync_replicas, len(replicas))

    def _elect(self, isr: tuple[int, ...], replicas: tuple[int, ...], eligible: tuple[int, ...]) -> Elected:
        """The new leader (rule C9): the first acceptable choice that has all committed records. Choices are the current
        leader, then the replicas in order; a PREFERRED election begins with the first replica. If no replica has all
        records, the last known leader. Otherwise no leader, or in an UNCLEAN election any acceptable replica."""
        # A leader must be in the ISR. Eligible replicas count only while it is empty; the elected one is then the ISR
        # (KIP-966).
        complete = isr or eligible
        choices = (self.partition.leader, *replicas)
        if self.election is Election.PREFERRED:
            choices = (*replicas[:1], *choices)
        for choice in choices:
            if choice in complete and self.is_acceptable(choice):
                return Elected(choice)
        if not complete:
            last_known = self._last_known_leader()
            if last_known in replicas and self.is_acceptable(last_known):
                return Elected(last_known, is_unclean=True)
        if self.election is Election.UNCLEAN:
            for replica in replicas:
                if self.is_acceptable(replica):
                    return Elected(replica, is_unclean=True)
        return Elected(NO_LEADER)

    def _last_known_leader(self) -> int:
        """If several are recorded, they are members of an earlier ISR, written by a controller that was configured not
        to elect any: none of them is known to have led."""
        known = self.partition.last_known_elr
        return known[0] if self.min_in_sync_replicas is not None and len(known) == 1 else NO_LEADER

    def _new_elr(
        self, isr: tuple[int, ...], replicas: tuple[int, ...], eligible: tuple[int, ...], elected: Elected
    ) -> tuple[int, ...]:
        """A list that is no longer maintained stays while it is the only record of which replicas have the data."""
        # The leader may lack records that the eligible replicas have. They now diverge from it, and may not lead.
        if elected.is_unclean:
            return ()
        in_sync = isr or ((elected.leader,) if elected.leader != NO_LEADER else ())
        is_over = bool(in_sync) if self.min_in_sync_replicas is None else self._is_enough(in_sync, replicas)
        return () if is_over else _without(eligible, in_sync)

    def _new_last_known(self, new_isr: tuple[int, ...] | None, elected: Elected) -> tuple[int, ...]:
        """The leader at the time the ISR became empty, until the partition has a leader again. If the other replicas
        crashed as well, only this says where the data is."""
        partition = self.partition
        if self.min_in_sync_replicas is None:
            return partition.last_known_elr
        if elected.leader != NO_LEADER:
            return ()
        if new_isr == () and partition.leader != NO_LEADER:
            return (partition.leader,)
        # The leader was lost earlier, and the last member of the ISR leaves only now. Kafka records NO_LEADER here.
        if new_isr == () and len(partition.isr) == 1:
            return partition.last_known_elr or partition.isr
        return partition.last_known_elr

    def _new_isr(self, isr: tuple[int, ...], elected: Elected) -> tuple[int, ...] | None:
        """The leader elected from an empty ISR is its only member. Without eligible replicas the last member stays in
        the ISR when it leaves, because it alone has all committed records."""
        if elected.is_unclean or (not isr and elected.leader != NO_LEADER):
            return (elected.leader,)
        may_be_empty = self.min_in_sync_replicas is not None
        return _changed(self.partition.isr, isr) if isr or may_be_empty else None

    def _new_leader(
        self, elected: Elected, new_isr: tuple[int, ...] | None, replicas: tuple[int, ...]
    ) -> int:
        """Naming the same leader again bumps its epoch, which makes replicas that were dropped stop."""
        if elected.leader != self.partition.leader:
            return elected.leader
        lost_replica = not set(self.partition.replicas) <= set(replicas)
        shrank = new_isr is not None and not set(self.partition.isr) <= set(new_isr)
        # KAFKA-15021: since metadata.version 3.6-IV0 a shrunk ISR alone does not bump the epoch. Followers that stay
        # need not fetch with a new one then.
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
        if self.metadata_version < DIRECTORIES:
            return None
        if replicas == self.partition.replicas and not self.target_directories:
            return None
        known = dict(zip(self.partition.replicas, self.partition.directories, strict=True))
        known.update(self.target_directories)
        directories = tuple(
            known[replica] if replica in known else self.default_directory(replica) for replica in replicas
        )
        return None if directories == self.partition.directories else directories


def _or(target: tuple[int, ...] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if target is None else target


def _changed(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if old == new else new


def _changed_members(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Compared as sets: the order has no meaning."""
    return None if set(old) == set(new) else new


def _without(members: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(member for member in members if member not in removed)


def _is_reassigned(isr: tuple[int, ...], replicas: tuple[int, ...], removing: tuple[int, ...]) -> bool:
    """Whether all target replicas are in sync, so that the removed ones can be dropped."""
    staying = set(_without(replicas, removing))
    return bool(staying) and staying <= set(_without(isr, removing))


Affected = Iterable[tuple[TopicImage, Column]]


def acceptable_leaders(
    context: DecisionContext,
    state: PartitionState,
    broker_to_remove: int | None = None,
    broker_to_add: int | None = None,
    unclean_broker: int | None = None,
) -> Callable[[int], bool]:
    """Which brokers may lead a partition. While a fence or an unfence is being decided, the image still has the
    broker's old state: here it counts with the new one. A broker whose removal takes many turns counts as fenced."""
    brokers = context.image.cluster.brokers
    excluded = (broker_to_remove, unclean_broker)

    def is_acceptable(broker_id: int) -> bool:
        broker = brokers.get(broker_id)
        if broker is None or broker_id in excluded or context.liveness.is_being_removed(broker_id):
            return False
        if broker_id != broker_to_add and not broker.is_active:
            return False
        return is_online(state.directory_of(broker_id), broker.log_dirs)

    return is_acceptable


def leader_and_isr_records(
    context: DecisionContext,
    affected: Affected,
    *,
    broker_to_remove: int | None = None,
    broker_to_add: int | None = None,
    unclean_broker: int | None = None,
    is_affected: Callable[[PartitionState], bool] | None = None,
) -> Iterator[PartitionChangeRecord]:
    """A change for each affected partition that needs one. `unclean_broker` crashed: it is neither in sync nor eligible
    any more."""
    leaving = (broker_to_remove, unclean_broker)
    for topic, partition_ids in affected:
        election = Election.UNCLEAN if context.allows_unclean_election(topic.name) else Election.ONLINE
        min_in_sync_replicas = context.min_in_sync_replicas(topic.name)
        for partition_id in partition_ids.tolist():
            state = topic.partitions.get(partition_id)
            assert state is not None, "a query of a table answers ids that the table has"
            if is_affected is not None and not is_affected(state):
                continue
            record = PartitionChange(
                topic_id=topic.id,
                partition_id=partition_id,
                partition=state,
                metadata_version=context.metadata_version,
                is_acceptable=acceptable_leaders(
                    context, state, broker_to_remove, broker_to_add, unclean_broker
                ),
                default_directory=context.default_directory,
                election=election,
                target_isr=tuple(member for member in state.isr if member not in leaving),
                min_in_sync_replicas=min_in_sync_replicas,
                unclean_shutdown_replicas=() if unclean_broker is None else (unclean_broker,),
            ).record()
            if record is not None:
                yield record


def change_of(
    context: DecisionContext,
    topic: TopicImage,
    partition_id: int,
    state: PartitionState,
    election: Election = Election.ONLINE,
    **targets: Any,
) -> PartitionChange:
    """`targets` are fields of PartitionChange."""
    return PartitionChange(
        topic_id=topic.id,
        partition_id=partition_id,
        partition=state,
        metadata_version=context.metadata_version,
        is_acceptable=acceptable_leaders(context, state),
        default_directory=context.default_directory,
        election=election,
        min_in_sync_replicas=context.min_in_sync_replicas(topic.name),
        **targets,
    )
