"""All metadata records, and each by the type number that stands in its frame."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from wire.metadata_records import cluster, configs, features, security, topics
from wire.schema import MetadataRecord

ALL: Final[tuple[type[MetadataRecord], ...]] = (
    cluster.RegisterBrokerRecord,
    cluster.UnregisterBrokerRecord,
    topics.TopicRecord,
    topics.PartitionRecord,
    configs.ConfigRecord,
    topics.PartitionChangeRecord,
    cluster.FenceBrokerRecord,
    cluster.UnfenceBrokerRecord,
    topics.RemoveTopicRecord,
    security.DelegationTokenRecord,
    security.UserScramCredentialRecord,
    features.FeatureLevelRecord,
    configs.ClientQuotaRecord,
    features.ProducerIdsRecord,
    cluster.BrokerRegistrationChangeRecord,
    security.AccessControlEntryRecord,
    security.RemoveAccessControlEntryRecord,
    features.NoOpRecord,
    features.ZkMigrationStateRecord,
    security.RemoveUserScramCredentialRecord,
    features.BeginTransactionRecord,
    features.EndTransactionRecord,
    features.AbortTransactionRecord,
    security.RemoveDelegationTokenRecord,
    cluster.RegisterControllerRecord,
    topics.ClearElrRecord,
    cluster.UnregisterControllerRecord,
)

BY_API_KEY: Final[Mapping[int, type[MetadataRecord]]] = MappingProxyType({cls.api_key: cls for cls in ALL})
