"""The records of a broker's state changes: fenced, unfenced, in controlled shutdown (rule C8; KIP-631, KIP-841).

Their order matters to a reader that has replayed only some of them: a broker leaves its ISRs before it is fenced, and
is unfenced before it leads.
"""

from collections.abc import Collection
from uuid import UUID

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.metadata_version import (
    BROKER_REGISTRATION_CHANGE_RECORD,
    CORDONED_DIRECTORIES,
    IN_CONTROLLED_SHUTDOWN_STATE,
)
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
)
from kquorum.wire.schema import MetadataRecord

FENCE = 1
UNFENCE = -1


def fence_record(context: DecisionContext, broker: BrokerRegistration) -> MetadataRecord:
    """Comes after the partitions that the broker leaves if both are one decision, else before all of them."""
    if context.metadata_version < BROKER_REGISTRATION_CHANGE_RECORD:
        return FenceBrokerRecord(id=broker.id, epoch=broker.epoch)
    return BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)


def unfence_record(context: DecisionContext, broker: BrokerRegistration) -> MetadataRecord:
    """Comes before the partitions that the broker then leads."""
    if context.metadata_version < BROKER_REGISTRATION_CHANGE_RECORD:
        return UnfenceBrokerRecord(id=broker.id, epoch=broker.epoch)
    return BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)


def controlled_shutdown_records(context: DecisionContext, broker: BrokerRegistration) -> list[MetadataRecord]:
    """The broker's controlled shutdown, if the metadata.version has a field for it; before the partitions that get
    other leaders."""
    if context.metadata_version < IN_CONTROLLED_SHUTDOWN_STATE or broker.in_controlled_shutdown:
        return []
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
    ]


def online_directories_records(broker: BrokerRegistration, failed: Collection[UUID]) -> list[MetadataRecord]:
    """The broker's remaining online directories (KIP-858). With none left the broker is about to stop, and no record is
    written."""
    online = tuple(sorted(set(broker.log_dirs) - set(failed)))
    if not online:
        return []
    return [BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online)]


def cordoned_directories_records(
    context: DecisionContext, broker: BrokerRegistration, sent: tuple[UUID, ...] | None
) -> list[MetadataRecord]:
    """The directories that are to take no new replicas (KIP-1066), where they changed; None says nothing."""
    if sent is None or context.metadata_version < CORDONED_DIRECTORIES:
        return []
    if broker.cordoned_log_dirs is not None and set(sent) == set(broker.cordoned_log_dirs):
        return []
    return [
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=sent)
    ]
