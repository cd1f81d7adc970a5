"""Elections: asking for votes, granting them, and learning who leads (KIP-595; pre-vote, KIP-996)."""

from uuid import UUID

from kquorum.raft.messages import (
    MAX_EPOCH,
    NO_LEADER,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.ready import LeaderAndEpoch
from kquorum.raft.recovery import cannot_judge
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode


def is_foreign_cluster(replica: Replica, cluster_id: str | None) -> bool:
    """A request may leave the cluster id out; the empty string is not leaving it out."""
    return cluster_id is not None and cluster_id != replica.config.cluster_id


def is_for_other_voter(replica: Replica, addressed: ReplicaKey) -> bool:
    """Whether a request is meant for another replica; ids that it does not carry are not compared."""
    if addressed.id < 0:
        return False
    if addressed.id != replica.config.node_id:
        return True
    return addressed.directory_id not in (UUID(int=0), replica.config.directory_id)


# Voting


def handle_vote(replica: Replica, now_ms: int, request: VoteRequest) -> VoteResponse:
    """Check a vote request in the order of rule R5.3, and grant or refuse it.

    `may_grant_vote` decides. A granted vote is in `Ready.quorum_state`: the driver writes it to the disk before the
    response leaves (rule R3.2). A granted pre-vote is not recorded.
    """
    if is_foreign_cluster(replica, request.cluster_id):
        return VoteResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True)
    error = _check_vote(replica, request)
    if error is not ErrorCode.none:
        return _vote_response(replica, error)
    if request.replica_epoch > replica.epoch:
        replica.become_unattached(
            request.replica_epoch, now_ms, f"vote request of node {request.candidate.id}"
        )
    if is_for_other_voter(replica, request.voter):
        return _vote_response(replica, ErrorCode.invalid_voter_key)
    granted = may_grant_vote(replica, request)
    if granted and not request.pre_vote and replica.state.voted is None:
        replica.record_vote(request.candidate, now_ms)
    if granted and request.pre_vote:
        _defer_to_rival(replica, now_ms)
    return _vote_response(replica, ErrorCode.none, granted)


def _defer_to_rival(replica: Replica, now_ms: int) -> None:
    """Delay this replica's own candidacy at random after it has granted a rival's pre-vote.

    If both stood for election in the same moment, each would get one vote, and no node would lead for an election
    timeout.
    """
    role = replica.role
    if isinstance(role, Prospective) and role.stands_from_ms is None:
        role.stands_from_ms = now_ms + replica.random_source.randint(0, replica.config.pre_vote_retry_ms)


def _check_vote(replica: Replica, request: VoteRequest) -> ErrorCode:
    # A candidate has raised its epoch, so its log ends in an older one. A pre-vote (KIP-996) is asked for in the epoch
    # that the log may end in.
    last_epoch_bound = request.replica_epoch + 1 if request.pre_vote else request.replica_epoch
    if request.last_offset < 0 or not 0 <= request.last_offset_epoch < max(1, last_epoch_bound):
        return ErrorCode.invalid_request
    if request.replica_epoch < replica.epoch:
        return ErrorCode.fenced_leader_epoch
    if request.candidate.id < 0 or request.replica_epoch > MAX_EPOCH:
        return ErrorCode.invalid_request
    return ErrorCode.none


def _vote_response(replica: Replica, error: ErrorCode, granted: bool = False) -> VoteResponse:
    return VoteResponse(
        error=error,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
        vote_granted=granted,
    )


def is_up_to_date(replica: Replica, last_epoch: int, last_offset: int) -> bool:
    """Raft §5.4.1: the later epoch wins, the longer log among equals."""
    return (last_epoch, last_offset) >= (replica.log.last_epoch, replica.log.log_end_offset)


def may_grant_vote(replica: Replica, request: VoteRequest) -> bool:
    """Whether a vote in this replica's own epoch is granted (rule R5.4).

    A replica that lost what it had written grants nothing: it may have voted in this epoch, and its log no longer
    stands for what it had acknowledged.
    """
    if replica.has_lost_its_state or cannot_judge(replica, request.last_offset_epoch):
        return False
    up_to_date = is_up_to_date(replica, request.last_offset_epoch, request.last_offset)
    if request.pre_vote:
        return up_to_date and _may_grant_pre_vote(replica)
    match replica.role:
        case Unattached() | Prospective():
            voted = replica.state.voted
            if voted is not None:
                # One vote per epoch, also after a restart; its candidate may ask again if the response was lost.
                return _is_same_candidate(voted, request.candidate)
            return up_to_date and replica.leader_id == NO_LEADER
        case _:
            return False


def _may_grant_pre_vote(replica: Replica) -> bool:
    """A replica that hears a leader, or is one, does not help a rival to disturb it."""
    match replica.role:
        case Leader():
            return False
        case Follower(has_fetched=has_fetched):
            return not has_fetched
        case _:
            return True


def _is_same_candidate(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    # A vote from before directory ids (KIP-853) has the zero id, and is for that node with any directory.
    return voted.id == candidate.id and voted.directory_id in (UUID(int=0), candidate.directory_id)


# Standing for election


def poll_nominee(replica: Replica, role: Prospective | Candidate, now_ms: int) -> None:
    """Become candidate or leader with a majority of the votes, give up after a lost election, or else ask the voters
    that have not answered (rule R5.5)."""
    if role.is_withdrawn:
        return
    if defers_to_rival(replica, role, now_ms):
        return
    if len(role.granted) >= replica.voters.majority:
        if isinstance(role, Prospective):
            replica.become_candidate(now_ms, role.cause)
        else:
            replica.become_leader(now_ms)
    elif now_ms >= role.election_deadline_ms:
        _election_failed(replica, role, now_ms, "election timed out")
    elif isinstance(role, Prospective) and role.is_lost(replica.voters):
        _election_failed(replica, role, now_ms, "a majority would not vote for it")
    else:
        for voter_id in votes_wanted(replica, role):
            if replica.connections.is_ready(voter_id, now_ms):
                replica.send(
                    voter_id, _vote_request(replica, voter_id, isinstance(role, Prospective)), now_ms
                )


def defers_to_rival(replica: Replica, role: Prospective | Candidate, now_ms: int) -> bool:
    """Whether this replica has a majority of the pre-votes, but lets a rival stand first."""
    if isinstance(role, Candidate) or role.stands_from_ms is None:
        return False
    until_ms = min(role.stands_from_ms, role.election_deadline_ms)
    return len(role.granted) >= replica.voters.majority and now_ms < until_ms


def votes_wanted(replica: Replica, role: Prospective | Candidate) -> tuple[int, ...]:
    """The voters to be asked, in a pre-vote also those that refused; none once a majority has refused."""
    if role.is_withdrawn or role.is_lost(replica.voters):
        return ()
    answered = role.granted if isinstance(role, Prospective) else role.granted | role.rejected
    return tuple(voter_id for voter_id in replica.other_voters if voter_id not in answered)


def _election_failed(replica: Replica, role: Prospective | Candidate, now_ms: int, cause: str) -> None:
    """A candidate that lost waits out its timeout (the randomised back-off) before it asks again."""
    if isinstance(role, Candidate):
        replica.become_prospective(now_ms, cause)
    if not isinstance(role, Candidate) or replica.epoch >= MAX_EPOCH:
        stop_standing(replica, now_ms, cause)


def stop_standing(replica: Replica, now_ms: int, cause: str) -> None:
    """Make a nominee a follower of the leader that it knows, or else unattached. Its epoch and its vote for itself
    stay."""
    if may_be_leader(replica, replica.leader_id, replica.leader_endpoints):
        replica.become_follower(replica.epoch, replica.leader_id, now_ms, cause, replica.leader_endpoints)
    else:
        replica.become_unattached(replica.epoch, now_ms, cause, replica.leader_id)


def _vote_request(replica: Replica, voter_id: int, pre_vote: bool) -> VoteRequest:
    return VoteRequest(
        cluster_id=replica.config.cluster_id,
        replica_epoch=replica.epoch,
        candidate=replica.key,
        voter=replica.voters.voters[voter_id].key,
        last_offset=replica.log.log_end_offset,
        last_offset_epoch=replica.log.last_epoch,
        pre_vote=pre_vote,
    )


def handle_vote_response(replica: Replica, now_ms: int, source_id: int, response: VoteResponse) -> None:
    """Count the answer for this nominee (rule R5.5). It cannot belong to an earlier role: the connections forget the
    requests of earlier roles.

    A prospective asks a voter again after a refusal. When a leader dies, the fetch timeouts of its followers end within
    milliseconds of each other. A follower whose timeout has not ended yet refuses the first that asks, and the second
    may be refused for its shorter log. If both waited for their election timeouts, writes would stop for twice the
    fetch timeout.
    """
    role = replica.role
    if not isinstance(role, Prospective | Candidate) or source_id not in replica.voters.voters:
        return
    if response.vote_granted:
        assert isinstance(role, Prospective) or source_id not in role.rejected, (
            f"node {source_id} voted twice"
        )
        role.rejected.discard(source_id)
        role.granted.add(source_id)
    elif isinstance(role, Prospective) and _lacks_end_quorum_epoch(replica, response):
        # The leader sends EndQuorumEpoch to all voters at once, and the first in line stands at once: this voter has
        # not received it yet. If its refusal counted, the election would be lost with four voters or more.
        replica.connections.back_off(source_id, now_ms)
    elif source_id not in role.granted:
        role.rejected.add(source_id)
        replica.connections.back_off(source_id, now_ms, replica.config.pre_vote_retry_ms)


def _lacks_end_quorum_epoch(replica: Replica, response: VoteResponse) -> bool:
    """Whether a voter has not received the EndQuorumEpoch of a leader that this replica knows to have left."""
    return replica.departed == LeaderAndEpoch(response.leader_id, response.leader_epoch)


# Learning who leads


def handle_begin_quorum_epoch(
    replica: Replica, now_ms: int, request: BeginQuorumEpochRequest
) -> BeginQuorumEpochResponse:
    """Follow the leader that makes itself known (rule R5.7)."""
    if is_foreign_cluster(replica, request.cluster_id):
        return BeginQuorumEpochResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True)
    error = maybe_follow(replica, request, now_ms, "the leader made itself known")
    if error is ErrorCode.none and (replica.has_lost_its_state or is_for_other_voter(replica, request.voter)):
        # A replica that lost its state follows as well, but its answer must not count as a voter's.
        error = ErrorCode.invalid_voter_key
    return BeginQuorumEpochResponse(
        error=error,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
    )


def handle_end_quorum_epoch(
    replica: Replica, now_ms: int, request: EndQuorumEpochRequest
) -> EndQuorumEpochResponse:
    """The leader gives up its epoch: the preferred successor stands at once, the others after a growing wait (rules
    R5.2, R5.8)."""
    if is_foreign_cluster(replica, request.cluster_id):
        return EndQuorumEpochResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True)
    error = maybe_follow(replica, request, now_ms, "the leader said that it leaves")
    role = replica.role
    if error is ErrorCode.none and isinstance(role, Follower) and replica.leader_id == request.leader_id:
        role.fetch_deadline_ms = now_ms + _successor_backoff_ms(replica, request.preferred_candidates)
        role.has_fetched = False
        role.leader_left = True
        replica.departed = LeaderAndEpoch(replica.leader_id, replica.epoch)
    return EndQuorumEpochResponse(
        error=error,
        leader_id=replica.leader_id,
        leader_epoch=replica.epoch,
        leader_endpoints=replica.known_leader_endpoints,
    )


def _successor_backoff_ms(replica: Replica, preferred: tuple[ReplicaKey, ...]) -> int:
    """How long this voter waits before it stands (rule R5.2): the first in the list does not wait, each further one
    waits twice as long up to the maximum, and a voter that is not listed waits for the maximum. The second waits for
    as long as the first needs to ask again where voters refused it that had not received EndQuorumEpoch yet.

    An empty list prefers no voter: a restarted leader does not know how much of its log each has.
    """
    longest = replica.config.election_backoff_max_ms
    ids = [candidate.id for candidate in preferred]
    position = ids.index(replica.config.node_id) if replica.config.node_id in ids else len(ids)
    if position == 0:
        return 0
    if position == len(ids):
        return longest
    wait_ms = max(longest >> (len(ids) - 1), 2 * replica.config.pre_vote_retry_ms) << (position - 1)
    return min(longest, wait_ms)


LeaderClaim = BeginQuorumEpochRequest | EndQuorumEpochRequest


def check_leader_claim(replica: Replica, request: LeaderClaim) -> ErrorCode:
    """What is wrong with "`leader_id` leads `leader_epoch`", if anything."""
    leader_id, leader_epoch = request.leader_id, request.leader_epoch
    if leader_epoch < replica.epoch:
        return ErrorCode.fenced_leader_epoch
    if leader_epoch > MAX_EPOCH or not may_be_leader(replica, leader_id, request.leader_endpoints):
        return ErrorCode.invalid_request
    if leader_epoch == replica.epoch and replica.leader_id not in (NO_LEADER, leader_id):
        # There cannot be two leaders in one epoch: the claim is refused, and nothing is changed.
        return ErrorCode.invalid_request
    return ErrorCode.none


def may_be_leader(replica: Replica, leader_id: int, endpoints: tuple[Endpoint, ...]) -> bool:
    """Another node leads, and there is an address to fetch from: a voter's, or the one that comes with the claim (a
    replica behind in its log may not know the newest voters)."""
    if leader_id < 0 or leader_id == replica.config.node_id:
        return False
    return leader_id in replica.voters.voters or bool(endpoints)


def maybe_follow(replica: Replica, request: LeaderClaim, now_ms: int, cause: str) -> ErrorCode:
    """Follow a leader of a newer epoch, or of this one if none was known; answers what is wrong with the claim."""
    error = check_leader_claim(replica, request)
    if error is not ErrorCode.none:
        return error
    leader_id, leader_epoch = request.leader_id, request.leader_epoch
    if isinstance(replica.role, Prospective) and replica.departed == LeaderAndEpoch(leader_id, leader_epoch):
        # Sent before the leader's EndQuorumEpoch, or that request again: a leader that has left is not followed again.
        return ErrorCode.none
    if leader_epoch > replica.epoch or isinstance(replica.role, Unattached | Prospective | Candidate):
        replica.become_follower(leader_epoch, leader_id, now_ms, cause, request.leader_endpoints)
        return ErrorCode.none
    assert isinstance(replica.role, Leader | Follower | Resigned)
    assert replica.leader_id == leader_id, (
        f"two leaders in epoch {leader_epoch}: {replica.leader_id}, {leader_id}"
    )
    if isinstance(replica.role, Follower):
        replica.leader_endpoints = request.leader_endpoints or replica.leader_endpoints
    return ErrorCode.none
