"""Changing the voters at the leader: one at a time, each in force from its append (KIP-853; kraft-semantics A11).

Two majorities can only miss each other if sets follow one another without a common voter in every pair of
majorities, or if a leader changes the voters before it knows what its predecessor left (Ongaro, 2015). Hence the
checks that stand first: a record of this epoch is committed, and so is the last set.
"""

from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from raft.change_checks import Refusal, change_in_the_way, malformed, not_leader
from raft.control_batches import quorum_batch
from raft.elections import is_foreign_cluster
from raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVotersRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from raft.quorum_records import voters_record
from raft.replica import Replica
from raft.roles import Leader, PendingAdd, PendingCommit, ReplicaProgress
from raft.voters import Voter, VoterSet
from wire.control_records import KRaftVersionRecord, VotersRecord

# An observer can be added if it fetched within this time, and was caught up at least once (KIP-853). Here it must not
# have shown since that it lost part of its log: until it has that back it neither stands nor votes as others do
# (`raft.damaged_log`, `raft.vote_state_recovery`): with it as one of two voters, the leader could not be replaced.
CAUGHT_UP_WITHIN_MS = 3_600_000


def handle_change_voters(
    replica: Replica, now_ms: int, request_id: int, request: ChangeVotersRequest
) -> None:
    """Answer at once, or when the change is committed; the checks stand in Kafka's order (A11.2)."""
    if is_foreign_cluster(replica, request.cluster_id):
        message = (
            f"the request is for the cluster {request.cluster_id!r}, this is {replica.config.cluster_id!r}"
        )
        _refuse(replica, request_id, (ErrorCode.inconsistent_cluster_id, message), is_top_level=True)
        return
    refusal = not_leader(replica, request) or malformed(replica, request)
    leader = replica.role
    if refusal is not None:
        _refuse(replica, request_id, refusal)
        return
    assert isinstance(leader, Leader)
    if isinstance(request, UpdateRaftVoterRequest) and replica.voters.contains(request.voter):
        leader.fetched_since_check.add(request.voter.id)
    match request:
        case AddRaftVoterRequest():
            refusal = change_in_the_way(replica, leader) or _begin_add(
                replica, leader, now_ms, request_id, request
            )
        case RemoveRaftVoterRequest():
            refusal = change_in_the_way(replica, leader) or _remove(
                replica, leader, now_ms, request_id, request
            )
        case UpdateRaftVoterRequest() if replica.voter_history.kraft_version == 0:
            refusal = _note_static_voter(replica, leader, request)
        case UpdateRaftVoterRequest():
            refusal = change_in_the_way(replica, leader) or _update(replica, now_ms, request)
    if refusal is not None:
        _refuse(replica, request_id, refusal)
    elif isinstance(request, UpdateRaftVoterRequest):
        _agree(replica, request_id)


def _refuse(replica: Replica, request_id: int, refusal: Refusal, *, is_top_level: bool = False) -> None:
    error, message = refusal
    response = ChangeVotersResponse(
        error=error,
        is_top_level=is_top_level,
        message=message,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
    )
    replica.respond(request_id, response)


def _agree(replica: Replica, request_id: int) -> None:
    response = ChangeVotersResponse(
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
    )
    replica.respond(request_id, response)


# Adding


def _begin_add(
    replica: Replica, leader: Leader, now_ms: int, request_id: int, request: AddRaftVoterRequest
) -> Refusal | None:
    """Ask the new node what it supports, by the way on which all others will reach it."""
    key = request.voter
    if key.id in replica.voters.voters:
        return (
            ErrorCode.duplicate_voter,
            f"node {key.id} is a voter already; remove it first to change its disk",
        )
    if not request.ack_when_committed and replica.voter_history.was_removed(key):
        message = f"node {key.id} was removed from the voters; only an operator adds it again"
        return ErrorCode.request_timed_out, message
    if not replica.connections.is_ready(key.id, now_ms):
        return ErrorCode.request_timed_out, f"the connection to node {key.id} is not ready; try again"
    leader.change = PendingAdd(request_id, request, now_ms + replica.config.request_timeout_ms)
    replica.send(key.id, ApiVersionsRequest(), now_ms, replica.quorum_endpoint(request.endpoints))
    return None


def handle_api_versions_response(
    replica: Replica, now_ms: int, source_id: int, response: ApiVersionsResponse
) -> None:
    """The node to be added has answered; or, with an error, it cannot be added."""
    leader = replica.role
    if not isinstance(leader, Leader) or not isinstance(leader.change, PendingAdd):
        return
    change = leader.change
    if change.request.voter.id != source_id:
        return
    leader.change = None
    refusal = _unfit(replica, leader, now_ms, change.request, response)
    if refusal is not None:
        _refuse(replica, change.request_id, refusal)
        return
    assert response.kraft_versions is not None
    voter = Voter(change.request.voter, change.request.endpoints, response.kraft_versions)
    offset = append_voters(replica, now_ms, replica.voters.with_voter(voter))
    if change.request.ack_when_committed:
        leader.change = PendingCommit(change.request_id, offset, change.deadline_ms)
    else:
        _agree(replica, change.request_id)


def _unfit(
    replica: Replica, leader: Leader, now_ms: int, request: AddRaftVoterRequest, response: ApiVersionsResponse
) -> Refusal | None:
    node_id, version = request.voter.id, replica.voter_history.kraft_version
    if response.error is not ErrorCode.none:
        return ErrorCode.request_timed_out, f"node {node_id} could not be asked what it supports"
    if response.kraft_versions is None or not response.kraft_versions.includes(version):
        return ErrorCode.invalid_request, f"node {node_id} does not support kraft.version {version}"
    progress = leader.progress.get(request.voter, ReplicaProgress())
    if not progress.has_caught_up or progress.last_fetch_ms <= now_ms - CAUGHT_UP_WITHIN_MS:
        return (
            ErrorCode.request_timed_out,
            f"node {node_id} has not caught up with the log; start it and wait",
        )
    return None


def handle_api_versions_failure(replica: Replica, now_ms: int, source_id: int) -> None:
    failed = ApiVersionsResponse(error=ErrorCode.network_exception)
    handle_api_versions_response(replica, now_ms, source_id, failed)


def abandon_add(replica: Replica, leader: Leader) -> None:
    """The leader cannot write the voter that it was about to add."""
    if isinstance(leader.change, PendingAdd):
        refusal = ErrorCode.request_timed_out, "the leader's disk is full, and it hands over; try again"
        _refuse(replica, leader.change.request_id, refusal)
        leader.change = None


# Removing and updating


def _remove(
    replica: Replica, leader: Leader, now_ms: int, request_id: int, request: RemoveRaftVoterRequest
) -> Refusal | None:
    voter = replica.voters.voters.get(request.voter.id)
    if voter is None or voter.key != request.voter:
        message = f"node {request.voter.id} with directory {request.voter.directory_id} is not a voter"
        return ErrorCode.voter_not_found, message
    if len(replica.voters) == 1:
        return ErrorCode.voter_not_found, f"node {request.voter.id} is the only voter and cannot be removed"
    offset = append_voters(replica, now_ms, replica.voters.without(voter.key))
    leader.change = PendingCommit(request_id, offset, now_ms + replica.config.request_timeout_ms)
    return None


def _update(replica: Replica, now_ms: int, request: UpdateRaftVoterRequest) -> Refusal | None:
    voter = Voter(request.voter, request.endpoints, request.kraft_versions)
    version = replica.voter_history.kraft_version
    if not request.kraft_versions.includes(version):
        return (
            ErrorCode.invalid_request,
            f"kraft.version is {version}, which node {voter.key.id} does not support",
        )
    known = replica.voters.voters.get(voter.key.id)
    if known is None or known.key != voter.key:
        return ErrorCode.voter_not_found, f"node {voter.key.id} with this directory id is not a voter"
    if known != voter:
        append_voters(replica, now_ms, replica.voters.updated(voter))
    return None


def _note_static_voter(replica: Replica, leader: Leader, request: UpdateRaftVoterRequest) -> Refusal | None:
    if request.voter.id not in replica.voters.voters:
        return ErrorCode.voter_not_found, f"node {request.voter.id} is not a voter"
    reported = Voter(request.voter, request.endpoints, request.kraft_versions)
    leader.reported_voters[request.voter.id] = reported
    return None


# The log


def append_voters(replica: Replica, now_ms: int, voters: VoterSet) -> int:
    """Append the new set behind all that was proposed; answers its offset. It is in force at once."""
    return append_quorum_records(replica, now_ms, [voters_record(voters)])


def append_quorum_records(
    replica: Replica, now_ms: int, records: Sequence[KRaftVersionRecord | VotersRecord]
) -> int:
    for batch in replica.accumulator.drain():
        replica.append(batch)
    batch = quorum_batch(replica.log.log_end_offset, replica.epoch, now_ms, records)
    replica.append(batch)
    replica.accumulator.begin(replica.epoch, replica.log.log_end_offset)
    return batch.last_offset


def poll_change(replica: Replica, leader: Leader, now_ms: int) -> bool:
    """Answer the pending change when it is committed or late; answers whether this leader's own removal is committed.

    A change that is late stays in the log, and in force.
    """
    change = leader.change
    if isinstance(change, PendingCommit) and replica.high_watermark > change.offset:
        leader.change = None
        _agree(replica, change.request_id)
    elif change is not None and now_ms >= change.deadline_ms:
        leader.change = None
        message = (
            "it is not committed yet, though it may be later"
            if isinstance(change, PendingCommit)
            else "no answer"
        )
        _refuse(
            replica, change.request_id, (ErrorCode.request_timed_out, f"the change of the voters: {message}")
        )
    is_committed = replica.voter_history.voters_offset < replica.high_watermark
    return is_committed and replica.high_watermark > leader.epoch_start_offset and not replica.is_voter
