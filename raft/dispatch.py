"""Which part of the core deals with a message: requests, responses, and requests that failed."""

from typing import assert_never

from kquorum.raft import elections, membership
from kquorum.raft.follower import fetching
from kquorum.raft.follower.snapshot_fetching import handle_snapshot_response
from kquorum.raft.inputs import FailureReason
from kquorum.raft.leader import fetch_handler, leadership_transfer, turn
from kquorum.raft.leader.fetch_handler import describe_quorum
from kquorum.raft.messages import (
    MAX_EPOCH,
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    ChangeVotersResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderNaming,
    RemoveRaftVoterRequest,
    Request,
    Response,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.recovery import hear_leader_confirmation
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Prospective
from kquorum.wire.messages.error_codes import ErrorCode


def handle_request(replica: Replica, now_ms: int, request_id: int, request: Request) -> None:
    match request:
        case FetchRequest():
            fetch_handler.handle_fetch(replica, now_ms, request_id, request)
        case FetchSnapshotRequest():
            fetch_handler.handle_fetch_snapshot(replica, now_ms, request_id, request)
        case VoteRequest():
            replica.respond(request_id, elections.handle_vote(replica, now_ms, request))
        case BeginQuorumEpochRequest():
            replica.respond(request_id, elections.handle_begin_quorum_epoch(replica, now_ms, request))
        case EndQuorumEpochRequest():
            replica.respond(request_id, elections.handle_end_quorum_epoch(replica, now_ms, request))
        case DescribeQuorumRequest():
            replica.respond(request_id, describe_quorum(replica, now_ms))
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() | UpdateRaftVoterRequest():
            membership.handle_change_voters(replica, now_ms, request_id, request)
        case TransferLeadershipRequest():
            leadership_transfer.handle_transfer(replica, now_ms, request_id, request)
        case ApiVersionsRequest():
            raise AssertionError("the listener answers ApiVersions itself")
        case _:
            assert_never(request)


def handle_response(
    replica: Replica, now_ms: int, correlation_id: int, source_id: int, response: Response
) -> None:
    if not replica.connections.completed(source_id, correlation_id):
        return
    _fetch_is_over(replica, source_id)
    if replica.silent_leader is not None and replica.silent_leader.leader_id == source_id:
        replica.silent_leader = None
    if isinstance(response, ApiVersionsResponse):
        membership.handle_api_versions_response(replica, now_ms, source_id, response)
        return
    if isinstance(response, DescribeQuorumResponse | TransferLeadershipResponse):
        raise AssertionError(f"the core never asks for a {type(response).__name__}")
    if isinstance(response, ChangeVotersResponse):
        membership.handle_change_response(replica, now_ms, source_id, response)
    is_for_handler = _take_leader_from(replica, now_ms, source_id, response)
    hear_leader_confirmation(replica, now_ms, source_id, response)
    if is_for_handler:
        _hand_over(replica, now_ms, correlation_id, source_id, response)


def _hand_over(
    replica: Replica, now_ms: int, correlation_id: int, source_id: int, response: LeaderNaming
) -> None:
    match response:
        case FetchResponse():
            fetching.handle_fetch_response(replica, now_ms, source_id, response)
        case FetchSnapshotResponse():
            handle_snapshot_response(replica, now_ms, source_id, response)
        case VoteResponse():
            elections.handle_vote_response(replica, now_ms, source_id, response)
        case BeginQuorumEpochResponse():
            turn.handle_begin_quorum_epoch_response(replica, now_ms, source_id, correlation_id)
        case EndQuorumEpochResponse():
            leadership_transfer.handle_end_quorum_epoch_response(replica, source_id, response)
        case ChangeVotersResponse():
            pass
        case _:
            assert_never(response)


def _take_leader_from(replica: Replica, now_ms: int, source_id: int, response: LeaderNaming) -> bool:
    """What every response is looked at for first; answers whether its own handler should see it.

    Its epoch may be newer, it may name the leader that was looked for, and it may be an error, after which
    the peer is left alone for the back-off (rule R13).
    """
    if isinstance(response, ChangeVotersResponse) and response.leader_epoch < 0:
        return False  # Add- and RemoveRaftVoter do not say who leads.
    if response.is_top_level or not replica.epoch <= response.leader_epoch <= MAX_EPOCH:
        replica.connections.back_off(source_id, now_ms)
        return False
    if response.leader_epoch > replica.epoch:
        _enter_newer_epoch(replica, now_ms, response)
        return False
    if fetching.learns_leader(replica, source_id, response):
        source = f"node {source_id}" if source_id >= 0 else "a bootstrap server"
        cause = f"{source} named the leader"
        endpoints = response.leader_endpoints
        replica.become_follower(replica.epoch, response.leader_id, now_ms, cause, endpoints)
        if not isinstance(response, FetchResponse) or source_id != response.leader_id:
            return False
    fetching.note_moved_leader(replica, source_id, response)
    if isinstance(response, FetchSnapshotResponse) and response.error is ErrorCode.snapshot_not_found:
        return True
    if response.error is not ErrorCode.none:
        is_vote = isinstance(response, VoteResponse)
        wait_ms = replica.config.pre_vote_retry_ms if is_vote else replica.config.retry_backoff_ms
        replica.connections.back_off(source_id, now_ms, wait_ms)
        return False
    return True


def _enter_newer_epoch(replica: Replica, now_ms: int, response: LeaderNaming) -> None:
    epoch, leader_id, endpoints = response.leader_epoch, response.leader_id, response.leader_endpoints
    if not elections.may_be_leader(replica, leader_id, endpoints):
        replica.become_unattached(epoch, now_ms, "a peer is in a newer epoch")
    else:
        cause = "a peer named the leader of a newer epoch"
        replica.become_follower(epoch, leader_id, now_ms, cause, endpoints)


def handle_failure(
    replica: Replica, now_ms: int, correlation_id: int, source_id: int, reason: FailureReason
) -> None:
    if not replica.connections.completed(source_id, correlation_id):
        return
    was_fetch = _fetch_is_over(replica, source_id)
    was_change = membership.handle_change_failure(replica, source_id)
    if not (was_change and reason is FailureReason.UNSUPPORTED_VERSION):
        replica.connections.back_off(source_id, now_ms)
    if was_fetch:
        fetching.handle_fetch_failure(replica, source_id)
    membership.handle_api_versions_failure(replica, now_ms, source_id)
    if reason is FailureReason.UNSUPPORTED_VERSION and isinstance(replica.role, Prospective):
        replica.become_candidate(now_ms, f"{replica.role.cause}; node {source_id} does not know pre-votes")


def _fetch_is_over(replica: Replica, source_id: int) -> bool:
    """Whether it was the Fetch that this peer was asked for, which is in flight no more."""
    if replica.fetch_destination != source_id:
        return False
    replica.fetch_destination = None
    return True
