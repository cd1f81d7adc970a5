"""From a node's config to the settings of its replica and of its snapshots."""

from kquorum.metadata.adapters.snapshot_manager import SnapshotSettings
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import bootstrap_endpoints, controller_endpoints, static_voter_endpoints
from kquorum.node.folders import NodeFolders
from kquorum.node.log_repair import LogRepair
from kquorum.node.replica_files import ReplicaFiles
from kquorum.raft.config import QuorumConfig
from kquorum.raft.node import RaftNode
from kquorum.raft.ports import RandomSource
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.wire.record_batch import CompressionCodec

OBSERVER_FLUSH_INTERVAL_MS = 1_000
# Within this time the next record comes along, if there is one soon; if not, the other voters learn of a commit so much
# later. Observers, which serve clients, learn of it at once.
COMMIT_NOTICE_DELAY_MS = 5


def static_voters_of(config: NodeConfig) -> VoterSet:
    places = static_voter_endpoints(config)
    return VoterSet.of(*(Voter(ReplicaKey(node_id), (place,)) for node_id, place in places.items()))


def new_replica(
    config: NodeConfig,
    folders: NodeFolders,
    files: ReplicaFiles,
    static_voters: VoterSet,
    random_source: RandomSource,
    now_ms: int,
) -> RaftNode:
    """As its files left it. Raises QuorumStateDamaged."""
    return RaftNode(
        quorum_config(config, folders, files.repair),
        static_voters,
        files.log.summary(),
        files.state_store.read(),
        random_source,
        now_ms,
        log_codec(config),
    )


def quorum_config(config: NodeConfig, folders: NodeFolders, repair: LogRepair) -> QuorumConfig:
    return QuorumConfig(
        node_id=config.node_id,
        directory_id=folders.metadata_directory_id,
        cluster_id=folders.cluster_id,
        can_be_voter=config.is_controller,
        endpoints=controller_endpoints(config) if config.is_controller else (),
        bootstrap_servers=bootstrap_endpoints(config),
        auto_join=config.controller_quorum_auto_join_enable,
        has_lost_its_state=repair.has_lost_its_state,
        damaged_until=repair.damaged_until,
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        commit_notice_delay_ms=COMMIT_NOTICE_DELAY_MS,
    )


def snapshot_settings(config: NodeConfig) -> SnapshotSettings:
    return SnapshotSettings(
        max_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        max_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
        codec=log_codec(config),
    )


def log_codec(config: NodeConfig) -> CompressionCodec:
    """Of the log's batches, and of those of snapshots."""
    return CompressionCodec[config.metadata_log_compression.upper()]
