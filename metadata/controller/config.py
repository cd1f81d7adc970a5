"""The settings of a controller, fixed before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquorum.metadata.configs.table import default_flag, default_number
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.schema import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """The defaults are the table's (metadata.configs). `bootstrap_records` come from `bootstrap.checkpoint`; they go
    into an empty log once.

    `node_configs` are the keys of the node's config file, as text.
    """

    num_partitions: int = default_number("num.partitions")
    default_replication_factor: int = default_number("default.replication.factor")
    broker_session_timeout_ms: int = default_number("broker.session.timeout.ms")
    metadata_max_idle_interval_ms: int = default_number("metadata.max.idle.interval.ms")
    delete_topic_enable: bool = default_flag("delete.topic.enable")
    min_insync_replicas: int = default_number("min.insync.replicas")
    unclean_leader_election_enable: bool = default_flag("unclean.leader.election.enable")
    unclean_leader_election_interval_ms: int = default_number("unclean.leader.election.interval.ms")
    auto_leader_rebalance_enable: bool = default_flag("auto.leader.rebalance.enable")
    leader_imbalance_check_interval_seconds: int = default_number("leader.imbalance.check.interval.seconds")
    max_records_per_batch: int = 10_000
    # As the replica is configured, which refuses larger batches.
    max_batch_bytes: int = 8 * 1024 * 1024
    controller_quota_window_ms: int = (
        1000
        * default_number("controller.quota.window.num")
        * default_number("controller.quota.window.size.seconds")
    )
    delegation_token_secret_key: str | None = field(default=None, repr=False)
    delegation_token_max_lifetime_ms: int = default_number("delegation.token.max.lifetime.ms")
    delegation_token_expiry_time_ms: int = default_number("delegation.token.expiry.time.ms")
    delegation_token_expiry_check_interval_ms: int = default_number(
        "delegation.token.expiry.check.interval.ms"
    )
    delegation_token_max_per_owner: int = default_number("kquorum.delegation.token.max.per.owner")
    node_configs: Mapping[str, str] = field(default_factory=dict, repr=False)
    bootstrap_records: tuple[MetadataRecord, ...] = field(default_factory=bootstrap_records)
