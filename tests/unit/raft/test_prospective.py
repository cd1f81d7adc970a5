"""Asking whether one might win: what a prospective does and what ends it (KIP-996)."""

import pytest

from kquorum.raft.inputs import FailureReason
from kquorum.raft.messages import FetchRequest, VoteRequest, VoteResponse
from kquorum.raft.ready import OutboundRequest, QuorumState
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, key_of


def prospective(
    voters: tuple[int, ...] = (1, 2, 3), epoch: int = 5, leader_id: int = -1
) -> tuple[RaftContext, list[OutboundRequest]]:
    """A replica that has just run out of patience, and the pre-votes that it asked for."""
    state = QuorumState(leader_epoch=epoch, leader_id=leader_id)
    context = RaftContext(voters=voters, state=state)
    return context, time_out(context)


def time_out(context: RaftContext) -> list[OutboundRequest]:
    context.sent(VoteRequest)
    deadline_ms = context.last_ready.deadline_ms
    while context.node.role != "prospective":
        assert deadline_ms is not None
        context.advance(deadline_ms - context.now_ms)
        deadline_ms = context.last_ready.deadline_ms
    votes = context.sent(VoteRequest)
    assert all(vote.request.pre_vote for vote in votes)
    assert {vote.request.replica_epoch for vote in votes} == {context.node.leader_epoch}
    return votes


def test_late_pre_votes_mean_nothing_to_a_follower() -> None:
    context, (to_second, to_third) = prospective()
    context.begin(leader_id=3, epoch=5)
    context.vote(to_second)
    context.vote(to_third, leader_id=3)
    assert context.standing == ("follower", 5, 3)
    assert context.state == QuorumState(leader_epoch=5, leader_id=3)


def test_a_peer_without_pre_votes_is_asked_for_a_vote_in_that_round_only() -> None:
    context, (to_second, to_third) = prospective()
    context.fail(to_second, FailureReason.UNSUPPORTED_VERSION)
    assert context.standing == ("candidate", 6, -1)
    assert [vote.request.pre_vote for vote in context.sent(VoteRequest)] == [False, False]
    context.vote(to_third)
    assert context.standing == ("candidate", 6, -1)
    to_second, to_third = time_out(context)
    context.vote(to_second)
    assert context.standing == ("candidate", 7, -1)
    context.fail(to_third, FailureReason.UNSUPPORTED_VERSION)
    assert context.standing == ("candidate", 7, -1)


def test_a_prospective_follows_the_leader_that_makes_itself_known() -> None:
    context, _ = prospective(voters=(1, 2))
    assert context.begin(leader_id=2, epoch=5).error is ErrorCode.none
    assert context.standing == ("follower", 5, 2)


def test_a_prospective_without_a_leader_detaches_when_time_runs_out_and_asks_again() -> None:
    context, _ = prospective(voters=(1, 2))
    context.advance(context.config.election_timeout_ms * 2)
    roles = [change.role for change in context.last_ready.role_changes]
    assert roles == ["unattached", "prospective"]
    (again,) = context.sent(VoteRequest)
    assert (again.request.pre_vote, again.request.replica_epoch) == (True, 5)
    assert context.state == QuorumState(leader_epoch=5)


def test_a_prospective_without_a_leader_detaches_as_soon_as_it_is_refused_and_asks_again() -> None:
    context, (to_second,) = prospective(voters=(1, 2))
    context.vote(to_second, granted=False)
    assert context.standing == ("unattached", 5, -1)
    context.advance(context.config.election_timeout_ms - 1)
    assert context.node.role == "unattached"
    assert len(time_out(context)) == 1


def test_a_prospective_that_knows_a_leader_fetches_from_it_again_when_time_runs_out() -> None:
    context, votes = prospective(leader_id=2)
    assert (len(votes), context.standing) == (2, ("prospective", 5, 2))
    context.advance(context.config.election_timeout_ms * 2)
    assert context.standing == ("follower", 5, 2)
    assert [out.destination_id for out in context.sent(FetchRequest)] == [2]


def test_a_prospective_that_knows_a_leader_fetches_from_it_again_when_it_is_refused() -> None:
    context, (to_second, to_third) = prospective(leader_id=2)
    context.vote(to_second, granted=False)
    assert context.standing == ("prospective", 5, 2)
    context.vote(to_third, granted=False)
    assert context.standing == ("follower", 5, 2)
    assert [out.destination_id for out in context.sent(FetchRequest)] == [2]


def test_a_prospective_that_cannot_reach_the_leader_it_knows_detaches_and_keeps_its_name() -> None:
    context, _ = prospective(voters=(1, 2), epoch=2, leader_id=7)
    assert context.standing == ("prospective", 2, 7)
    context.advance(context.config.election_timeout_ms * 2)
    roles = [change.role for change in context.last_ready.role_changes]
    assert roles == ["unattached", "prospective"]
    assert context.standing == ("prospective", 2, 7)
    (again,) = context.sent(VoteRequest)
    context.vote(again, granted=False)
    assert context.standing == ("unattached", 2, 7)


def test_a_prospective_follows_the_leader_of_a_newer_epoch_in_a_response() -> None:
    context, (to_second, _) = prospective(leader_id=2)
    refusal = VoteResponse(error=ErrorCode.fenced_leader_epoch, leader_id=3, leader_epoch=6)
    context.answer(to_second, refusal)
    assert context.standing == ("follower", 6, 3)
    assert context.state == QuorumState(leader_epoch=6, leader_id=3)


@pytest.mark.parametrize("granted", [True, False])
def test_a_prospective_that_learns_of_its_epochs_leader_follows_it_whatever_the_answer(
    granted: bool,
) -> None:
    context, (to_second, _) = prospective()
    context.vote(to_second, granted=granted, leader_id=2)
    assert context.standing == ("follower", 5, 2)


def test_an_unanswered_pre_vote_is_asked_for_again_and_only_the_second_answer_counts() -> None:
    context = RaftContext(
        voters=(1, 2), state=QuorumState(leader_epoch=1), election_timeout_ms=10_000, request_timeout_ms=5_000
    )
    (first,) = time_out(context)
    context.advance(5_000)
    (second,) = context.sent(VoteRequest)
    assert second.request == first.request
    context.vote(first)
    assert context.standing == ("prospective", 1, -1)
    context.vote(second)
    assert context.standing == ("candidate", 2, -1)
    assert context.state == QuorumState(leader_epoch=2, voted=key_of(1))


def test_a_prospective_writes_nothing_down() -> None:
    context, _ = prospective(leader_id=2)
    assert context.last_ready.quorum_state is None
    assert context.state == QuorumState(leader_epoch=5, leader_id=2)


def test_a_prospective_that_fails_keeps_the_vote_that_it_gave() -> None:
    context = RaftContext(voters=(1, 2, 3), state=QuorumState(leader_epoch=5, voted=key_of(3)))
    for vote in time_out(context):
        context.vote(vote, granted=False)
    assert context.standing == ("unattached", 5, -1)
    assert context.state == QuorumState(leader_epoch=5, voted=key_of(3))
    assert not context.ask_for_vote(2, epoch=5).vote_granted
    assert context.ask_for_vote(3, epoch=5).vote_granted
