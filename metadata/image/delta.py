"""MetadataDelta: replays records on an image, and makes the next image. `_REPLAY` says which part replays which record.

Long runs of PartitionRecords and PartitionChangeRecords do not pass `_REPLAY`: `metadata/image/loading.py` reads them
by columns, and `replay_partitions` and `replay_changes` replay them together.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from kquorum.metadata.image.cluster import BrokerRegistration, ClusterDelta, ControllerRegistration
from kquorum.metadata.image.configs import ConfigResource, ConfigsDelta
from kquorum.metadata.image.errors import CannotReplayError, ReplayError
from kquorum.metadata.image.features import FeaturesDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_changes import PartitionChanges
from kquorum.metadata.image.partitions import PartitionTable
from kquorum.metadata.image.quotas import ClientQuotasDelta, ProducerIdsDelta
from kquorum.metadata.image.security import SecurityDelta
from kquorum.metadata.image.topics import TopicsDelta
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.metadata_records import cluster, configs, features, security, topics
from kquorum.wire.schema import MetadataRecord


class MetadataDelta:
    """What a run of records changes on an image: `replay` them all, then `apply`.

    After a ReplayError the delta is of no more use. `changed_brokers` and `changed_controllers` hold None for what
    was removed. `registration_offsets` holds the offset of each broker's last registration in this delta,
    `audit_notes` the notes that it contains, in order.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.features = FeaturesDelta(image.features)
        self.cluster = ClusterDelta(image.cluster)
        self.topics = TopicsDelta(image.topics)
        self.configs = ConfigsDelta(image.configs)
        self.client_quotas = ClientQuotasDelta(image.client_quotas)
        self.producer_ids = ProducerIdsDelta(image.producer_ids)
        self.security = SecurityDelta(image.security)
        self.record_count = 0
        self.registration_offsets: dict[int, int] = {}
        self.audit_notes: list[bytes] = []

    @property
    def is_empty(self) -> bool:
        """Whether no record changed any state; no-ops and transaction markers do not."""
        return self.record_count == 0

    @property
    def changed_brokers(self) -> Mapping[int, BrokerRegistration | None]:
        return self.cluster.changed_brokers

    @property
    def changed_controllers(self) -> Mapping[int, ControllerRegistration | None]:
        return self.cluster.changed_controllers

    @property
    def changed_topics(self) -> Mapping[UUID, Collection[int]]:
        return self.topics.changed_topics

    @property
    def created_topic_ids(self) -> set[UUID]:
        return self.topics.created_topic_ids

    @property
    def deleted_topic_ids(self) -> set[UUID]:
        return self.topics.deleted_topic_ids

    @property
    def changed_configs(self) -> set[ConfigResource]:
        return self.configs.changed

    @property
    def changed_features(self) -> set[str]:
        return self.features.changed

    def replay(self, record: MetadataRecord, offset: int) -> None:
        """Raises ReplayError when the record contradicts the state that those before it made."""
        replay = _REPLAY.get(type(record))
        if replay is None:
            if isinstance(record, features.NoOpRecord):
                self._note(record)
            return
        try:
            replay(self, record)
        except CannotReplayError as error:
            raise ReplayError(offset, record, str(error)) from None
        self.record_count += 1
        if isinstance(record, cluster.RegisterBrokerRecord):
            self.registration_offsets[record.broker_id] = offset

    def replay_of_snapshot(self, record: MetadataRecord, ordinal: int) -> None:
        """A snapshot is one state: raises ReplayError also for a record that begins or ends a transaction."""
        if isinstance(record, _TRANSACTION_MARKERS):
            raise ReplayError(ordinal, record, "a snapshot has no transactions")
        self.replay(record, ordinal)

    def replay_partitions(self, tables: Sequence[tuple[UUID, PartitionTable]]) -> None:
        """Replay these rows as if each were a PartitionRecord; the topics must exist."""
        self.topics.replay_partitions(tables)
        self.record_count += sum(len(table) for _, table in tables)

    def replay_changes(self, changes: PartitionChanges) -> bool:
        """Replay these changes as if each were a PartitionChangeRecord. Returns False, and does nothing, if the caller
        must replay them one by one."""
        is_replayed = self.topics.replay_changes(changes)
        self.record_count += len(changes) if is_replayed else 0
        return is_replayed

    def apply(self, provenance: Provenance) -> MetadataImage:
        """The new image; parts that no record touched are the old image's objects."""
        return MetadataImage(
            provenance=provenance,
            features=self.features.image,
            cluster=self.cluster.image,
            topics=self.topics.apply(),
            configs=self.configs.image,
            client_quotas=self.client_quotas.image,
            producer_ids=self.producer_ids.image,
            security=self.security.apply(),
        )

    def become(self, target: MetadataImage) -> None:
        """Make this delta lead to `target`, the image of a loaded snapshot: what the snapshot lacks is deleted."""
        self.features.become(target.features)
        self.cluster.become(target.cluster)
        self.topics.become(target.topics)
        self.configs.become(target.configs)
        self.client_quotas.image = target.client_quotas
        self.producer_ids.image = target.producer_ids
        self.security = SecurityDelta(target.security)
        self.record_count += 0 if target.is_empty else 1
        for broker_id in target.cluster.brokers:
            self.registration_offsets[broker_id] = target.provenance.last_contained_offset

    def _note(self, record: features.NoOpRecord) -> None:
        for tag, value in record.unknown_tagged_fields:
            if tag == AUDIT_NOTE_TAG:
                self.audit_notes.append(value)


def _remove_topic(delta: MetadataDelta, record: topics.RemoveTopicRecord) -> None:
    topic = delta.topics.replay_remove_topic(record)
    delta.configs.remove_topic(topic.name)


_TRANSACTION_MARKERS = (
    features.BeginTransactionRecord,
    features.EndTransactionRecord,
    features.AbortTransactionRecord,
)
# Records that are not here change no state: NoOpRecord and the transaction markers.
_REPLAY: Mapping[type[MetadataRecord], Callable[[MetadataDelta, Any], None]] = {
    features.FeatureLevelRecord: lambda delta, record: delta.features.replay_feature_level(record),
    features.ZkMigrationStateRecord: lambda delta, record: delta.features.replay_zk_migration_state(record),
    features.ProducerIdsRecord: lambda delta, record: delta.producer_ids.replay_producer_ids(record),
    cluster.RegisterBrokerRecord: lambda delta, record: delta.cluster.replay_register_broker(record),
    cluster.UnregisterBrokerRecord: lambda delta, record: delta.cluster.replay_unregister_broker(record),
    cluster.FenceBrokerRecord: lambda delta, record: delta.cluster.replay_fence_broker(record),
    cluster.UnfenceBrokerRecord: lambda delta, record: delta.cluster.replay_unfence_broker(record),
    cluster.BrokerRegistrationChangeRecord: lambda delta, r: delta.cluster.replay_broker_registration_change(
        r
    ),
    cluster.RegisterControllerRecord: lambda delta, record: delta.cluster.replay_register_controller(record),
    cluster.UnregisterControllerRecord: lambda delta, record: delta.cluster.replay_unregister_controller(
        record
    ),
    topics.TopicRecord: lambda delta, record: delta.topics.replay_topic(record),
    topics.PartitionRecord: lambda delta, record: delta.topics.replay_partition(record),
    topics.PartitionChangeRecord: lambda delta, record: delta.topics.replay_partition_change(record),
    topics.RemoveTopicRecord: _remove_topic,
    topics.ClearElrRecord: lambda delta, record: delta.topics.replay_clear_elr(record),
    configs.ConfigRecord: lambda delta, record: delta.configs.replay_config(record),
    configs.ClientQuotaRecord: lambda delta, record: delta.client_quotas.replay_client_quota(record),
    security.AccessControlEntryRecord: lambda delta, record: delta.security.replay_access_control_entry(
        record
    ),
    security.RemoveAccessControlEntryRecord: lambda d, r: d.security.replay_remove_access_control_entry(r),
    security.UserScramCredentialRecord: lambda delta, record: delta.security.replay_user_scram_credential(
        record
    ),
    security.RemoveUserScramCredentialRecord: lambda d, r: d.security.replay_remove_user_scram_credential(r),
    security.DelegationTokenRecord: lambda delta, record: delta.security.replay_delegation_token(record),
    security.RemoveDelegationTokenRecord: lambda delta, r: delta.security.replay_remove_delegation_token(r),
}
