"""Elections, after the behaviours that Kafka's own suite asserts."""

from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.inputs import FailureReason
from kquorum.raft.messages import BeginQuorumEpochRequest, VoteRequest, VoteResponse
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of


def test_a_sole_voter_leads_at_once() -> None:
    context = RaftContext(voters=(1,))
    assert (context.node.role, context.node.leader_epoch) == ("leader", 1)
    assert context.log[0].is_control
    assert context.node.high_watermark == 1


def test_pre_vote_comes_first_and_changes_no_epoch() -> None:
    context = RaftContext()
    context.advance(1000)
    requests = [outbound.request for outbound in context.sent(VoteRequest)]
    assert [request.pre_vote for request in requests] == [True, True]
    assert (context.node.role, context.node.leader_epoch) == ("prospective", 0)


def test_a_majority_of_pre_votes_makes_a_candidate_that_voted_for_itself() -> None:
    context = RaftContext()
    requests = context.become_candidate()
    assert [outbound.request.pre_vote for outbound in requests] == [False, False]
    assert context.state == QuorumState(leader_epoch=1, leader_id=-1, voted=context.node.replica.key)


def test_the_own_vote_is_persisted_with_the_requests_that_rest_on_it() -> None:
    context = RaftContext()
    context.advance(1000)
    pre_vote = context.sent(VoteRequest)[0]
    ready = context.answer(pre_vote, VoteResponse(vote_granted=True))
    assert ready.quorum_state is not None
    assert any(isinstance(outbound.request, VoteRequest) for outbound in ready.requests)


def test_a_leader_begins_its_epoch_with_a_leader_change() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    assert context.log[-1].is_control
    assert context.log[-1].leader_epoch == epoch
    assert len(context.sent(BeginQuorumEpochRequest)) == 2


def test_a_peer_that_knows_no_pre_vote_is_asked_for_a_vote() -> None:
    context = RaftContext()
    context.advance(1000)
    context.fail(context.sent(VoteRequest)[0], FailureReason.UNSUPPORTED_VERSION)
    assert (context.node.role, context.node.leader_epoch) == ("candidate", 1)


def test_a_vote_is_granted_once_an_epoch() -> None:
    context = RaftContext()
    first = context.receive(context.vote_request(2, epoch=1))
    second = context.receive(context.vote_request(3, epoch=1))
    again = context.receive(context.vote_request(2, epoch=1))
    assert [first.vote_granted, second.vote_granted, again.vote_granted] == [True, False, True]
    assert context.state == QuorumState(leader_epoch=1, leader_id=-1, voted=key_of(2))


def test_a_vote_survives_a_restart() -> None:
    context = RaftContext()
    context.receive(context.vote_request(2, epoch=1))
    restarted = RaftContext(state=context.state)
    assert not restarted.receive(restarted.vote_request(3, epoch=1)).vote_granted


def test_a_candidate_of_another_directory_is_another_candidate() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=1, voted=key_of(2)))
    other = replace(context.vote_request(2, epoch=1), candidate=ReplicaKey(2, UUID(int=77)))
    assert not context.receive(other).vote_granted


def test_a_shorter_log_gets_no_vote_but_its_epoch_counts() -> None:
    context = RaftContext(log=[batch(0, 1, count=3)])
    request = replace(context.vote_request(2, epoch=5), last_offset=2)
    response = context.receive(request)
    assert (response.vote_granted, response.leader_epoch) == (False, 5)


def test_an_older_last_epoch_gets_no_vote_however_long_the_log() -> None:
    context = RaftContext(log=[batch(0, 1), batch(1, 3)])
    request = replace(context.vote_request(2, epoch=5), last_offset=100, last_offset_epoch=2)
    assert not context.receive(request).vote_granted


def test_an_older_epoch_is_fenced() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=4))
    response = context.receive(context.vote_request(2, epoch=3))
    assert (response.error, response.leader_epoch) == (ErrorCode.fenced_leader_epoch, 4)


@pytest.mark.parametrize("change", [{"last_offset": -5}, {"last_offset_epoch": -1}, {"last_offset_epoch": 9}])
def test_a_malformed_vote_changes_nothing(change: dict[str, int]) -> None:
    context = RaftContext()
    response = context.receive(replace(context.vote_request(2, epoch=9), **change))
    assert (response.error, context.node.leader_epoch) == (ErrorCode.invalid_request, 0)


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_another_clusters_vote_is_refused(cluster_id: str) -> None:
    context = RaftContext()
    response = context.receive(replace(context.vote_request(2, epoch=1), cluster_id=cluster_id))
    assert (response.error, response.is_top_level) == (ErrorCode.inconsistent_cluster_id, True)


def test_a_vote_meant_for_another_voter_is_refused_after_its_epoch_was_taken() -> None:
    context = RaftContext()
    request = replace(context.vote_request(2, epoch=1), voter=ReplicaKey(1, UUID(int=99)))
    response = context.receive(request)
    assert (response.error, response.leader_epoch) == (ErrorCode.invalid_voter_key, 1)


def test_an_observer_grants_votes_and_never_stands() -> None:
    context = RaftContext(voters=(2, 3))
    assert context.receive(context.vote_request(2, epoch=1)).vote_granted
    context.advance(100_000)
    assert context.sent(VoteRequest) == []


def test_a_follower_that_hears_its_leader_refuses_pre_votes() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    before = context.receive(context.vote_request(3, epoch=1, pre_vote=True))
    context.answer(fetch, context.fetched())
    after = context.receive(context.vote_request(3, epoch=1, pre_vote=True))
    assert [before.vote_granted, after.vote_granted] == [True, False]


def test_pre_votes_are_granted_to_all_and_remembered_by_none() -> None:
    context = RaftContext()
    state = context.state
    answers = [context.receive(context.vote_request(voter, epoch=0, pre_vote=True)) for voter in (2, 3, 2)]
    assert all(answer.vote_granted for answer in answers)
    assert context.state == state


def test_a_leader_refuses_pre_votes_and_votes_of_its_epoch() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    for pre_vote in (True, False):
        response = context.receive(context.vote_request(2, epoch, pre_vote=pre_vote))
        assert (response.vote_granted, response.leader_id) == (False, 1)
    assert context.node.role == "leader"


def test_a_voter_that_lost_touch_asks_before_it_disturbs() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    context.advance(context.config.fetch_timeout_ms)
    for outbound in context.sent(VoteRequest):
        context.answer(outbound, VoteResponse(leader_id=2, leader_epoch=1, vote_granted=False))
    assert (context.node.role, context.node.leader_id, context.node.leader_epoch) == ("follower", 2, 1)


def test_a_prospective_that_learns_of_a_leader_follows_it() -> None:
    context = RaftContext()
    context.advance(1000)
    outbound = context.sent(VoteRequest)[0]
    context.answer(outbound, VoteResponse(leader_id=3, leader_epoch=0, vote_granted=True))
    assert (context.node.role, context.node.leader_id) == ("follower", 3)


def test_a_lost_candidate_waits_out_its_timeout_and_asks_softly_again() -> None:
    context = RaftContext()
    for outbound in context.become_candidate():
        context.answer(outbound, VoteResponse(leader_epoch=1))
    assert (context.node.role, context.sent(VoteRequest)) == ("candidate", [])
    context.advance(1000)
    assert context.node.role == "prospective"


def test_a_refused_pre_vote_is_asked_for_again() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    context.advance(context.config.fetch_timeout_ms)
    to_silent, to_hopeful = context.sent(VoteRequest)
    context.answer(to_hopeful, VoteResponse(leader_id=2, leader_epoch=1, vote_granted=False))
    assert (to_silent.destination_id, context.node.role, context.sent(VoteRequest)) == (2, "prospective", [])
    context.advance(context.config.pre_vote_retry_ms)
    (again,) = context.sent(VoteRequest)
    context.answer(again, VoteResponse(leader_id=2, leader_epoch=1, vote_granted=True))
    assert (context.node.role, context.node.leader_epoch) == ("candidate", 2)


def test_a_leader_that_was_given_up_once_is_given_less_time() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    context.advance(context.config.fetch_timeout_ms)
    context.advance(context.config.election_timeout_ms)
    assert (context.node.role, context.node.leader_id) == ("follower", 2)
    context.advance(context.config.election_timeout_ms)
    assert context.node.role == "prospective"


def test_late_votes_of_an_earlier_role_count_for_nothing() -> None:
    context = RaftContext()
    votes = context.become_candidate()
    context.follow(leader_id=3, epoch=1)
    context.answer(votes[0], VoteResponse(leader_epoch=1, vote_granted=True))
    assert context.node.role == "follower"


def test_unanswered_votes_are_asked_for_again_after_the_request_timeout() -> None:
    context = RaftContext()
    votes = context.become_candidate()
    context.fail(votes[0])
    context.advance(context.config.retry_backoff_ms)
    assert [outbound.destination_id for outbound in context.sent(VoteRequest)] == [votes[0].destination_id]
