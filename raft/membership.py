"""Changing the voters (KIP-853; rule R11): at the leader, the upgrade from static voters, and at the replica that asks.

The leader makes one change at a time, and each is in force from its append. Two majorities can only miss each other
if some pair of successive voter sets has majorities without a common voter, or if a leader changes the voters before
it knows what its predecessor left (Ongaro, 2015). Hence the checks that come first: a record of this epoch is
committed, and so is the last voter set.
"""

from collections.abc import Sequence

from kquorum.raft.batches import quorum_batch
from kquorum.raft.elections import is_foreign_cluster
from kquorum.raft.leader.fetch_handler import answer_parked_fetch, progress_key
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVotersRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from kquorum.raft.ready import LeaderAndEpoch
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Follower, Leader, PendingAdd, PendingCommit, ReplicaProgress
from kquorum.raft.voters import (
    SUPPORTED_KRAFT_VERSIONS,
    ZERO_DIRECTORY,
    ReplicaKey,
    Voter,
    VoterSet,
    voters_record,
)
from kquorum.wire.control_records import KRaftVersionRecord, VotersRecord
from kquorum.wire.messages.error_codes import ErrorCode

# What may stand against a change of the voters, in Kafka's order (rule R11.2)

# Kafka's error code, and why in words.
Refusal = tuple[ErrorCode, str]


def not_leader(replica: Replica, request: ChangeVotersRequest) -> Refusal | None:
    if isinstance(request, UpdateRaftVoterRequest) and request.current_leader_epoch != replica.epoch:
        is_old = request.current_leader_epoch < replica.epoch
        error = ErrorCode.fenced_leader_epoch if is_old else ErrorCode.unknown_leader_epoch
        return (
            error,
            f"the request is for epoch {request.current_leader_epoch}, this is epoch {replica.epoch}",
        )
    if not isinstance(replica.role, Leader):
        return ErrorCode.not_leader_or_follower, f"node {replica.config.node_id} does not lead the quorum"
    if replica.is_shutting_down:
        return ErrorCode.broker_not_available, f"node {replica.config.node_id} is shutting down"
    return None


def malformed(replica: Replica, request: ChangeVotersRequest) -> Refusal | None:
    key = request.voter
    if key.id < 0 or key.directory_id == ZERO_DIRECTORY:
        return (
            ErrorCode.invalid_request,
            f"voter {key.id} must come with the directory id of its metadata folder",
        )
    if isinstance(request, RemoveRaftVoterRequest):
        return None
    own = replica.config.endpoints
    if own and own[0].listener not in [endpoint.listener for endpoint in request.endpoints]:
        return (
            ErrorCode.invalid_request,
            f"voter {key.id} must name where its listener {own[0].listener} is reached",
        )
    if isinstance(request, UpdateRaftVoterRequest):
        versions = request.kraft_versions
        if versions.lowest < 0 or versions.highest < versions.lowest:
            return (
                ErrorCode.invalid_request,
                f"{versions.lowest} to {versions.highest} is no range of kraft.version",
            )
    return None


def change_in_the_way(replica: Replica, leader: Leader) -> Refusal | None:
    not_now = ErrorCode.request_timed_out
    history = replica.voter_history
    if leader.change is not None:
        return not_now, "another change of the voters is under way; one is made at a time"
    if leader.transfer is not None:
        return not_now, f"leadership is being transferred to node {leader.transfer.target_id}"
    if replica.high_watermark <= leader.epoch_start_offset:
        return not_now, f"the leader has not committed anything in its epoch {replica.epoch} yet"
    if history.kraft_version == 0:
        return (
            ErrorCode.unsupported_version,
            "kraft.version is 0: the voters are the configuration's; upgrade it to 1",
        )
    if history.voters_offset >= replica.high_watermark:
        return not_now, f"the voters at offset {history.voters_offset} are not committed yet"
    return None


# The change at the leader

# An observer can be added if it fetched within this time, and was caught up at least once (KIP-853). Here it must not
# have shown since that it lost part of its log, and it has to reach the end of the log once more after it was asked
# (`_begin_last_round`): until a replica has its log back it neither stands nor votes as others do (`raft.recovery`).
# With it as one of two voters, the leader could not be replaced.
CAUGHT_UP_WITHIN_MS = 3_600_000


def handle_change_voters(
    replica: Replica, now_ms: int, request_id: int, request: ChangeVotersRequest
) -> None:
    """Answer at once, or when the change is committed; the checks stand in Kafka's order (rule R11.2)."""
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


def _refuse_change(replica: Replica, change: PendingAdd | PendingCommit, refusal: Refusal) -> None:
    if change.request_id is not None:
        _refuse(replica, change.request_id, refusal)


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
    if change.request.voter.id != source_id or change.voter is not None:
        return
    refusal = _unfit(replica, leader, now_ms, change.request, response)
    if refusal is not None:
        leader.change = None
        _refuse_change(replica, change, refusal)
        return
    assert response.kraft_versions is not None
    change.voter = Voter(change.request.voter, change.request.endpoints, response.kraft_versions)
    _begin_last_round(replica, leader, change)


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


def _begin_last_round(replica: Replica, leader: Leader, change: PendingAdd) -> None:
    """Have the node prove that it still has its log: by a Fetch that comes after its answer, and reaches where the log
    ends now, or ended at such a Fetch before.

    The leader remembers how far the node was, and the process that was so far may be gone. The one that answered may
    have started since with a damaged log, and its first Fetch, which says so, may not have arrived. A Fetch that waits
    is answered now, so that the next one comes within a round trip.
    """
    leader.progress[change.request.voter].begin_round(replica.log.log_end_offset)
    answer_parked_fetch(replica, leader, progress_key(replica, change.request.voter))
    if not change.request.ack_when_committed and change.request_id is not None:
        _agree(replica, change.request_id)
        change.request_id = None


def _has_fetched_all(leader: Leader, change: PendingAdd) -> bool:
    progress = leader.progress.get(change.request.voter)
    return progress is not None and progress.has_caught_up


def maybe_add_voter(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Append the voter that is to be added, once it has fetched up to the end of the log since it answered what it
    supports (rule R11.3)."""
    change = leader.change
    if not isinstance(change, PendingAdd) or change.voter is None or not _has_fetched_all(leader, change):
        return
    offset = append_voters(replica, now_ms, replica.voters.with_voter(change.voter))
    leader.change = None
    if change.request_id is not None:
        leader.change = PendingCommit(change.request_id, offset, change.deadline_ms)


def handle_api_versions_failure(replica: Replica, now_ms: int, source_id: int) -> None:
    failed = ApiVersionsResponse(error=ErrorCode.network_exception)
    handle_api_versions_response(replica, now_ms, source_id, failed)


def abandon_add(replica: Replica, leader: Leader) -> None:
    """The leader cannot write the voter that it was about to add."""
    if isinstance(leader.change, PendingAdd):
        refusal = ErrorCode.request_timed_out, "the leader's disk is full, and it hands over; try again"
        _refuse_change(replica, leader.change, refusal)
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
        message = f"the change of the voters: {_why_late(change)}"
        _refuse_change(replica, change, (ErrorCode.request_timed_out, message))
    is_committed = replica.voter_history.voters_offset < replica.high_watermark
    return is_committed and replica.high_watermark > leader.epoch_start_offset and not replica.is_voter


def _why_late(change: PendingAdd | PendingCommit) -> str:
    if isinstance(change, PendingCommit):
        return "it is not committed yet, though it may be later"
    if change.voter is None:
        return "no answer"
    node_id = change.voter.key.id
    return f"node {node_id} has not fetched up to the end of the log since it was asked; wait until it has caught up"


# From static voters to dynamic ones: finalising kraft.version 1 (rule R11.5)


def upgrade_kraft_version(
    replica: Replica, leader: Leader, now_ms: int, kraft_version: int, *, validate_only: bool
) -> str | None:
    """Finalise a higher kraft.version with the voters as they said they are (rule R11.5); answers why not, or None."""
    history = replica.voter_history
    if kraft_version == history.kraft_version:
        return None
    if not SUPPORTED_KRAFT_VERSIONS.includes(kraft_version):
        return f"kraft.version {kraft_version} is not supported; 0 and 1 are"
    if kraft_version < history.kraft_version:
        return f"kraft.version is {history.kraft_version} and cannot go back to {kraft_version}"
    is_busy = leader.change is not None or leader.transfer is not None
    if is_busy or replica.high_watermark <= leader.epoch_start_offset:
        return "the leader has not committed anything in its epoch yet, changes the voters or hands over; try again"
    voters = _reported_voters(replica, leader)
    for voter_id in replica.voters.ids:
        if voter_id not in voters:
            return f"node {voter_id} has not told the leader its directory id and listeners; is it running?"
        progress = leader.progress.get(replica.voters.voters[voter_id].key, ReplicaProgress())
        if progress.directory_id not in (ZERO_DIRECTORY, voters[voter_id].key.directory_id):
            return (
                f"node {voter_id} fetches from another metadata folder than it told the leader; try again once it has "
                "reported the new one"
            )
        if not voters[voter_id].kraft_versions.includes(kraft_version):
            return f"node {voter_id} does not support kraft.version {kraft_version}"
    if not validate_only:
        chosen = VoterSet.of(*(voters[voter_id] for voter_id in replica.voters.ids))
        records = (KRaftVersionRecord(k_raft_version=kraft_version), voters_record(chosen))
        rename_progress(leader, chosen)
        append_quorum_records(replica, now_ms, records)
    return None


def _reported_voters(replica: Replica, leader: Leader) -> dict[int, Voter]:
    own = {replica.config.node_id: replica.own_entry} if replica.config.endpoints else {}
    return leader.reported_voters | own


def rename_progress(leader: Leader, voters: VoterSet) -> None:
    """Voters that were known by id alone get their full keys; what the leader knows of them stays."""
    for voter in voters:
        known = leader.progress.pop(ReplicaKey(voter.key.id), None)
        if known is not None:
            leader.progress[voter.key] = known


# What a follower asks of its leader: to correct its own entry, or to let it in

# Answers after which there is nothing to do before the next look: done, or another change of the voters is under way.
_SETTLED = (
    ErrorCode.none,
    ErrorCode.request_timed_out,
    ErrorCode.duplicate_voter,
    ErrorCode.voter_not_found,
)


def maybe_ask_leader(replica: Replica, role: Follower, now_ms: int) -> None:
    """Send what `wanted_change` says, at most once a period (rule R11.4), while no Fetch is in flight, and not before
    the leader has answered one: on a slow link the fetch timeout would otherwise end before the first answer."""
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
        is_reported = replica.reported_to == LeaderAndEpoch(replica.leader_id, replica.epoch)
        return _update_request(replica) if replica.is_voter and not is_reported else None
    if replica.is_voter:
        return _update_request(replica) if replica.own_entry_is_stale else None
    if replica.damaged_epoch is not None:
        return None  # As a voter it could not help to replace the leader before its log is whole.
    return _join_request(replica) if replica.config.auto_join else None


def _update_request(replica: Replica) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=replica.config.cluster_id,
        current_leader_epoch=replica.epoch,
        voter=replica.key,
        endpoints=replica.config.endpoints,
        kraft_versions=replica.config.kraft_versions,
    )


def _join_request(replica: Replica) -> ChangeVotersRequest | None:
    """What auto-join asks for: first to remove the entry of the disk that this one replaced, then to add this one.

    A replica that was removed stays out until an operator adds it again (rule P6; KAFKA-19850).
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
