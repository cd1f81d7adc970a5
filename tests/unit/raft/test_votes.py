"""Which candidate gets the vote, by the role of the voter (rules R5.3, R5.4)."""

import pytest

from kquorum.raft.inputs import ShutdownRequested
from kquorum.raft.messages import FetchRequest
from kquorum.raft.ready import QuorumState
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of

OBSERVER = 9


def test_an_unattached_voter_grants_its_vote_to_an_up_to_date_candidate() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2))
    response = context.ask_for_vote(2, epoch=2)
    assert (response.error, response.vote_granted) == (ErrorCode.none, True)
    assert (response.leader_id, response.leader_epoch) == (-1, 2)
    assert context.state == QuorumState(leader_epoch=2, voted=key_of(2))


def test_a_follower_of_an_elected_leader_refuses_and_names_it() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=3))
    response = context.ask_for_vote(2, epoch=2)
    assert (response.error, response.vote_granted) == (ErrorCode.none, False)
    assert (response.leader_id, response.leader_epoch) == (3, 2)
    assert context.standing == ("follower", 2, 3)


def test_a_node_without_the_leaders_endpoint_refuses_and_names_it() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=7))
    assert context.standing == ("unattached", 2, 7)
    response = context.ask_for_vote(2, epoch=2)
    assert (response.error, response.vote_granted, response.leader_id) == (ErrorCode.none, False, 7)
    assert context.state == QuorumState(leader_epoch=2, leader_id=7)


def test_a_voter_that_voted_refuses_another_candidate_and_keeps_its_vote() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, voted=key_of(3)))
    response = context.ask_for_vote(2, epoch=2)
    assert (response.error, response.vote_granted, response.leader_id) == (ErrorCode.none, False, -1)
    assert context.state == QuorumState(leader_epoch=2, voted=key_of(3))


def test_a_vote_of_an_older_epoch_is_fenced_and_changes_nothing() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2))
    response = context.ask_for_vote(2, epoch=1)
    assert (response.error, response.vote_granted) == (ErrorCode.fenced_leader_epoch, False)
    assert response.leader_epoch == 2
    assert (context.standing, context.state) == (("unattached", 2, -1), QuorumState(leader_epoch=2))


def test_an_observer_grants_a_vote_of_a_newer_epoch_and_writes_it_down() -> None:
    context = RaftContext(voters=(2, 3), state=QuorumState(leader_epoch=2, leader_id=2))
    response = context.ask_for_vote(3, epoch=3)
    assert (response.error, response.vote_granted, response.leader_epoch) == (ErrorCode.none, True, 3)
    assert context.standing == ("unattached", 3, -1)
    assert context.state == QuorumState(leader_epoch=3, voted=key_of(3))


def test_a_leader_refuses_votes_of_its_epoch() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    response = context.ask_for_vote(2, epoch, last_offset_epoch=0)
    assert (response.error, response.vote_granted, response.leader_id) == (ErrorCode.none, False, 1)
    assert context.standing == ("leader", epoch, 1)


def test_a_leader_answers_a_candidate_that_is_no_voter() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=4))
    epoch = context.become_leader()
    older = context.ask_for_vote(OBSERVER, epoch - 1, last_offset=0, last_offset_epoch=0)
    assert (older.error, older.leader_id, older.leader_epoch) == (ErrorCode.fenced_leader_epoch, 1, epoch)
    same = context.ask_for_vote(OBSERVER, epoch, last_offset=0, last_offset_epoch=0)
    assert (same.error, same.vote_granted, same.leader_id) == (ErrorCode.none, False, 1)


def test_a_candidate_refuses_votes_of_its_epoch_and_names_no_leader() -> None:
    context = RaftContext()
    context.become_candidate()
    for candidate in (2, 1):
        response = context.ask_for_vote(candidate, epoch=1)
        assert (response.error, response.vote_granted, response.leader_id) == (ErrorCode.none, False, -1)
    assert context.standing == ("candidate", 1, -1)


def test_a_leader_that_shuts_down_still_grants_a_vote_of_a_newer_epoch() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.feed(ShutdownRequested())
    assert context.standing == ("resigned", epoch, 1)
    response = context.ask_for_vote(2, epoch + 1)
    assert (response.error, response.vote_granted) == (ErrorCode.none, True)
    assert context.standing == ("unattached", epoch + 1, -1)
    assert context.state == QuorumState(leader_epoch=epoch + 1, voted=key_of(2))


@pytest.mark.parametrize("change", [{"last_offset": -5}, {"last_offset_epoch": -1}, {"last_offset_epoch": 6}])
def test_a_malformed_vote_of_a_newer_epoch_does_not_even_bring_the_epoch(change: dict[str, int]) -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5, leader_id=2))
    response = context.ask_for_vote(2, epoch=6, **change)
    assert (response.error, response.leader_id, response.leader_epoch) == (ErrorCode.invalid_request, 2, 5)
    assert context.standing == ("follower", 5, 2)


# Observers do not stand, whatever they were asked before


@pytest.mark.parametrize("has_voted", [False, True])
def test_an_unattached_observer_only_ever_fetches(has_voted: bool) -> None:
    context = RaftContext(voters=(2, 3), state=QuorumState(leader_epoch=5))
    if has_voted:
        assert context.ask_for_vote(2, epoch=6).vote_granted
    for _ in range(5):
        context.advance(context.config.election_timeout_ms * 2)
        assert context.node.role == "unattached"
    assert {type(out.request) for out in context.requests} == {FetchRequest}


def test_an_observer_that_lost_its_leader_keeps_its_name_and_goes_on_fetching() -> None:
    context = RaftContext(voters=(2, 3), state=QuorumState(leader_epoch=5, leader_id=2))
    context.advance(context.config.fetch_timeout_ms)
    assert context.standing == ("unattached", 5, 2)
    assert {type(out.request) for out in context.requests} == {FetchRequest}
    assert context.ask_for_vote(3, epoch=6).vote_granted
    assert context.standing == ("unattached", 6, -1)


def test_the_last_epoch_is_compared_before_the_length_of_the_log() -> None:
    context = RaftContext(log=[batch(0, 1, count=5), batch(5, 3)], state=QuorumState(leader_epoch=3))
    assert not context.ask_for_vote(2, epoch=4, last_offset=50, last_offset_epoch=2).vote_granted
    assert context.ask_for_vote(2, epoch=4, last_offset=6, last_offset_epoch=3).vote_granted
