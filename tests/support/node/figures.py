"""A node's figures, made up."""

from dataclasses import replace
from math import nan
from typing import Any

from kquorum.broker.data_figures import DataFigures, TopicCounters
from kquorum.broker.group_figures import GroupCounters, GroupFigures
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.broker.quota.client_quotas import ClientQuota, MeasuredRate, QuotaFigures
from kquorum.broker.transaction_figures import TransactionFigures
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.request_times import TimesOfKind
from kquorum.node.commit_watch import Freshness
from kquorum.node.observability.figures import (
    BrokerFigures,
    ControllerFigures,
    Latency,
    NodeFigures,
    QuorumFigures,
)

NOW_MS = 1_700_000_000_000
FRESH = Freshness(
    reason="", is_cut_off=False, ms_since_commit=120, offset=41, leader_epoch=3, timestamp_ms=NOW_MS - 130
)
NO_LATENCY = Latency(average_ms=nan, max_ms=nan)
QUORUM = QuorumFigures(
    state="leader",
    current_leader=1,
    current_vote=1,
    current_epoch=3,
    high_watermark=42,
    log_start_offset=0,
    log_end_offset=44,
    log_end_epoch=3,
    voters=3,
    unknown_voters=0,
    commit_latency=Latency(average_ms=2.5, max_ms=7),
    election_latency=NO_LATENCY,
    leaders_seen=2,
    snapshots_loaded=1,
    newest_snapshot_offset=-1,
)
CONTROLLER = ControllerFigures(
    is_active=True, last_applied_offset=43, error_count=0, broker_offsets={101: 41, 102: 30}
)
BROKER = BrokerFigures(
    broker_id=101,
    state=BrokerState.RUNNING,
    broker_epoch=7,
    is_fenced=False,
    skipped_records=0,
    offline_log_dirs=0,
    quotas=QuotaFigures(
        tuple(MeasuredRate(kind, "alice", "app", 1.0, 2.0) for kind in ClientQuota),
        dict.fromkeys(ClientQuota, 0),
        0.5,
    ),
    throttled_replication={
        "leaderreplication": 3.0,
        "followerreplication": 4.0,
        "alterlogdirsreplication": 5.0,
    },
    data=DataFigures(topics={"orders": TopicCounters()}),
    groups=GroupFigures(counters=GroupCounters(), classic={}, consumer={}, offsets=0, partitions={}),
    transactions=TransactionFigures(
        transactional_ids=0,
        ongoing=0,
        ending=0,
        without_leader=0,
        aborted=0,
        not_verified=0,
        late_partitions=0,
        partitions={},
    ),
)
LISTENERS = {
    "CONTROLLER": {"open_connections": 4, "requests": 900, "bad_frames": 1},
    "PLAINTEXT": {"open_connections": 2, "requests": 12, "bad_frames": 0},
}
NODE = NodeFigures(
    node_id=1,
    cluster_id="4L6g3nShT-eMCtK--X86sw",
    roles=("controller", "broker"),
    now_ms=NOW_MS,
    freshness=FRESH,
    quorum=QUORUM,
    controller=CONTROLLER,
    broker=BROKER,
    image=MetadataImage.empty(),
    listeners=LISTENERS,
    request_times=({"Produce": TimesOfKind()},),
)


def node(**changes: Any) -> NodeFigures:
    return replace(NODE, **changes)
