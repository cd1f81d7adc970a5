"""What the leader knows of every replica (DescribeQuorum, KIP-595 and KIP-836)."""

from kio.schema.errors import ErrorCode

from raft.fetch_handler import OBSERVER_SESSION_MS
from raft.messages import DescribeQuorumResponse, ReplicaStatus
from raft.replica import Replica
from raft.roles import Leader, ReplicaProgress
from raft.voters import ReplicaKey


def describe_quorum(replica: Replica, now_ms: int) -> DescribeQuorumResponse:
    leader = replica.role
    if not isinstance(leader, Leader):
        return DescribeQuorumResponse(
            error=ErrorCode.not_leader_or_follower, leader_id=replica.leader_id, leader_epoch=replica.epoch
        )
    own = ReplicaProgress(replica.log.log_end_offset, now_ms, now_ms)
    voters = [
        _status(voter.key, own if voter.key.id == replica.config.node_id else leader.progress.get(voter.key))
        for voter in replica.voters
    ]
    observers = [
        _status(key, progress)
        for key, progress in sorted(leader.progress.items())
        if not replica.voters.contains(key) and progress.last_fetch_ms + OBSERVER_SESSION_MS > now_ms
    ]
    return DescribeQuorumResponse(
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        high_watermark=replica.high_watermark,
        current_voters=tuple(voters),
        observers=tuple(observers),
        nodes={voter.key.id: voter.endpoints for voter in replica.voters},
    )


def _status(key: ReplicaKey, progress: ReplicaProgress | None) -> ReplicaStatus:
    known = progress or ReplicaProgress()
    return ReplicaStatus(
        replica_id=key.id,
        directory_id=key.directory_id,
        log_end_offset=known.end_offset,
        last_fetch_timestamp_ms=known.last_fetch_ms,
        last_caught_up_timestamp_ms=known.last_caught_up_ms,
    )
