"""The time that the disk takes for an election state is no part of a role's time: nothing leaves before it is over."""

from kquorum.raft.inputs import QuorumStateWritten, TimeAdvanced
from kquorum.raft.messages import EndQuorumEpochRequest, VoteRequest
from kquorum.raft.ready import QuorumState
from tests.support.raft.context import CLUSTER_ID, RaftContext, key_of

DISK_MS = 700


def written(context: RaftContext) -> None:
    """The last turn's election state is on the disk after a while."""
    assert context.last_ready.quorum_state is not None
    context.now_ms += DISK_MS
    context.feed(QuorumStateWritten())


def test_a_candidate_waits_for_votes_as_long_as_it_would_with_a_fast_disk() -> None:
    context = RaftContext((1, 2), election_timeout_ms=500)
    (vote,) = context.become_candidate()
    written(context)
    assert context.standing == ("candidate", 1, -1)
    context.advance(499)
    assert context.standing == ("candidate", 1, -1)
    context.vote(vote)
    assert context.standing == ("leader", 1, 1)


def test_a_candidate_that_gets_no_answer_gives_up_an_election_timeout_after_its_vote_left() -> None:
    context = RaftContext((1, 2), election_timeout_ms=500)
    context.become_candidate()
    written(context)
    context.advance(500)
    assert context.standing == ("prospective", 1, -1)


def test_a_voter_gives_the_candidate_its_time_after_the_vote_has_left() -> None:
    context = RaftContext(election_timeout_ms=500)
    assert context.ask_for_vote(2, 1).vote_granted
    written(context)
    context.advance(499)
    assert context.standing == ("unattached", 1, -1)
    context.advance(1)
    assert context.standing == ("prospective", 1, -1)


def test_a_follower_gives_its_leader_the_fetch_timeout_after_its_first_fetch_has_left() -> None:
    context = RaftContext(fetch_timeout_ms=600)
    context.follow(2, 1)
    written(context)
    context.advance(599)
    assert context.standing == ("follower", 1, 2)
    context.advance(1)
    assert context.node.role == "prospective"


def test_a_successor_stands_at_once_though_its_leader_left_while_its_disk_was_at_work() -> None:
    context = RaftContext(fetch_timeout_ms=600)
    context.follow(2, 1)
    assert context.last_ready.quorum_state is not None
    context.now_ms += DISK_MS
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=1, preferred_candidates=(key_of(1), key_of(3))
    )
    context.receive_without_a_turn(request)
    context.feed(QuorumStateWritten())
    assert context.node.role == "prospective"
    assert len(context.sent(VoteRequest)) == 2


def test_a_leader_has_its_time_to_be_fetched_from_after_it_could_say_that_it_leads() -> None:
    context = RaftContext(fetch_timeout_ms=600)
    context.auto_flush = False
    context.become_leader()
    written(context)
    context.advance(899)
    assert context.node.role == "leader"
    context.advance(1)
    assert context.node.role == "resigned"


def test_a_role_that_began_meanwhile_has_a_time_of_its_own() -> None:
    """A newer epoch is heard of while the disk is at work; its own election state is the next to be written."""
    context = RaftContext((1, 2), election_timeout_ms=500)
    context.become_candidate()
    context.now_ms += DISK_MS
    context.receive_without_a_turn(context.vote_request(2, 3))
    context.feed(QuorumStateWritten())
    assert context.standing == ("unattached", 3, -1)
    assert context.state == QuorumState(leader_epoch=3, voted=key_of(2))
    context.advance(500)
    assert context.node.role == "prospective"


def test_time_that_no_disk_took_counts() -> None:
    context = RaftContext((1, 2), election_timeout_ms=500)
    context.become_candidate()
    context.feed(QuorumStateWritten())
    context.now_ms += 500
    context.feed(QuorumStateWritten())
    context.feed(TimeAdvanced())
    assert context.node.role == "prospective"
