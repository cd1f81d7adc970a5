"""The first records of a new active controller (KIP-868)."""

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions.elr import cluster_minimum
from kquorum.metadata.image.metadata_version import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
    TRANSACTIONS,
)
from kquorum.metadata.loader import MetadataLoader
from kquorum.snapshots.bootstrap import metadata_version_of
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from kquorum.wire.schema import MetadataRecord

BOOTSTRAP_TRANSACTION_NAME = "Bootstrap records"
FAILOVER_REASON = "Controller failover"


class LogUnsupported(Exception):
    """This program must not write into the existing log; fatal, because no request can be decided."""


def activation_records(config: ControllerConfig, loader: MetadataLoader) -> tuple[MetadataRecord, ...]:
    """Abort a transaction that the previous controller left open, and initialize an empty log. Raises LogUnsupported
    for a log with data but no metadata.version, or with an open transaction that its metadata.version cannot end."""
    if loader.has_data and METADATA_VERSION not in loader.image.features.finalized:
        raise LogUnsupported(
            "the metadata log holds records but no metadata.version, so a Kafka older than 3.3 wrote it: let Kafka "
            "3.3 to 3.9 upgrade it first (kafka-features.sh upgrade --metadata). No metadata was written into it"
        )
    records: list[MetadataRecord] = []
    if loader.transaction_start_offset is not None:
        _check_transactions(config, loader)
        records.append(AbortTransactionRecord(reason=FAILOVER_REASON))
    if not loader.has_data:
        records += _bootstrap(config)
    return tuple(records)


def _check_transactions(config: ControllerConfig, loader: MetadataLoader) -> None:
    level = loader.image.metadata_version
    if not loader.has_data:
        level = metadata_version_of(config.bootstrap_records) or MINIMUM_METADATA_VERSION
    if level < TRANSACTIONS:
        raise LogUnsupported(
            f"the metadata log holds an open transaction from offset {loader.transaction_start_offset} on, but "
            f"metadata.version {level} has no transactions, so no controller of that version wrote it. No metadata "
            "was written into it"
        )


def _bootstrap(config: ControllerConfig) -> list[MetadataRecord]:
    level = metadata_version_of(config.bootstrap_records) or MINIMUM_METADATA_VERSION
    records = [*config.bootstrap_records, *_minimum_in_sync(config)]
    if level < TRANSACTIONS:
        return records
    return [BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION_NAME), *records, EndTransactionRecord()]


def _minimum_in_sync(config: ControllerConfig) -> list[MetadataRecord]:
    """Eligible leader replicas need one min.insync.replicas for all nodes, so it is written to the log (KIP-966)."""
    is_elr_enabled = any(
        isinstance(record, FeatureLevelRecord)
        and record.name == ELIGIBLE_LEADER_REPLICAS_VERSION
        and record.feature_level > 0
        for record in config.bootstrap_records
    )
    return [cluster_minimum(config.min_insync_replicas)] if is_elr_enabled else []
