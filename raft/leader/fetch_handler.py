"""How a leader serves Fetch and FetchSnapshot, and what it knows of every replica by their fetches (DescribeQuorum)."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress, islice
from operator import not_

from kquorum.raft.elections import is_foreign_cluster
from kquorum.raft.leader.delayed_fetches import DelayedFetch
from kquorum.raft.leader.majority import confirm_by_fetch
from kquorum.raft.log_index import diverging_point, snapshot_needed
from kquorum.raft.messages import (
    UNKNOWN_OFFSET,
    DescribeQuorumResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LogSlice,
    ReplicaStatus,
    SnapshotSlice,
)
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Leader, ReplicaProgress
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode

# Kafka forgets an observer that has not fetched for this long.
OBSERVER_SESSION_MS = 300_000
# A leader cannot verify the id and directory that a Fetch names, so one peer may fetch under any number of names. This
# many observers are remembered, this many Fetches wait for as long as they ask, and this many are answered in one turn,
# beside those of the voters.
MAX_OBSERVERS = 10_000
MAX_PARKED = 10_000
ANSWERS_A_TURN = 250
# A Fetch beyond MAX_PARKED waits this long at most. Neither it nor an older one is answered at once: that replica would
# fetch again at once, and so would all the others, without a pause.
CROWDED_WAIT_MS = 500


def handle_fetch(replica: Replica, now_ms: int, request_id: int, request: FetchRequest) -> None:
    """Answer a Fetch at once, or park it until there is something to send (rule R6.4). The checks stand in Kafka's
    order (rule R6.1)."""
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
    position = (request.fetch_offset, request.last_fetched_epoch)
    snapshot_id = snapshot_needed(replica.log, *position)
    diverging = None if snapshot_id is not None else diverging_point(replica.log, *position)
    if snapshot_id is not None or diverging is not None:
        _note_lag(replica, leader, request)
        response = replace(_fetch_response(replica), snapshot_id=snapshot_id, diverging=diverging)
        replica.respond(request_id, response)
        return
    key = progress_key(replica, request.replica)
    _note_progress(replica, leader, key, request, now_ms)
    # With this Fetch the replica has given the earlier one up: it waits in one at a time.
    answer_parked_fetch(replica, leader, key)
    # A client without a replica id may have several fetches parked, so each waits under its request.
    name = key if key.id >= 0 else request_id
    # Parked fetches are bounded: beyond the bound all but voters are answered early, and fetch again.
    is_crowded = len(leader.parked) >= MAX_PARKED and not replica.voters.contains(request.replica)
    wait_ms = min(request.max_wait_ms, CROWDED_WAIT_MS) if is_crowded else request.max_wait_ms
    leader.parked.add(DelayedFetch(name, request_id, request, now_ms + wait_ms))


def answer_parked_fetch(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
    """Answer the Fetch that waits under this key (of `progress_key`), if there is one: a live replica fetches again at
    once."""
    earlier = leader.parked.pop(key)
    if earlier is not None:
        # Never "nothing" while there is something: a replica may take that for having it all (`raft.recovery`).
        replica.respond(earlier.request_id, _answer_from(replica, earlier.request))


def _check_fetch(replica: Replica, request: FetchRequest) -> ErrorCode:
    if min(request.max_wait_ms, request.fetch_offset, request.last_fetched_epoch) < 0:
        return ErrorCode.invalid_request
    if request.last_fetched_epoch > max(0, request.current_leader_epoch):
        return ErrorCode.invalid_request
    if request.replica.id == replica.config.node_id:
        return ErrorCode.invalid_request
    return _check_epoch(replica, request.current_leader_epoch)


def _check_epoch(replica: Replica, current_leader_epoch: int) -> ErrorCode:
    if current_leader_epoch < replica.epoch:
        return ErrorCode.fenced_leader_epoch
    if current_leader_epoch > replica.epoch:
        return ErrorCode.unknown_leader_epoch
    if not isinstance(replica.role, Leader):
        return ErrorCode.not_leader_or_follower
    return ErrorCode.none


def handle_fetch_snapshot(
    replica: Replica, now_ms: int, request_id: int, request: FetchSnapshotRequest
) -> None:
    """A piece of a snapshot; a voter that asks for one follows, so that it counts as a sign of life (rule R10.4)."""
    if is_foreign_cluster(replica, request.cluster_id):
        error = ErrorCode.inconsistent_cluster_id
        replica.respond(request_id, FetchSnapshotResponse(error=error, is_top_level=True))
        return
    error = _check_epoch(replica, request.current_leader_epoch)
    is_known = request.snapshot_id in replica.log.snapshots and request.snapshot_id.offset > 0
    if error is ErrorCode.none and not is_known:
        error = ErrorCode.snapshot_not_found
    if error is ErrorCode.none and request.position < 0:
        error = ErrorCode.position_out_of_range
    data: SnapshotSlice | bytes = b""
    leader = replica.role
    if error is ErrorCode.none and isinstance(leader, Leader):
        max_bytes = max(1, min(request.max_bytes, replica.config.max_fetch_bytes))
        data = SnapshotSlice(request.snapshot_id, request.position, max_bytes)
        if replica.voters.contains(request.replica):
            # As with a Fetch: it counts for the check of the quorum, and needs no BeginQuorumEpoch for a while.
            leader.fetched_since_check.add(request.replica.id)
            interval_ms = replica.config.begin_quorum_epoch_interval_ms
            leader.begin_epoch_due_ms[request.replica.id] = now_ms + interval_ms
    response = FetchSnapshotResponse(
        error=error,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
        snapshot_id=request.snapshot_id,
        position=request.position,
        data=data,
    )
    replica.respond(request_id, response)


def _fetch_response(
    replica: Replica, error: ErrorCode = ErrorCode.none, records: LogSlice | bytes = b""
) -> FetchResponse:
    return FetchResponse(
        error=error,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
        high_watermark=told_high_watermark(replica),
        log_start_offset=replica.log.log_start_offset,
        records=records,
    )


def told_high_watermark(replica: Replica) -> int:
    """What a follower may learn: -1 before this epoch has committed anything (rule R7.9).

    The high watermark that a new leader knew as a follower may be older than what its predecessor told others. A Kafka
    broker that hears of a lower one than before ends its process.
    """
    leader = replica.role
    if isinstance(leader, Leader) and replica.high_watermark <= leader.epoch_start_offset:
        return UNKNOWN_OFFSET
    return replica.high_watermark


def _note_lag(replica: Replica, leader: Leader, request: FetchRequest) -> None:
    """A Fetch that no record answers acknowledges nothing. It says that this replica lacks records which the leader may
    remember it to have had: its disk was damaged, and it asks where the log ends (`raft.recovery`), or comes in by a
    snapshot. It has to catch up once more before it can be added as a voter."""
    progress = leader.progress.get(progress_key(replica, request.replica))
    if progress is not None:
        progress.forget_catching_up()


def _note_progress(
    replica: Replica, leader: Leader, key: ReplicaKey, request: FetchRequest, now_ms: int
) -> None:
    """Record what a valid Fetch says (rules R3.3, R6.3): its replica has all below the fetch offset, a voter on its
    disk, and a voter still follows this leader."""
    if request.replica.id < 0:
        return
    progress = _progress_of(replica, leader, key, now_ms)
    end_offset = replica.log.log_end_offset
    if request.fetch_offset < progress.end_offset:
        # It has less than it acknowledged.
        progress.forget_catching_up()
    if request.fetch_offset >= end_offset:
        progress.last_caught_up_ms = now_ms
        progress.has_caught_up = True
    elif 0 <= progress.leader_end_offset_at_fetch <= request.fetch_offset:
        # Under load it never reaches the end. It has now what the log held at its last Fetch, so it was caught up then.
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.has_caught_up = True
    progress.end_offset = request.fetch_offset
    progress.last_fetch_ms = now_ms
    progress.leader_end_offset_at_fetch = end_offset
    progress.directory_id = request.replica.directory_id
    if replica.voters.contains(request.replica):
        leader.fetched_since_check.add(request.replica.id)
        confirm_by_fetch(leader, request.replica.id, request.fetch_offset)
        leader.begin_epoch_due_ms[request.replica.id] = now_ms + replica.config.begin_quorum_epoch_interval_ms


def _progress_of(replica: Replica, leader: Leader, key: ReplicaKey, now_ms: int) -> ReplicaProgress:
    """The entry goes to the end, so that the replicas which have been silent longest stand first."""
    progress = leader.progress.pop(key, None)
    if progress is None:
        _forget_observers(replica, leader, now_ms)
        progress = ReplicaProgress()
    leader.progress[key] = progress
    return progress


def _forget_observers(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Forget observers to make room for a new replica (rule R14): those that have not fetched for a session, and if
    there are still too many, those that have been silent longest. Each reformatted disk is an observer of its own."""
    most = MAX_OBSERVERS + len(replica.voters) - 1
    forgotten: list[ReplicaKey] = []
    for known, progress in leader.progress.items():
        if replica.voters.contains(known):
            continue
        is_long_gone = progress.last_fetch_ms + OBSERVER_SESSION_MS <= now_ms
        if not is_long_gone and len(leader.progress) - len(forgotten) < most:
            break
        forgotten.append(known)
    for known in forgotten:
        del leader.progress[known]


def progress_key(replica: Replica, fetcher: ReplicaKey) -> ReplicaKey:
    """A voter known by id alone is tracked under that key, whatever directory id it names."""
    voter = replica.voters.voters.get(fetcher.id)
    return voter.key if voter is not None and voter.matches(fetcher) else fetcher


def complete_delayed_fetches(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Answer the parked fetches for which there are records, a newer high watermark (rules R6.4, R7.8; KIP-1166), or no
    more time: all of those of voters, and at most `ANSWERS_A_TURN` others. The rest have their turn next. A voter's
    fetch may wait a little for records where only the high watermark is news (`commit_notice_delay_ms`)."""
    leader.parked.find_due(
        replica.log.log_end_offset,
        told_high_watermark(replica),
        now_ms,
        replica.voters,
        replica.config.commit_notice_delay_ms,
    )
    due = leader.parked.due
    if not due:
        return
    answered: Iterable[DelayedFetch] = due
    if len(due) > ANSWERS_A_TURN:
        is_voter = [replica.voters.contains(delayed.request.replica) for delayed in due]
        others = islice(compress(due, map(not_, is_voter)), ANSWERS_A_TURN)
        answered = (*compress(due, is_voter), *others)
    for delayed in leader.parked.take(answered):
        replica.respond(delayed.request_id, _answer_from(replica, delayed.request))


def _answer_from(replica: Replica, request: FetchRequest) -> FetchResponse:
    """What there is from the offset of a valid fetch on; it may have gone behind a snapshot while the fetch waited."""
    log = replica.log
    if request.fetch_offset < log.log_start_offset:
        named = snapshot_needed(log, request.fetch_offset, request.last_fetched_epoch)
        return replace(_fetch_response(replica), snapshot_id=named)
    if request.fetch_offset < log.log_end_offset:
        max_bytes = max(1, min(request.max_bytes, replica.config.max_fetch_bytes))
        return _fetch_response(replica, records=LogSlice(request.fetch_offset, max_bytes))
    return _fetch_response(replica)


def answer_displaced_fetches(replica: Replica) -> None:
    """Fetches that were parked at a leader which no longer leads learn where to go."""
    for request_id in replica.displaced_fetches:
        replica.respond(request_id, _fetch_response(replica, ErrorCode.not_leader_or_follower))
    replica.displaced_fetches.clear()


# What DescribeQuorum answers: KIP-595 and KIP-836


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
