"""The records of a broker's way through its states: fenced, unfenced, leaving, gone.

Order matters to readers between two records: who is fenced leaves the ISRs first; who is unfenced is so before it
leads.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from uuid import UUID

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.partition_change import Election, PartitionChange
from metadata.image.cluster import BrokerRegistration
from metadata.image.directories import is_online
from metadata.image.metadata_version import (
    BROKER_REGISTRATION_CHANGE_RECORD,
    CORDONED_DIRECTORIES,
    IN_CONTROLLED_SHUTDOWN_STATE,
)
from metadata.image.partition_columns import Column
from metadata.image.partition_state import PartitionState
from metadata.image.topics import TopicImage
from wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
)
from wire.metadata_records.topics import PartitionChangeRecord
from wire.schema import MetadataRecord
from wire.uuids import ZERO_UUID

FENCE = 1
UNFENCE = -1

Affected = Iterable[tuple[TopicImage, Column]]


def fence_record(context: DecisionContext, broker: BrokerRegistration) -> MetadataRecord:
    """It comes after the partitions that the broker leaves, in one decision with these; or before them all."""
    if context.metadata_version < BROKER_REGISTRATION_CHANGE_RECORD:
        return FenceBrokerRecord(id=broker.id, epoch=broker.epoch)
    return BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)


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


def online_directories_records(broker: BrokerRegistration, failed: Collection[UUID]) -> list[MetadataRecord]:
    """The directories that are left to a broker (KIP-858); without any it is about to stop, and nothing is said."""
    online = tuple(sorted(set(broker.log_dirs) - set(failed)))
    if not online:
        return []
    return [BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online)]


def cordoned_directories_records(
    context: DecisionContext, broker: BrokerRegistration, told: Iterable[UUID | None] | None
) -> list[MetadataRecord]:
    """The directories that are to take no new replicas (KIP-1066), where they changed; None tells nothing."""
    if told is None or context.metadata_version < CORDONED_DIRECTORIES:
        return []
    cordoned = tuple(each or ZERO_UUID for each in told)
    if broker.cordoned_log_dirs is not None and set(cordoned) == set(broker.cordoned_log_dirs):
        return []
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned
        )
    ]


def acceptable_leaders(
    context: DecisionContext,
    state: PartitionState,
    broker_to_remove: int | None = None,
    broker_to_add: int | None = None,
    unclean_broker: int | None = None,
) -> Callable[[int], bool]:
    """Who may lead a partition.

    While a fence or an unfence is being decided, the image still shows the broker as it was: it counts here as what
    it is about to be. So does who is being removed in many turns.
    """
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
    is_concerned: Callable[[PartitionState], bool] | None = None,
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
            if is_concerned is not None and not is_concerned(state):
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
