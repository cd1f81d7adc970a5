"""The settings of a controller, fixed before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from snapshots.bootstrap import bootstrap_records
from wire.schema import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Defaults are Kafka's. `bootstrap_records` come from `bootstrap.checkpoint`; they go into an empty log once.

    `node_configs` are the keys of the node's config file, as text.
    """

    num_partitions: int = 1
    default_replication_factor: int = 1
    broker_session_timeout_ms: int = 9000
    metadata_max_idle_interval_ms: int = 500
    delete_topic_enable: bool = True
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    unclean_leader_election_interval_ms: int = 300_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    max_records_per_batch: int = 10_000
    # As the replica is configured, which refuses larger batches.
    max_batch_bytes: int = 8 * 1024 * 1024
    controller_quota_window_ms: int = 11_000
    delegation_token_secret_key: str | None = field(default=None, repr=False)
    delegation_token_max_lifetime_ms: int = 604_800_000
    delegation_token_expiry_time_ms: int = 86_400_000
    delegation_token_expiry_check_interval_ms: int = 3_600_000
    delegation_token_max_per_owner: int = 200
    node_configs: Mapping[str, str] = field(default_factory=dict, repr=False)
    bootstrap_records: tuple[MetadataRecord, ...] = field(default_factory=bootstrap_records)
