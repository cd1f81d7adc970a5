"""What a controller writes first when it becomes active (KIP-868)."""

from metadata.controller.config import ControllerConfig
from metadata.image.metadata_version import MINIMUM_METADATA_VERSION, TRANSACTIONS
from metadata.loader import MetadataLoader
from snapshots.bootstrap import metadata_version_of
from wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from wire.schema import MetadataRecord

BOOTSTRAP_TRANSACTION_NAME = "Bootstrap records"
FAILOVER_REASON = "Controller failover"


def activation_records(config: ControllerConfig, loader: MetadataLoader) -> tuple[MetadataRecord, ...]:
    """End a transaction that the last controller left open, and fill a log that holds no data yet."""
    records: list[MetadataRecord] = []
    if loader.transaction_start_offset is not None:
        records.append(AbortTransactionRecord(reason=FAILOVER_REASON))
    if not loader.has_data:
        records += _bootstrap(config)
    return tuple(records)


def _bootstrap(config: ControllerConfig) -> list[MetadataRecord]:
    level = metadata_version_of(config.bootstrap_records) or MINIMUM_METADATA_VERSION
    if level < TRANSACTIONS:
        return list(config.bootstrap_records)
    begin = BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION_NAME)
    return [begin, *config.bootstrap_records, EndTransactionRecord()]
