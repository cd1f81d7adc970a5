"""Two voters that may both win: a random draw decides which one stands first (raft/elections.py)."""

from kquorum.raft.messages import VoteRequest
from kquorum.raft.ready import OutboundRequest
from kquorum.raft.roles import Prospective
from tests.support.raft.context import RaftContext, batch
from tests.support.random_sources import HighestRandomSource


def prospective() -> tuple[RaftContext, list[OutboundRequest]]:
    """It has asked 2 and 3 for their pre-votes, and draws high from now on."""
    context = RaftContext()
    context.advance(context.config.election_timeout_ms)
    assert context.node.role == "prospective"
    context.node.replica.random_source = HighestRandomSource()
    return context, context.sent(VoteRequest)


def test_a_voter_that_granted_a_pre_vote_does_not_become_prospective_at_once() -> None:
    context, asked = prospective()
    assert context.ask_for_pre_vote(2, 0).vote_granted
    wait_ms = context.config.pre_vote_retry_ms
    assert context.vote(asked[0]).deadline_ms == context.now_ms + wait_ms
    context.advance(wait_ms - 1)
    assert context.node.role == "prospective"
    assert context.sent(VoteRequest) == [], "it has the majority that it asked for"
    context.advance(1)
    assert (context.node.role, context.node.leader_epoch) == ("candidate", 1)


def test_meanwhile_its_rival_gets_its_vote() -> None:
    context, asked = prospective()
    context.ask_for_pre_vote(2, 0)
    context.vote(asked[0])
    assert context.ask_for_vote(2, 1).vote_granted
    context.advance(context.config.pre_vote_retry_ms)
    assert context.node.role == "unattached"


def test_a_rival_that_asks_again_does_not_put_it_off_again() -> None:
    context, asked = prospective()
    context.ask_for_pre_vote(2, 0)
    context.vote(asked[0])
    context.advance(context.config.pre_vote_retry_ms - 1)
    assert context.ask_for_pre_vote(3, 0).vote_granted
    context.advance(1)
    assert context.node.role == "candidate"


def test_a_voter_that_refused_a_pre_vote_becomes_prospective_at_once() -> None:
    context = RaftContext(log=[batch(0, 1)])
    context.advance(context.config.election_timeout_ms)
    context.node.replica.random_source = HighestRandomSource()
    (asked, *_) = context.sent(VoteRequest)
    assert not context.ask_for_pre_vote(2, 1, last_offset_epoch=0, last_offset=0).vote_granted
    context.vote(asked)
    assert context.node.role == "candidate"


def test_it_defers_to_a_successor_for_one_election_timeout_at_most() -> None:
    context, asked = prospective()
    role = context.node.replica.role
    assert isinstance(role, Prospective)
    context.advance(role.election_deadline_ms - context.now_ms - 1)
    assert context.ask_for_pre_vote(2, 0).vote_granted
    assert role.stands_from_ms is not None
    assert role.stands_from_ms > role.election_deadline_ms
    assert context.vote(asked[0]).deadline_ms == role.election_deadline_ms
    context.advance(1)
    assert context.node.role == "candidate"
