"""What a controller writes first when it becomes active (KIP-868)."""

from metadata.controller.config import ControllerConfig
from metadata.image.metadata_version import METADATA_VERSION, MINIMUM_METADATA_VERSION, TRANSACTIONS
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


class LogUnsupported(Exception):
    """No controller of this version may write into the log that there is; fatal, for nothing can be decided."""


def activation_records(config: ControllerConfig, loader: MetadataLoader) -> tuple[MetadataRecord, ...]:
    """End a transaction that the last controller left open, and fill a log that holds no data yet.

    Raises LogUnsupported for a log that holds data and no metadata.version.
    """
    if loader.has_data and METADATA_VERSION not in loader.image.features.finalized:
        raise LogUnsupported(
            "the metadata log holds records but no metadata.version, so a Kafka older than 3.3 wrote it: let Kafka "
            "3.3 to 3.9 upgrade it first (kafka-features.sh upgrade --metadata). No metadata was written into it"
        )
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
