"""The tally of a nominee, after Kafka's CandidateStateTest (rule R5.5)."""

import pytest

from kquorum.raft.messages import VoteRequest
from kquorum.raft.ready import OutboundRequest, QuorumState
from kquorum.raft.voters import ReplicaKey
from tests.support.raft.context import LOCAL, RaftContext, key_of


def candidate_of(*voters: int) -> tuple[RaftContext, dict[int, OutboundRequest]]:
    """A candidate, and its request for a vote to each other voter."""
    context = RaftContext(voters=voters)
    context.advance(context.config.fetch_timeout_ms)
    pre_votes = context.sent(VoteRequest)
    for outbound in pre_votes:
        if context.node.role == "prospective":
            context.vote(outbound)
    assert context.node.role == "candidate"
    return context, {outbound.destination_id: outbound for outbound in context.sent(VoteRequest)}


def test_a_sole_voter_asks_no_peer() -> None:
    """testSingleNodeQuorum"""
    context = RaftContext(voters=(1,))
    assert context.node.role == "leader"
    assert context.sent(VoteRequest) == []


@pytest.mark.parametrize(
    ("voters", "grants"), [((1, 2), 1), ((1, 2, 3), 1), ((1, 2, 3, 4), 2), ((1, 2, 3, 4, 5), 2)]
)
def test_it_leads_with_the_vote_that_makes_a_majority_and_not_before(
    voters: tuple[int, ...], grants: int
) -> None:
    """testTwoNodeQuorumVoteGranted, testThreeNodeQuorumVoteGranted"""
    context, requests = candidate_of(*voters)
    for count, node_id in enumerate(voters[1:], start=1):
        assert context.node.role == "candidate"
        context.vote(requests[node_id])
        if count == grants:
            break
    assert context.standing == ("leader", 1, LOCAL)


@pytest.mark.parametrize(
    ("voters", "rejections"), [((1, 2), 1), ((1, 2, 3), 2), ((1, 2, 3, 4), 2), ((1, 2, 3, 4, 5), 3)]
)
def test_once_a_majority_is_impossible_no_voter_is_asked(voters: tuple[int, ...], rejections: int) -> None:
    """testTwoNodeQuorumVoteRejected, testThreeNodeQuorumVoteRejected: it waits out its timeout as it is."""
    context, requests = candidate_of(*voters)
    for node_id in voters[1 : 1 + rejections]:
        context.vote(requests[node_id], granted=False)
    context.requests.clear()
    context.advance(context.config.election_timeout_ms - 1)
    assert context.node.role == "candidate"
    assert context.sent(VoteRequest) == []
    context.advance(1)
    assert context.node.role == "prospective"


def test_the_same_answer_twice_counts_once() -> None:
    """testIdempotentGrant, testIdempotentReject: the second is to no request that is under way."""
    context, requests = candidate_of(1, 2, 3, 4, 5)
    context.vote(requests[2])
    context.vote(requests[2])
    assert context.node.role == "candidate"
    context.vote(requests[3], granted=False)
    context.vote(requests[3], granted=False)
    context.vote(requests[4])
    assert context.node.role == "leader"


@pytest.mark.parametrize("first", [True, False])
def test_an_answer_cannot_be_changed(first: bool) -> None:
    """testCannotChangeVoteGrantedToRejected, testCannotChangeVoteRejectedToGranted"""
    context, requests = candidate_of(1, 2, 3, 4, 5)
    context.vote(requests[2], granted=first)
    context.vote(requests[2], granted=not first)
    context.vote(requests[3])
    assert context.node.role == ("leader" if first else "candidate")


def test_a_candidates_own_vote_cannot_be_refused() -> None:
    """testCannotRejectVoteFromLocalId"""
    context, requests = candidate_of(1, 2, 3)
    assert LOCAL not in requests
    assert context.state == QuorumState(leader_epoch=1, voted=context.node.replica.key)
    for node_id in (2, 3):
        context.vote(requests[node_id], granted=False)
    context.advance(1)
    assert context.node.role == "candidate"
    assert context.state.voted == context.node.replica.key


def test_a_node_outside_the_voters_has_no_vote() -> None:
    """testCannotGrantOrRejectNonVoters: it was not asked, so its response matches no request."""
    context, requests = candidate_of(1, 2, 3)
    unrelated = OutboundRequest(requests[2].correlation_id, 9, requests[2].request)
    context.vote(unrelated)
    assert context.node.role == "candidate"


@pytest.mark.parametrize("last_offset", [0, 10_000])
def test_it_grants_no_vote_in_its_epoch_not_even_to_a_longer_log(last_offset: int) -> None:
    """testGrantVote; pre-votes depend on the log alone."""
    context, _ = candidate_of(1, 2, 3)
    for candidate in (LOCAL, 2, 3):
        assert not context.ask_for_vote(candidate, 1, last_offset=last_offset).vote_granted
    assert context.ask_for_pre_vote(2, 1, last_offset=last_offset).vote_granted
    assert context.node.role == "candidate"


def test_what_is_on_disk_is_the_vote_for_itself_and_no_leader() -> None:
    """testElectionState, testLeaderEndpoints"""
    context, _ = candidate_of(1, 2, 3)
    assert context.state == QuorumState(leader_epoch=1, leader_id=-1, voted=key_of(LOCAL))
    assert context.node.replica.known_leader_endpoints == ()


@pytest.mark.parametrize("voters", [(), (2, 3)])
def test_a_replica_outside_the_voters_never_becomes_one(voters: tuple[int, ...]) -> None:
    """testInvalidVoterSet"""
    context = RaftContext(voters=voters)
    context.advance(10 * context.config.fetch_timeout_ms)
    assert context.node.role == "unattached"
    with pytest.raises(AssertionError):
        context.node.replica.become_candidate(context.now_ms, "test")


# The same tally before the epoch is taken (Kafka's ProspectiveStateTest)


@pytest.mark.parametrize(("voters", "grants"), [((1, 2), 1), ((1, 2, 3), 1), ((1, 2, 3, 4, 5), 2)])
def test_a_prospective_needs_the_same_majority(voters: tuple[int, ...], grants: int) -> None:
    context = RaftContext(voters=voters)
    context.advance(context.config.fetch_timeout_ms)
    requests = context.sent(VoteRequest)
    for outbound in requests[: grants - 1]:
        context.vote(outbound)
    assert context.standing == ("prospective", 0, -1)
    assert context.state == QuorumState(), "a pre-vote leaves nothing on disk"
    context.vote(requests[grants - 1])
    assert context.standing == ("candidate", 1, -1)


def test_a_prospective_that_voted_keeps_that_vote() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=4, voted=ReplicaKey(2)))
    context.advance(context.config.fetch_timeout_ms)
    assert context.node.role == "prospective"
    assert context.state == QuorumState(leader_epoch=4, voted=ReplicaKey(2))
    assert context.ask_for_vote(2, 4).vote_granted
    assert not context.ask_for_vote(3, 4).vote_granted
