"""What a follower asks of its leader about the voter set: to correct its own entry, or to let it in (KIP-853)."""

from kio.schema.errors import ErrorCode

from raft.messages import (
    AddRaftVoterRequest,
    ChangeVotersRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from raft.ready import LeaderAndEpoch
from raft.replica import Replica
from raft.roles import Follower

# Answers after which there is nothing to do before the next look: done, or somebody else is changing the voters.
_SETTLED = (
    ErrorCode.none,
    ErrorCode.request_timed_out,
    ErrorCode.duplicate_voter,
    ErrorCode.voter_not_found,
)


def maybe_ask_leader(replica: Replica, role: Follower, now_ms: int) -> None:
    """Send what `wanted_change` says, at most once a period, while no Fetch is in flight, and not before the leader has
    answered one: on a slow link the fetch timeout would otherwise end before the first answer."""
    if not role.has_fetched or now_ms < role.voter_check_due_ms:
        return
    if not replica.connections.is_ready(replica.leader_id, now_ms):
        return
    role.voter_check_due_ms = now_ms + replica.config.update_voter_period_ms
    request = wanted_change(replica)
    if request is not None:
        role.asks_leader = True
        replica.send(replica.leader_id, request, now_ms)


def wanted_change(replica: Replica) -> ChangeVotersRequest | None:
    """The request that would make the voter set true of this replica; None if it is, or must not ask."""
    if not replica.config.can_be_voter or not replica.config.endpoints or replica.has_lost_its_state:
        return None
    if replica.voter_history.kraft_version == 0:
        # The leader keeps it in memory: without it, static voters could not be made dynamic.
        is_told = replica.reported_to == LeaderAndEpoch(replica.leader_id, replica.epoch)
        return _update(replica) if replica.is_voter and not is_told else None
    if replica.is_voter:
        return _update(replica) if replica.own_entry_is_stale else None
    if replica.damaged_epoch is not None:
        return None  # As a voter it could not help to replace the leader before its log is whole.
    return _join(replica) if replica.config.auto_join else None


def _update(replica: Replica) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=replica.config.cluster_id,
        current_leader_epoch=replica.epoch,
        voter=replica.key,
        endpoints=replica.config.endpoints,
        kraft_versions=replica.config.kraft_versions,
    )


def _join(replica: Replica) -> ChangeVotersRequest | None:
    """First the entry of the disk that this one replaced is taken out, then this one is put in.

    A replica that was removed stays out until an operator takes it back (KAFKA-19850).
    """
    if replica.voter_history.was_removed(replica.key):
        return None
    other = replica.voters.voters.get(replica.config.node_id)
    if other is not None:
        return RemoveRaftVoterRequest(cluster_id=replica.config.cluster_id, voter=other.key)
    return AddRaftVoterRequest(
        cluster_id=replica.config.cluster_id,
        timeout_ms=replica.config.request_timeout_ms,
        voter=replica.key,
        endpoints=replica.config.endpoints,
        ack_when_committed=False,
    )


def handle_change_response(
    replica: Replica, now_ms: int, source_id: int, response: ChangeVotersResponse
) -> None:
    """The leader answered; what it did will be seen in the log."""
    role = replica.role
    if not isinstance(role, Follower) or source_id != replica.leader_id:
        return
    role.asks_leader = False
    if response.error is ErrorCode.none:
        replica.reported_to = LeaderAndEpoch(replica.leader_id, replica.epoch)
        if not role.leader_left:
            role.fetch_deadline_ms = now_ms + role.fetch_timeout_ms
    if response.error not in _SETTLED:
        replica.connections.back_off(source_id, now_ms)


def handle_change_failure(replica: Replica, source_id: int) -> bool:
    """No answer, or the leader does not know the request: fetch on, and look again when it is due. Answers whether it
    was such a request that failed."""
    role = replica.role
    if not isinstance(role, Follower) or not role.asks_leader or source_id != replica.leader_id:
        return False
    role.asks_leader = False
    return True
