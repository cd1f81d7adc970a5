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
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.schema import MetadataRecord


class MetadataDelta:
    """What a run of records changes on an image: `replay` them all, then `apply`.

    The delta of each part is made when it is first asked for: nearly every change is of one part. After a ReplayError
    the delta is of no more use. `changed_brokers` and `changed_controllers` hold None for what was removed.
    `registration_offsets` holds the offset of each broker's last registration in this delta, `audit_notes` the notes
    that it contains, in order.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._features: FeaturesDelta | None = None
        self._cluster: ClusterDelta | None = None
        self._topics: TopicsDelta | None = None
        self._configs: ConfigsDelta | None = None
        self._client_quotas: ClientQuotasDelta | None = None
        self._producer_ids: ProducerIdsDelta | None = None
        self._security: SecurityDelta | None = None
        self.record_count = 0
        self.registration_offsets: dict[int, int] = {}
        self.audit_notes: list[bytes] = []

    @property
    def features(self) -> FeaturesDelta:
        part = self._features
        if part is None:
            part = self._features = FeaturesDelta(self.image.features)
        return part

    @property
    def cluster(self) -> ClusterDelta:
        part = self._cluster
        if part is None:
            part = self._cluster = ClusterDelta(self.image.cluster)
        return part

    @property
    def topics(self) -> TopicsDelta:
        part = self._topics
        if part is None:
            part = self._topics = TopicsDelta(self.image.topics)
        return part

    @property
    def configs(self) -> ConfigsDelta:
        part = self._configs
        if part is None:
            part = self._configs = ConfigsDelta(self.image.configs)
        return part

    @property
    def client_quotas(self) -> ClientQuotasDelta:
        part = self._client_quotas
        if part is None:
            part = self._client_quotas = ClientQuotasDelta(self.image.client_quotas)
        return part

    @property
    def producer_ids(self) -> ProducerIdsDelta:
        part = self._producer_ids
        if part is None:
            part = self._producer_ids = ProducerIdsDelta(self.image.producer_ids)
        return part

    @property
    def security(self) -> SecurityDelta:
        part = self._security
        if part is None:
            part = self._security = SecurityDelta(self.image.security)
        return part

    @property
    def is_empty(self) -> bool:
        """Whether no record changed any state; no-ops and transaction markers do not."""
        return self.record_count == 0

    @property
    def changed_brokers(self) -> Mapping[int, BrokerRegistration | None]:
        return {} if self._cluster is None else self._cluster.changed_brokers

    @property
    def changed_controllers(self) -> Mapping[int, ControllerRegistration | None]:
        return {} if self._cluster is None else self._cluster.changed_controllers

    @property
    def changed_topics(self) -> Mapping[UUID, Collection[int]]:
        return {} if self._topics is None else self._topics.changed_topics

    @property
    def created_topic_ids(self) -> set[UUID]:
        return set() if self._topics is None else self._topics.created_topic_ids

    @property
    def deleted_topic_ids(self) -> set[UUID]:
        return set() if self._topics is None else self._topics.deleted_topic_ids

    @property
    def changed_configs(self) -> set[ConfigResource]:
        return set() if self._configs is None else self._configs.changed

    @property
    def changed_features(self) -> set[str]:
        return set() if self._features is None else self._features.changed

    @property
    def touches_topics(self) -> bool:
        return self._topics is not None

    def replay(self, record: MetadataRecord, offset: int) -> None:
        """Raises ReplayError when the record contradicts the state that those before it made."""
        replay = _REPLAY.get(type(record))
        if replay is None:
            if isinstance(record, NoOpRecord):
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
        old = self.image
        return MetadataImage(
            provenance=provenance,
            features=old.features if self._features is None else self._features.image,
            cluster=old.cluster if self._cluster is None else self._cluster.image,
            topics=old.topics if self._topics is None else self._topics.apply(),
            configs=old.configs if self._configs is None else self._configs.image,
            client_quotas=old.client_quotas if self._client_quotas is None else self._client_quotas.image,
            producer_ids=old.producer_ids if self._producer_ids is None else self._producer_ids.image,
            security=old.security if self._security is None else self._security.apply(),
        )

    def absorb(self, later: "MetadataDelta") -> bool:
        """Take over what `later` changes on the image that this delta led to, so that this delta leads to its image.
        Returns False, and does nothing, where both change a part whose changes do not add up simply."""
        if (
            (self._topics is not None and later._topics is not None)
            or (self._cluster is not None and later._cluster is not None)
            or (self._features is not None and later._features is not None)
            or (self._security is not None and later._security is not None)
        ):
            return False
        # A part that this delta leaves alone is the same in both images, so the later delta of it is good for both.
        self._features = self._features or later._features
        self._cluster = self._cluster or later._cluster
        self._topics = self._topics or later._topics
        self._security = self._security or later._security
        if later._configs is not None:
            self._configs = later._configs.after(self._configs)
        if later._client_quotas is not None:
            self._client_quotas = later._client_quotas.after(self._client_quotas)
        self._producer_ids = later._producer_ids or self._producer_ids
        self.record_count += later.record_count
        self.registration_offsets.update(later.registration_offsets)
        self.audit_notes += later.audit_notes
        return True

    def become(self, target: MetadataImage) -> None:
        """Make this delta lead to `target`, the image of a loaded snapshot: what the snapshot lacks is deleted."""
        self.features.become(target.features)
        self.cluster.become(target.cluster)
        self.topics.become(target.topics)
        self.configs.become(target.configs)
        self.client_quotas.image = target.client_quotas
        self.producer_ids.image = target.producer_ids
        self._security = SecurityDelta(target.security)
        self.record_count += 0 if target.is_empty else 1
        for broker_id in target.cluster.brokers:
            self.registration_offsets[broker_id] = target.provenance.last_contained_offset

    def _note(self, record: NoOpRecord) -> None:
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
