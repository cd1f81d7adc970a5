"""The leading side: serving fetches, finding the high watermark, holding on to a majority, leaving in good order."""

from kio.schema.errors import ErrorCode

from raft.elections import is_foreign_cluster
from raft.messages import (
    UNKNOWN_OFFSET,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    LogSlice,
)
from raft.replica import Replica
from raft.replication import diverging_point, majority_offset
from raft.roles import Leader, ParkedFetch, ReplicaProgress, Resigned
from raft.voters import Endpoint, ReplicaKey, Voter

# Kafka forgets an observer that has not fetched for this long.
OBSERVER_SESSION_MS = 300_000


# Fetch


def handle_fetch(replica: Replica, now_ms: int, request_id: int, request: FetchRequest) -> None:
    """Answer at once or park; the checks stand in Kafka's order (kraft-semantics A6.1)."""
    if is_foreign_cluster(replica, request.cluster_id):
        error = ErrorCode.inconsistent_cluster_id
        replica.respond(request_id, FetchResponse(error=error, is_top_level=True))
        return
    error = _check_fetch(replica, request)
    if error is not ErrorCode.none:
        replica.respond(request_id, _fetch_response(replica, error))
        return
    leader = replica.role
    assert isinstance(leader, Leader)
    diverging = diverging_point(replica.log, request.fetch_offset, request.last_fetched_epoch)
    if diverging is not None:
        response = FetchResponse(
            leader_id=replica.leader_id,
            leader_epoch=replica.epoch,
            high_watermark=replica.high_watermark,
            log_start_offset=replica.log.log_start_offset,
            diverging=diverging,
        )
        replica.respond(request_id, response)
        return
    _note_progress(replica, leader, request, now_ms)
    leader.parked.append(ParkedFetch(request_id, request, now_ms + request.max_wait_ms))


def _check_fetch(replica: Replica, request: FetchRequest) -> ErrorCode:
    if min(request.max_wait_ms, request.fetch_offset, request.last_fetched_epoch) < 0:
        return ErrorCode.invalid_request
    if request.last_fetched_epoch > max(0, request.current_leader_epoch):
        return ErrorCode.invalid_request
    if request.replica.id == replica.config.node_id:
        return ErrorCode.invalid_request
    if request.current_leader_epoch < replica.epoch:
        return ErrorCode.fenced_leader_epoch
    if request.current_leader_epoch > replica.epoch:
        return ErrorCode.unknown_leader_epoch
    if not isinstance(replica.role, Leader):
        return ErrorCode.not_leader_or_follower
    return ErrorCode.none


def _fetch_response(
    replica: Replica, error: ErrorCode = ErrorCode.none, records: LogSlice | bytes = b""
) -> FetchResponse:
    return FetchResponse(
        error=error,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        high_watermark=replica.high_watermark,
        log_start_offset=replica.log.log_start_offset,
        records=records,
    )


def _note_progress(replica: Replica, leader: Leader, request: FetchRequest, now_ms: int) -> None:
    """The fetch offset acknowledges all below it; a valid fetch also says that this voter still follows."""
    if request.replica.id < 0:
        return
    progress = _progress_of(replica, leader, _progress_key(replica, request.replica), now_ms)
    end_offset = replica.log.log_end_offset
    if request.fetch_offset >= end_offset:
        progress.last_caught_up_ms = now_ms
    elif 0 <= progress.leader_end_offset_at_fetch <= request.fetch_offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
    progress.end_offset = request.fetch_offset
    progress.last_fetch_ms = now_ms
    progress.leader_end_offset_at_fetch = end_offset
    if replica.voters.contains(request.replica):
        leader.fetched_since_check.add(request.replica.id)
        leader.begin_epoch_due_ms[request.replica.id] = now_ms + replica.config.begin_quorum_epoch_interval_ms


def _progress_of(replica: Replica, leader: Leader, key: ReplicaKey, now_ms: int) -> ReplicaProgress:
    """Observers come and go, each with a directory id of its own: those long gone make room for a new one."""
    if key not in leader.progress:
        leader.progress = {
            known: progress
            for known, progress in leader.progress.items()
            if replica.voters.contains(known) or progress.last_fetch_ms + OBSERVER_SESSION_MS > now_ms
        }
        leader.progress[key] = ReplicaProgress()
    return leader.progress[key]


def _progress_key(replica: Replica, fetcher: ReplicaKey) -> ReplicaKey:
    """A voter known by id alone is tracked under that key, whatever directory id it names."""
    voter = replica.voters.voters.get(fetcher.id)
    return voter.key if voter is not None and voter.matches(fetcher) else fetcher


def complete_parked_fetches(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Answer every fetch for which there are records, a newer high watermark (KIP-1166), or no more time."""
    still_parked = []
    for parked in leader.parked:
        request = parked.request
        knows_less = request.high_watermark is not None and request.high_watermark < replica.high_watermark
        if request.fetch_offset < replica.log.log_end_offset:
            max_bytes = max(1, min(request.max_bytes, replica.config.max_fetch_bytes))
            slice_ = LogSlice(request.fetch_offset, max_bytes)
            replica.respond(parked.request_id, _fetch_response(replica, records=slice_))
        elif knows_less or now_ms >= parked.deadline_ms:
            replica.respond(parked.request_id, _fetch_response(replica))
        else:
            still_parked.append(parked)
    leader.parked = still_parked


def answer_displaced_fetches(replica: Replica) -> None:
    """Fetches that were parked at a leader which no longer leads learn where to go."""
    for request_id in replica.displaced_fetches:
        replica.respond(request_id, _fetch_response(replica, ErrorCode.not_leader_or_follower))
    replica.displaced_fetches.clear()


# High watermark


def maybe_advance_high_watermark(replica: Replica, leader: Leader) -> None:
    """Commit what a majority has on disk, once that includes a record of this epoch (Raft §5.4.2).

    The leader counts what it has flushed, not what it has written.
    """
    reached = majority_offset(_voter_end_offset(replica, leader, voter) for voter in replica.voters)
    if reached > leader.epoch_start_offset and reached > replica.high_watermark:
        replica.high_watermark = reached


def _voter_end_offset(replica: Replica, leader: Leader, voter: Voter) -> int:
    if voter.key.id == replica.config.node_id:
        return replica.log.flushed_offset
    progress = leader.progress.get(voter.key)
    return UNKNOWN_OFFSET if progress is None else min(progress.end_offset, replica.log.log_end_offset)


# Holding on


def poll_leader(replica: Replica, leader: Leader, now_ms: int) -> None:
    for batch in replica.accumulator.drain():
        replica.append(batch)
    maybe_advance_high_watermark(replica, leader)
    complete_parked_fetches(replica, leader, now_ms)
    _check_quorum(replica, leader, now_ms)
    if isinstance(replica.role, Leader):
        _begin_quorum_epoch(replica, leader, now_ms)


def _check_quorum(replica: Replica, leader: Leader, now_ms: int) -> None:
    """A leader whom a majority no longer fetches from may have been replaced: it must not go on (KAFKA-15489)."""
    needed = replica.voters.majority - (1 if replica.is_voter else 0)
    if len(leader.fetched_since_check) >= needed:
        leader.fetched_since_check.clear()
        leader.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    elif now_ms >= leader.check_quorum_deadline_ms:
        resign(replica, now_ms, "no majority of the voters fetched in time")


def _begin_quorum_epoch(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Make the new leader known to the voters that do not fetch from it yet."""
    for voter_id in replica.other_voters:
        due_ms = leader.begin_epoch_due_ms[voter_id]
        if due_ms <= now_ms and replica.connections.is_ready(voter_id, now_ms):
            leader.begin_epoch_due_ms[voter_id] = now_ms + replica.config.begin_quorum_epoch_interval_ms
            voter = replica.voters.voters[voter_id]
            request = BeginQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                leader_id=replica.config.node_id,
                leader_epoch=replica.epoch,
                leader_endpoints=own_endpoints(replica),
                voter=voter.key,
            )
            replica.send(voter_id, request, now_ms)


def own_endpoints(replica: Replica) -> tuple[Endpoint, ...]:
    own = replica.voters.voters.get(replica.config.node_id)
    return own.endpoints if own is not None else ()


def handle_begin_quorum_epoch_response(replica: Replica, now_ms: int, source_id: int) -> None:
    """The voter has heard it; its next sign of life is its Fetch. Errors were dealt with by the common rules."""
    leader = replica.role
    if isinstance(leader, Leader):
        leader.begin_epoch_due_ms[source_id] = now_ms + replica.config.begin_quorum_epoch_interval_ms


# Leaving


def resign(replica: Replica, now_ms: int, cause: str) -> None:
    leader = replica.role
    assert isinstance(leader, Leader)
    replica.become_resigned(now_ms, cause, preferred_successors(replica, leader))


def preferred_successors(replica: Replica, leader: Leader) -> tuple[ReplicaKey, ...]:
    """The other voters, the most caught up first: the first in line will stand for election at once."""
    voters = [voter for voter in replica.voters if voter.key.id != replica.config.node_id]
    voters.sort(key=lambda voter: (-_voter_end_offset(replica, leader, voter), voter.key))
    return tuple(voter.key for voter in voters)


def poll_resigned(replica: Replica, role: Resigned, now_ms: int) -> None:
    if now_ms >= role.election_deadline_ms and not replica.is_shutting_down:
        replica.become_unattached(replica.epoch + 1, now_ms, "resigned, and nobody took over")
        return
    for voter_id in sorted(role.unacknowledged):
        if replica.connections.is_ready(voter_id, now_ms):
            request = EndQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                leader_id=replica.config.node_id,
                leader_epoch=replica.epoch,
                preferred_candidates=role.preferred_candidates,
                leader_endpoints=own_endpoints(replica),
            )
            replica.send(voter_id, request, now_ms)


def handle_end_quorum_epoch_response(
    replica: Replica, source_id: int, response: EndQuorumEpochResponse
) -> None:
    role = replica.role
    if isinstance(role, Resigned) and response.error is ErrorCode.none:
        role.unacknowledged.discard(source_id)
