"""What is known of a node at one moment, as plain values; `gather` reads them off it, `families` names them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kquorum.broker.data_figures import DataFigures
from kquorum.broker.group_figures import GroupFigures
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.broker.quota.client_quotas import QuotaFigures
from kquorum.broker.transaction_figures import TransactionFigures
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.request_times import TimesOfKind
from kquorum.node.commit_watch import Freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """In milliseconds, of the last minute at most; not a number where there was none."""

    average_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumFigures:
    """The replica; -1 is "none" or "unknown". `state` is the role in Kafka's words."""

    state: str
    current_leader: int
    current_vote: int
    current_epoch: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    log_end_epoch: int
    voters: int
    unknown_voters: int
    commit_latency: Latency
    election_latency: Latency
    leaders_seen: int
    snapshots_loaded: int
    newest_snapshot_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFigures:
    """`last_applied_offset` is that of the newest image, what is not committed yet included. `broker_offsets` is what
    each broker has applied, as the active controller heard; empty elsewhere."""

    is_active: bool
    last_applied_offset: int
    error_count: int
    broker_offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    broker_id: int
    state: BrokerState
    broker_epoch: int
    is_fenced: bool
    skipped_records: int
    offline_log_dirs: int
    previous_session_ends_ms: int | None = None
    quotas: QuotaFigures | None = None
    groups: GroupFigures | None = None
    transactions: TransactionFigures | None = None
    data: DataFigures | None = None
    # Bytes/s of throttled replicas, by Kafka's word for the throttle.
    throttled_replication: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """`image` is the committed one; `listeners` holds the counters of each, by name;
    `request_times` those of each role's listeners, by kind of request."""

    node_id: int
    cluster_id: str
    roles: tuple[str, ...]
    now_ms: int
    freshness: Freshness
    quorum: QuorumFigures
    controller: ControllerFigures | None
    broker: BrokerFigures | None
    image: MetadataImage
    listeners: Mapping[str, Mapping[str, int]]
    request_times: Sequence[Mapping[str, TimesOfKind]] = ()
