"""The records of a broker's way through its states: fenced, unfenced, leaving, gone.

Order matters to readers between two records: who is fenced leaves the ISRs first; who is unfenced is so before it
leads.
"""

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from metadata.controller.context import DecisionContext
from metadata.controller.partition_change import Election, PartitionChange
from metadata.image.cluster import BrokerRegistration
from metadata.image.directories import is_online
from metadata.image.metadata_version import (
    BROKER_REGISTRATION_CHANGE_RECORD,
    IN_CONTROLLED_SHUTDOWN_STATE,
)
from metadata.image.partition_columns import Column
from metadata.image.partition_state import NO_LEADER, PartitionState
from metadata.image.topics import TopicImage
from wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from wire.metadata_records.topics import PartitionChangeRecord
from wire.schema import MetadataRecord

FENCE = 1
UNFENCE = -1

Affected = Iterable[tuple[TopicImage, Column]]


def fence_records(context: DecisionContext, broker: BrokerRegistration) -> list[MetadataRecord]:
    records = _without_broker(context, broker.id)
    if context.metadata_version < BROKER_REGISTRATION_CHANGE_RECORD:
        return [*records, FenceBrokerRecord(id=broker.id, epoch=broker.epoch)]
    return [
        *records,
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE),
    ]


def unfence_record(context: DecisionContext, broker: BrokerRegistration) -> MetadataRecord:
    """It comes before the partitions that the broker leads then."""
    if context.metadata_version < BROKER_REGISTRATION_CHANGE_RECORD:
        return UnfenceBrokerRecord(id=broker.id, epoch=broker.epoch)
    return BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)


def controlled_shutdown_records(context: DecisionContext, broker: BrokerRegistration) -> list[MetadataRecord]:
    """That it leaves, where the level can say so; before the partitions that others lead then."""
    if context.metadata_version < IN_CONTROLLED_SHUTDOWN_STATE or broker.in_controlled_shutdown:
        return []
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
    ]


def unregister_records(context: DecisionContext, broker: BrokerRegistration) -> list[MetadataRecord]:
    unregister = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return [*_without_broker(context, broker.id), unregister]


def offline_directory_records(
    context: DecisionContext, broker: BrokerRegistration, offline: Iterable[UUID]
) -> list[MetadataRecord]:
    """The broker leaves ISR and leadership where its replica lies in a directory that failed (KIP-858)."""
    failed = set(offline) & set(broker.log_dirs)
    if not failed:
        return []
    affected = _affected(context, lambda topic: topic.partitions.in_isr(broker.id))
    records: list[MetadataRecord] = list(
        leader_and_isr_records(
            context,
            affected,
            broker_to_remove=broker.id,
            is_concerned=lambda state: state.directory_of(broker.id) in failed,
        )
    )
    online = tuple(sorted(set(broker.log_dirs) - failed))
    if online:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online
        )
        records.append(change)
    return records


def acceptable_leaders(
    context: DecisionContext,
    state: PartitionState,
    broker_to_remove: int | None = None,
    broker_to_add: int | None = None,
) -> Callable[[int], bool]:
    """Who may lead a partition.

    While a fence or an unfence is being decided, the image still shows the broker as it was: it counts here as what
    it is about to be.
    """
    brokers = context.image.cluster.brokers

    def is_acceptable(broker_id: int) -> bool:
        broker = brokers.get(broker_id)
        if broker is None or broker_id == broker_to_remove:
            return False
        if broker_id != broker_to_add and not broker.is_active:
            return False
        return is_online(state.directory_of(broker_id), broker.log_dirs)

    return is_acceptable


def _without_broker(context: DecisionContext, broker_id: int) -> list[MetadataRecord]:
    affected = _affected(context, lambda topic: topic.partitions.in_isr(broker_id))
    return list(leader_and_isr_records(context, affected, broker_to_remove=broker_id))


def _affected(context: DecisionContext, query: Callable[[TopicImage], Column]) -> Affected:
    for topic in context.image.topics.by_id.values():
        partition_ids = query(topic)
        if len(partition_ids):
            yield topic, partition_ids


def is_left_alone(state: PartitionState, broker_id: int | None) -> bool:
    """Whether nothing is left to be done when this broker goes: it is the last of the ISR, which may as well keep it,
    and nobody leads, or is eligible to. A million such partitions must not be gone through in vain."""
    has_rare_lists = state.adding_replicas or state.removing_replicas or state.elr
    return state.leader == NO_LEADER and state.isr == (broker_id,) and not has_rare_lists


def leader_and_isr_records(
    context: DecisionContext,
    affected: Affected,
    *,
    broker_to_remove: int | None = None,
    broker_to_add: int | None = None,
    is_concerned: Callable[[PartitionState], bool] | None = None,
) -> Iterator[PartitionChangeRecord]:
    """A change for each affected partition that needs one."""
    for topic, partition_ids in affected:
        election = Election.UNCLEAN if context.allows_unclean_election(topic.name) else Election.ONLINE
        min_in_sync_replicas = context.min_in_sync_replicas(topic.name)
        for partition_id in partition_ids.tolist():
            state = topic.partitions.get(partition_id)
            assert state is not None, "a query of a table answers ids that the table has"
            if is_concerned is not None and not is_concerned(state):
                continue
            if election is Election.ONLINE and is_left_alone(state, broker_to_remove):
                continue
            record = PartitionChange(
                topic_id=topic.id,
                partition_id=partition_id,
                partition=state,
                metadata_version=context.metadata_version,
                is_acceptable=acceptable_leaders(context, state, broker_to_remove, broker_to_add),
                default_directory=context.default_directory,
                election=election,
                target_isr=tuple(member for member in state.isr if member != broker_to_remove),
                min_in_sync_replicas=min_in_sync_replicas,
            ).record()
            if record is not None:
                yield record
