"""Unattached, follower and resigned by themselves, after Kafka's tests of these states."""

import pytest

from kquorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse, FetchRequest
from kquorum.raft.ready import QuorumState
from tests.support.raft.context import LOCAL, RaftContext, batch, key_of
from tests.support.raft.dynamic import DynamicContext, endpoints_of

LONG_AND_SHORT = pytest.mark.parametrize("is_up_to_date", [True, False])


def with_log(state: QuorumState, voters: tuple[int, ...] = (1, 2, 3)) -> RaftContext:
    return RaftContext(voters=voters, log=[batch(0, 1, count=5)], state=state)


def fields_of(is_up_to_date: bool) -> dict[str, int]:
    return {"last_offset": 5 if is_up_to_date else 4, "last_offset_epoch": 1}


# UnattachedStateTest


def test_an_unattached_voter_stands_when_its_timeout_ends_and_not_before() -> None:
    """testElectionTimeout"""
    context = with_log(QuorumState(leader_epoch=5))
    context.advance(context.config.election_timeout_ms - 1)
    assert context.node.role == "unattached"
    context.advance(1)
    assert context.node.role == "prospective"


@LONG_AND_SHORT
def test_an_unattached_replica_votes_for_a_log_no_shorter_than_its_own(is_up_to_date: bool) -> None:
    """testGrantVote"""
    for pre_vote in (True, False):
        context = with_log(QuorumState(leader_epoch=5))
        ask = context.ask_for_pre_vote if pre_vote else context.ask_for_vote
        assert ask(2, 5, **fields_of(is_up_to_date)).vote_granted is is_up_to_date
        assert context.state.voted == (key_of(2) if is_up_to_date and not pre_vote else None)


@LONG_AND_SHORT
def test_one_that_knows_a_leader_which_it_cannot_reach_votes_for_no_other(is_up_to_date: bool) -> None:
    """testUnattachedWithLeader"""
    context = DynamicContext(log=[batch(0, 1, count=5)], state=QuorumState(leader_epoch=5, leader_id=9))
    assert context.standing == ("unattached", 5, 9)
    assert not context.ask_for_vote(2, 5, **fields_of(is_up_to_date)).vote_granted
    assert context.ask_for_pre_vote(2, 5, **fields_of(is_up_to_date)).vote_granted is is_up_to_date
    assert context.state == QuorumState(leader_epoch=5, leader_id=9)


@LONG_AND_SHORT
def test_one_that_voted_repeats_its_vote_and_gives_no_other(is_up_to_date: bool) -> None:
    """UnattachedStateWithVoteTest.testGrantVoteWithVotedKey"""
    context = with_log(QuorumState(leader_epoch=5, voted=key_of(2)))
    fields = fields_of(is_up_to_date)
    assert context.ask_for_vote(2, 5, **fields).vote_granted
    assert not context.ask_for_vote(3, 5, **fields).vote_granted
    assert context.ask_for_pre_vote(3, 5, **fields).vote_granted is is_up_to_date


# FollowerStateTest


def test_a_follower_gives_its_leader_up_when_the_fetch_timeout_ends_and_not_before() -> None:
    """testFetchTimeoutExpiration"""
    context = RaftContext()
    fetch = context.follow(2, 5)
    context.advance(context.config.fetch_timeout_ms - 1)
    context.answer(fetch, context.fetched())
    context.advance(context.config.fetch_timeout_ms - 1)
    assert context.node.role == "follower"
    context.advance(1)
    assert context.node.role == "prospective"


def test_a_followers_high_watermark_does_not_go_back() -> None:
    """testMonotonicHighWatermark. Kafka's raises for a leader that names a lower one; ours keeps what it knows: a
    new leader knows less at first."""
    context = RaftContext(log=[batch(0, 1, count=9)])
    fetch = context.follow(2, 5)
    context.answer(fetch, context.fetched(high_watermark=9))
    for lower in (8, 0, -1):
        context.answer(context.sent(FetchRequest)[-1], context.fetched(high_watermark=lower))
        assert context.node.high_watermark == 9
    context.answer(context.sent(FetchRequest)[-1], context.fetched(batch(9, 5), high_watermark=10))
    assert context.node.high_watermark == 10


@LONG_AND_SHORT
def test_a_follower_gives_no_vote_in_its_epoch_and_pre_votes_until_it_has_heard_its_leader(
    is_up_to_date: bool,
) -> None:
    """testGrantVote, testPreVoteIfHasNotFetchedFromLeaderYet"""
    context = with_log(QuorumState(leader_epoch=5))
    fetch = context.follow(2, 5)
    fields = fields_of(is_up_to_date)
    assert not context.ask_for_vote(3, 5, **fields).vote_granted
    assert context.ask_for_pre_vote(3, 5, **fields).vote_granted is is_up_to_date
    context.answer(fetch, context.fetched())
    assert not context.ask_for_pre_vote(3, 5, **fields).vote_granted
    assert not context.ask_for_vote(2, 5, **fields).vote_granted, "nor to its leader"


def test_a_follower_names_its_leader_and_where_it_listens() -> None:
    """testLeaderIdAndEndpoint"""
    context = DynamicContext()
    context.begin(2, 5, leader_endpoints=endpoints_of(2, 19093))
    response = context.ask_for_vote(3, 5)
    assert (response.leader_id, response.leader_endpoints) == (2, endpoints_of(2, 19093))
    assert context.node.endpoint_of(2) == endpoints_of(2, 19093)[0]


# ResignedStateTest


def resigned(*voters: int) -> RaftContext:
    context = with_log(QuorumState(leader_epoch=5, leader_id=LOCAL), voters)
    assert context.standing == ("resigned", 5, LOCAL)
    return context


def test_a_resigned_leader_sends_end_quorum_epoch_to_each_voter_until_it_answers() -> None:
    """testResignedState, testNegativeScenarioAcknowledgeResignation"""
    context = resigned(1, 2, 3)
    ends = {outbound.destination_id: outbound for outbound in context.sent(EndQuorumEpochRequest)}
    assert set(ends) == {2, 3}
    context.answer(ends[2], EndQuorumEpochResponse(leader_id=LOCAL, leader_epoch=5))
    unrelated = type(ends[2])(ends[3].correlation_id, 9, ends[3].request)
    context.answer(unrelated, EndQuorumEpochResponse(leader_id=LOCAL, leader_epoch=5))
    role = context.node.replica.role
    assert getattr(role, "unacknowledged", None) == {3}


def test_a_resigned_leader_is_unattached_in_a_new_epoch_when_its_timeout_ends() -> None:
    """testResignedState"""
    context = resigned(1, 2, 3)
    context.advance(context.config.election_timeout_ms - 1)
    assert context.node.role == "resigned"
    context.advance(1)
    assert context.node.leader_epoch == 6
    assert context.node.role in ("unattached", "prospective")


@LONG_AND_SHORT
def test_a_resigned_leader_gives_no_vote_in_its_epoch_but_pre_votes(is_up_to_date: bool) -> None:
    """testGrantVote"""
    context = resigned(1, 2, 3)
    fields = fields_of(is_up_to_date)
    assert not context.ask_for_vote(2, 5, **fields).vote_granted
    assert context.ask_for_pre_vote(2, 5, **fields).vote_granted is is_up_to_date
    assert context.node.role == "resigned"


def test_a_resigned_leader_still_names_itself() -> None:
    """testLeaderEndpoints: no other node can have led its epoch."""
    context = DynamicContext(state=QuorumState(leader_epoch=5, leader_id=LOCAL))
    response = context.ask_for_vote(2, 5)
    assert (response.leader_id, response.leader_endpoints) == (LOCAL, endpoints_of(LOCAL))
