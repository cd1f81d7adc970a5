"""What a controller is told before it starts."""

from dataclasses import dataclass, field

from snapshots.bootstrap import bootstrap_records
from wire.schema import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Defaults are Kafka's. `bootstrap_records` come from `bootstrap.checkpoint`; they go into an empty log once."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    broker_session_timeout_ms: int = 9000
    metadata_max_idle_interval_ms: int = 500
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    max_records_per_batch: int = 10_000
    bootstrap_records: tuple[MetadataRecord, ...] = field(default_factory=bootstrap_records)
