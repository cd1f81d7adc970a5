"""Records about feature levels, producer ids and the log itself: no-ops, transactions, the migration's state."""

from kquorum.wire.schema import MetadataRecord, kafka, metadata_record


@metadata_record(api_key=12, versions=(0, 0))
class FeatureLevelRecord(MetadataRecord):
    """A feature is finalised at a level; 0 removes it. metadata.version comes first in a log or snapshot."""

    name: str = kafka("string")
    feature_level: int = kafka("int16")


@metadata_record(api_key=15, versions=(0, 0))
class ProducerIdsRecord(MetadataRecord):
    """A block of producer ids is handed to a broker; `next_producer_id` is the first of the block after it."""

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64", default=-1)
    next_producer_id: int = kafka("int64")


@metadata_record(api_key=20, versions=(0, 0))
class NoOpRecord(MetadataRecord):
    """Keeps an idle log moving; brokers and controllers see that the active controller lives (KIP-835)."""


@metadata_record(api_key=21, versions=(0, 0))
class ZkMigrationStateRecord(MetadataRecord):
    """State of the migration from ZooKeeper: 0 none, 1 migration, 2 before it, 3 after it (KIP-866)."""

    zk_migration_state: int = kafka("int8")


@metadata_record(api_key=23, versions=(0, 0))
class BeginTransactionRecord(MetadataRecord):
    """The records from here to the end of the transaction take effect together or not at all (KIP-868)."""

    name: str | None = kafka("string", default=None, tag=0, nullable=True)


@metadata_record(api_key=24, versions=(0, 0))
class EndTransactionRecord(MetadataRecord):
    """The transaction takes effect."""


@metadata_record(api_key=25, versions=(0, 0))
class AbortTransactionRecord(MetadataRecord):
    """The transaction is discarded."""

    reason: str | None = kafka("string", default=None, tag=0, nullable=True)
