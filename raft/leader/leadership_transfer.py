"""Leaving the leadership in good order: stepping down, telling the voters, and handing over to one of them."""

from kquorum.raft.leader.majority import voter_end_offset
from kquorum.raft.messages import (
    MAX_EPOCH,
    NO_LEADER,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from kquorum.raft.replica import Replica
from kquorum.raft.roles import (
    CONTROLLER_RESIGNED,
    NO_SPACE,
    SHUTDOWN,
    TRANSFER,
    Candidate,
    HandedOver,
    Leader,
    PendingTransfer,
    Prospective,
    Resigned,
)
from kquorum.raft.voters import ReplicaKey, Voter
from kquorum.wire.messages.error_codes import ErrorCode


def resign(replica: Replica, now_ms: int, cause: str, first: int | None = None) -> None:
    """Step down; the voter `first`, if any, is preferred to those that are as far as it is."""
    leader = replica.role
    assert isinstance(leader, Leader)
    replica.become_resigned(now_ms, cause, preferred_successors(replica, leader, first))


def handle_resign(replica: Replica, now_ms: int, leader_epoch: int) -> None:
    """The state machine gives up the leadership of `leader_epoch`. A request for an older epoch has no effect (rule
    R12.8)."""
    if isinstance(replica.role, Leader) and leader_epoch == replica.epoch:
        resign(replica, now_ms, CONTROLLER_RESIGNED)


def begin_shutdown(replica: Replica, now_ms: int) -> None:
    """Begin an orderly shutdown (rule R12.9): a leader resigns and stays until another replica leads. A nominee
    withdraws: otherwise it could win, announce itself and be gone."""
    replica.is_shutting_down = True
    role = replica.role
    if isinstance(role, Leader) and replica.other_voters:
        replica.awaits_successor = True
        resign(replica, now_ms, SHUTDOWN)
    elif isinstance(role, Prospective | Candidate):
        role.is_withdrawn = True


def preferred_successors(
    replica: Replica, leader: Leader, first: int | None = None
) -> tuple[ReplicaKey, ...]:
    """The other voters, the most caught up first (rule R5.8): the first in the list stands for election at once."""
    voters = [voter for voter in replica.voters if voter.key.id != replica.config.node_id]
    voters.sort(
        key=lambda voter: (voter.key.id != first, -voter_end_offset(replica, leader, voter), voter.key)
    )
    return tuple(voter.key for voter in voters)


def poll_resigned(replica: Replica, role: Resigned, now_ms: int) -> None:
    if now_ms >= role.election_deadline_ms and not replica.is_shutting_down:
        _give_up_epoch(replica, role, now_ms)
        return
    for voter_id in sorted(role.unacknowledged):
        if replica.connections.is_ready(voter_id, now_ms):
            request = EndQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                leader_id=replica.config.node_id,
                leader_epoch=replica.epoch,
                preferred_candidates=role.preferred_candidates,
                leader_endpoints=replica.known_leader_endpoints,
            )
            replica.send(voter_id, request, now_ms)


def _give_up_epoch(replica: Replica, role: Resigned, now_ms: int) -> None:
    if replica.epoch < MAX_EPOCH:
        replica.become_unattached(replica.epoch + 1, now_ms, "resigned, and no other node took over")
    else:
        # No epoch follows, so nothing is left to wait for: the voters may still ask which epoch it is.
        role.election_deadline_ms = now_ms + replica.config.election_timeout_ms


def handle_end_quorum_epoch_response(
    replica: Replica, source_id: int, response: EndQuorumEpochResponse
) -> None:
    role = replica.role
    if isinstance(role, Resigned) and response.error is ErrorCode.none:
        role.unacknowledged.discard(source_id)


# Handing over to a chosen voter


def poll_transfer(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Hand over as soon as the target has the whole log: then it wins, and nothing that was proposed is lost."""
    transfer = leader.transfer
    if transfer is None or replica.role is not leader:
        return
    if replica.writes_are_paused:
        _poll_flight(replica, leader, transfer, now_ms)
        return
    voter = replica.voters.voters.get(transfer.target_id)
    if voter is not None and _is_caught_up(replica, leader, voter, now_ms):
        _await_target(replica, leader, transfer, now_ms)
        resign(replica, now_ms, TRANSFER % transfer.target_id, first=transfer.target_id)
    elif voter is None or now_ms >= transfer.deadline_ms:
        _abandon(replica, leader, transfer)


def _await_target(replica: Replica, leader: Leader, transfer: PendingTransfer, now_ms: int) -> None:
    """Ask the target to stand. The request is answered when the target leads: it may still lose its election."""
    leader.transfer = None
    if transfer.request_id is not None:
        deadline_ms = now_ms + 2 * replica.config.election_timeout_ms
        replica.handed_over = HandedOver(
            transfer.request_id, transfer.target_id, replica.epoch, now_ms, deadline_ms
        )


def poll_handed_over(replica: Replica, now_ms: int) -> None:
    """Answer a transfer, in whatever role the former leader is by now: which node leads, or that none does."""
    pending = replica.handed_over
    if pending is None:
        return
    leader_id, target_id = replica.leader_id, pending.target_id
    if replica.epoch > pending.epoch and leader_id == target_id:
        response = TransferLeadershipResponse()
    elif replica.epoch > pending.epoch and leader_id != NO_LEADER:
        message = f"node {leader_id} was elected in place of node {target_id}"
        response = TransferLeadershipResponse(error=ErrorCode.preferred_leader_not_available, message=message)
    elif now_ms >= pending.deadline_ms:
        message = (
            f"node {target_id} was told to take over, and no node is known to lead "
            f"after {now_ms - pending.since_ms} ms; look who leads before you ask again"
        )
        response = TransferLeadershipResponse(error=ErrorCode.request_timed_out, message=message)
    else:
        return
    replica.handed_over = None
    replica.respond(pending.request_id, response)


def _abandon(replica: Replica, leader: Leader, transfer: PendingTransfer) -> None:
    leader.transfer = None
    # The state machine knows that it no longer leads; it leads again once all that it proposed is decided.
    leader.announced_from = replica.log.log_end_offset
    message = f"node {transfer.target_id} did not catch up within {replica.config.election_timeout_ms} ms"
    response = TransferLeadershipResponse(error=ErrorCode.request_timed_out, message=message)
    if transfer.request_id is not None:
        replica.respond(transfer.request_id, response)


def begin_flight(replica: Replica, leader: Leader, now_ms: int) -> None:
    """The leader cannot write any more. Nothing is proposed from now on, and it leaves as soon as a voter has the whole
    log, which can win then and loses nothing; at the latest when an election would be over."""
    successors = preferred_successors(replica, leader)
    if not successors:
        resign(replica, now_ms, NO_SPACE)
    elif leader.transfer is None:
        deadline_ms = now_ms + replica.config.election_timeout_ms
        leader.transfer = PendingTransfer(None, successors[0].id, deadline_ms)


def end_flight(replica: Replica, leader: Leader) -> None:
    """There is space again, and no other node leads yet: lead on."""
    if leader.transfer is not None and leader.transfer.request_id is None:
        _abandon(replica, leader, leader.transfer)


def _poll_flight(replica: Replica, leader: Leader, transfer: PendingTransfer, now_ms: int) -> None:
    for key in preferred_successors(replica, leader, transfer.target_id):
        if _is_caught_up(replica, leader, replica.voters.voters[key.id], now_ms):
            if key.id == transfer.target_id:
                _await_target(replica, leader, transfer, now_ms)
            resign(replica, now_ms, NO_SPACE, first=key.id)
            return
    if now_ms >= transfer.deadline_ms:
        _abandon(replica, leader, transfer)
        resign(replica, now_ms, NO_SPACE)


def _is_caught_up(replica: Replica, leader: Leader, voter: Voter, now_ms: int) -> bool:
    """It has the whole log, and was heard of lately: a live follower fetches again whenever its wait is over."""
    progress = leader.progress.get(voter.key)
    if progress is None or progress.last_fetch_ms < now_ms - 2 * replica.config.fetch_max_wait_ms:
        return False
    return voter_end_offset(replica, leader, voter) >= replica.log.log_end_offset


def handle_transfer(
    replica: Replica, now_ms: int, request_id: int, request: TransferLeadershipRequest
) -> None:
    """Begin a leadership transfer (rule P2; Raft dissertation §3.10): take no more proposals, wait until the target has
    the whole log, and let it stand at once."""
    problem = _why_no_transfer(replica, request.target_id)
    if problem is not None:
        error, message = problem
        replica.respond(request_id, TransferLeadershipResponse(error=error, message=message))
        return
    leader = replica.role
    assert isinstance(leader, Leader)
    deadline_ms = now_ms + replica.config.election_timeout_ms
    leader.transfer = PendingTransfer(request_id, request.target_id, deadline_ms)


def _why_no_transfer(replica: Replica, target_id: int) -> tuple[ErrorCode, str] | None:
    leader = replica.role
    if not isinstance(leader, Leader):
        return ErrorCode.not_leader_or_follower, f"node {replica.config.node_id} does not lead"
    if target_id == replica.config.node_id:
        return ErrorCode.invalid_request, f"node {target_id} leads already"
    if target_id not in replica.voters.voters:
        return ErrorCode.voter_not_found, f"node {target_id} is not a voter, so it cannot lead"
    if leader.change is not None:
        return ErrorCode.request_timed_out, "a change of the voters is under way; wait until it is committed"
    if leader.transfer is not None:
        return ErrorCode.request_timed_out, f"a hand-over to node {leader.transfer.target_id} is under way"
    return None
