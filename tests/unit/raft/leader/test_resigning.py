"""A leader that gives up, and what the others make of it (rules R5.8, R12)."""

import pytest

from kquorum.raft.inputs import ResignRequested, ShutdownRequested
from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
    VoteRequest,
)
from kquorum.raft.ready import LeaderAndEpoch, OutboundRequest, QuorumState
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext


def resigned(**config: int) -> tuple[RaftContext, int, list[OutboundRequest]]:
    """A leader that was asked to give up, its epoch, and what it sent the voters."""
    context = RaftContext(**config)
    epoch = context.become_leader()
    context.requests.clear()
    context.feed(ResignRequested(epoch))
    assert context.standing == ("resigned", epoch, 1)
    return context, epoch, context.sent(EndQuorumEpochRequest)


def acknowledge(context: RaftContext, ends: list[OutboundRequest], epoch: int) -> None:
    for end in ends:
        context.answer(end, EndQuorumEpochResponse(leader_id=1, leader_epoch=epoch))


# The one that resigns


def test_end_quorum_epoch_is_sent_again_after_the_request_timeout_to_voters_that_did_not_answer() -> None:
    context, epoch, (to_second, to_third) = resigned(election_timeout_ms=10_000, request_timeout_ms=500)
    acknowledge(context, [to_second], epoch)
    context.advance(499)
    assert context.sent(EndQuorumEpochRequest) == []
    context.advance(1)
    (again,) = context.sent(EndQuorumEpochRequest)
    assert (again.destination_id, again.request) == (to_third.destination_id, to_third.request)


def test_end_quorum_epoch_that_all_voters_answered_is_not_sent_again() -> None:
    context, epoch, ends = resigned(election_timeout_ms=10_000, request_timeout_ms=500)
    acknowledge(context, ends, epoch)
    context.advance(5_000)
    assert context.sent(EndQuorumEpochRequest) == []
    assert context.standing == ("resigned", epoch, 1)


def test_resigning_writes_nothing_down() -> None:
    context, epoch, _ = resigned()
    assert context.last_ready.quorum_state is None
    assert (context.state.leader_id, context.state.leader_epoch) == (1, epoch)


@pytest.mark.parametrize("leave", [ResignRequested(1), ShutdownRequested()], ids=["resign", "shutdown"])
def test_a_waiting_fetch_is_turned_away_when_the_leader_gives_up(
    leave: ResignRequested | ShutdownRequested,
) -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.receive(context.fetch(3, offset=1, last_epoch=epoch, known_high_watermark=1)) is None
    context.feed(leave)
    response = context.responses[context.last_request_id]
    assert isinstance(response, FetchResponse)
    assert response.error is ErrorCode.not_leader_or_follower
    assert (response.leader_id, response.leader_epoch) == (1, epoch)
    assert not context.last_ready.is_shut_down


def test_a_resigned_leader_serves_no_fetch() -> None:
    context, epoch, _ = resigned()
    response = context.receive(context.fetch(3, offset=0, last_epoch=0))
    assert (response.error, response.leader_epoch) == (ErrorCode.not_leader_or_follower, epoch)


def test_a_resigned_leader_asks_for_pre_votes_of_the_next_epoch_without_a_successor() -> None:
    context, epoch, ends = resigned()
    acknowledge(context, ends, epoch)
    context.advance(context.config.election_timeout_ms)
    assert context.standing == ("prospective", epoch + 1, -1)
    assert context.leaders[-1] == LeaderAndEpoch(-1, epoch + 1)
    assert context.state == QuorumState(leader_epoch=epoch + 1)
    votes = context.sent(VoteRequest)
    assert {(vote.request.pre_vote, vote.request.replica_epoch) for vote in votes} == {(True, epoch + 1)}


@pytest.mark.parametrize("leader_epoch", [0, 2, 99], ids=["older", "next", "far"])
def test_a_leader_resigns_no_epoch_but_its_own(leader_epoch: int) -> None:
    context = RaftContext()
    assert context.become_leader() == 1
    context.feed(ResignRequested(leader_epoch))
    assert context.standing == ("leader", 1, 1)
    context.receive(context.fetch(2, offset=1, last_epoch=1))
    context.advance(context.config.election_timeout_ms * 2)
    context.receive(context.fetch(2, offset=1, last_epoch=1))
    assert context.standing == ("leader", 1, 1)
    assert context.sent(EndQuorumEpochRequest) == []


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3)], ids=["follower", "observer"])
def test_a_follower_has_nothing_to_resign(voters: tuple[int, ...]) -> None:
    context = RaftContext(voters=voters, state=QuorumState(leader_epoch=3, leader_id=2))
    context.feed(ResignRequested(3))
    assert context.standing == ("follower", 3, 2)


# The one that hears of a new leader


@pytest.mark.parametrize("difference", [1, 5])
def test_a_resigned_leader_follows_the_leader_of_a_newer_epoch(difference: int) -> None:
    context, epoch, _ = resigned()
    response = context.begin(leader_id=2, epoch=epoch + difference)
    assert (response.error, response.leader_id) == (ErrorCode.none, 2)
    assert context.standing == ("follower", epoch + difference, 2)
    assert context.leaders[-1] == LeaderAndEpoch(2, epoch + difference)


def test_a_restarted_leader_follows_the_leader_of_a_newer_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=1))
    context.begin(leader_id=3, epoch=3)
    assert context.standing == ("follower", 3, 3)
    assert context.state == QuorumState(leader_epoch=3, leader_id=3)


# Those who are left


def test_an_unattached_voter_that_is_first_in_line_stands_at_once() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2))
    response = context.end(2, 2, 1, 3)
    assert (response.error, response.leader_id) == (ErrorCode.none, 2)
    assert context.standing == ("prospective", 2, 2)
    assert [change.role for change in context.last_ready.role_changes] == ["follower", "prospective"]
    votes = [out for out in context.sent(VoteRequest) if out.request.pre_vote]
    assert [vote.destination_id for vote in votes] == [2, 3]


def test_a_follower_that_is_first_in_line_stands_at_once() -> None:
    context = RaftContext(voters=(1, 2), state=QuorumState(leader_epoch=2, leader_id=2))
    assert context.end(2, 2, 1).error is ErrorCode.none
    (pre_vote,) = context.sent(VoteRequest)
    context.vote(pre_vote)
    assert context.standing == ("candidate", 3, -1)


def test_where_a_restarted_leader_names_no_successor_its_followers_stand_at_once() -> None:
    """Kafka's rule: the place in an empty list is the first. After a power cut all wait for this election."""
    context = RaftContext(voters=(1, 2, 3), state=QuorumState(leader_epoch=2, leader_id=2))
    assert context.end(2, 2).error is ErrorCode.none
    assert context.standing == ("prospective", 2, 2)
    assert [out.destination_id for out in context.sent(VoteRequest)] == [2, 3]


@pytest.mark.parametrize(
    ("successors", "wait_ms"),
    [((3, 1), 500), ((3, 4, 1), 500), ((3, 1, 4), 250), ((3, 4), 1000)],
    ids=["second of two", "third of three", "second of three", "unlisted"],
)
def test_a_follower_further_down_the_line_goes_on_fetching_until_its_turn(
    successors: tuple[int, ...], wait_ms: int
) -> None:
    context = RaftContext(voters=(1, 2, 3, 4), state=QuorumState(leader_epoch=2))
    assert context.end(2, 2, *successors).error is ErrorCode.none
    assert context.standing == ("follower", 2, 2)
    assert context.sent(FetchRequest)[-1].destination_id == 2
    context.advance(wait_ms - 1)
    assert context.standing == ("follower", 2, 2)
    context.advance(1)
    assert context.standing == ("prospective", 2, 2)


def test_a_leader_fences_a_departure_of_an_older_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=4))
    epoch = context.become_leader()
    response = context.end(2, epoch - 1, 1)
    assert (response.error, response.leader_id, response.leader_epoch) == (
        ErrorCode.fenced_leader_epoch,
        1,
        epoch,
    )
    assert context.standing == ("leader", epoch, 1)


# Shutting down


def test_a_leader_that_leaves_stays_until_its_successor_makes_itself_known() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.requests.clear()
    assert not context.feed(ShutdownRequested()).is_shut_down
    assert len(context.sent(EndQuorumEpochRequest)) == 2
    assert not context.advance(context.config.election_timeout_ms * 10).is_shut_down
    assert context.standing == ("resigned", epoch, 1)
    context.begin(leader_id=2, epoch=epoch + 1)
    assert context.last_ready.is_shut_down
    assert context.sent(BeginQuorumEpochRequest) == []


def test_a_leader_that_leaves_stays_while_the_next_epoch_has_no_leader_and_does_not_stand_itself() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.requests.clear()
    context.feed(ShutdownRequested())
    assert context.ask_for_vote(2, epoch + 1).vote_granted
    assert not context.last_ready.is_shut_down
    assert not context.advance(context.config.election_timeout_ms * 10).is_shut_down
    assert context.standing == ("unattached", epoch + 1, -1)
    assert context.sent(VoteRequest) == []
    context.begin(leader_id=2, epoch=epoch + 1)
    assert context.last_ready.is_shut_down


def test_an_observer_leaves_at_once_even_without_a_leader() -> None:
    context = RaftContext(voters=(2, 3))
    assert context.standing == ("unattached", 0, -1)
    assert context.feed(ShutdownRequested()).is_shut_down


def test_a_sole_voter_leaves_at_once_and_tells_no_peer() -> None:
    context = RaftContext(voters=(1,))
    assert context.feed(ShutdownRequested()).is_shut_down
    assert context.requests == []


# Handing over to a chosen voter: the request is answered when that voter leads


def handed_over(**config: int) -> tuple[RaftContext, int]:
    """A leader that has resigned in favour of node 2, and owes the answer; its epoch."""
    context = RaftContext(election_timeout_ms=1000, **config)
    epoch = context.become_leader()
    context.receive(context.fetch(2, context.log_end_offset, epoch))
    assert context.receive(TransferLeadershipRequest(target_id=2)) is None
    assert context.standing == ("resigned", epoch, 1)
    return context, context.last_request_id


def test_a_transfer_is_answered_when_the_target_leads() -> None:
    context, request_id = handed_over()
    epoch = context.node.leader_epoch + 1
    assert context.ask_for_vote(2, epoch).vote_granted
    assert request_id not in context.responses
    context.begin(2, epoch)
    assert context.responses[request_id] == TransferLeadershipResponse()


def test_a_transfer_after_which_another_voter_leads_names_it() -> None:
    context, request_id = handed_over()
    context.begin(3, context.node.leader_epoch + 1)
    answer = context.responses[request_id]
    assert isinstance(answer, TransferLeadershipResponse)
    assert answer.error is ErrorCode.preferred_leader_not_available
    assert answer.message == "node 3 was elected in place of node 2"


def test_a_transfer_after_which_there_is_no_leader_says_so_in_the_end() -> None:
    context, request_id = handed_over()
    while request_id not in context.responses:
        deadline_ms = context.last_ready.deadline_ms
        assert deadline_ms is not None, "the core asks to be looked at again"
        context.advance(deadline_ms - context.now_ms)
    answer = context.responses[request_id]
    assert isinstance(answer, TransferLeadershipResponse)
    assert answer.error is ErrorCode.request_timed_out
    assert answer.message == (
        "node 2 was told to take over, and no node is known to lead after 2000 ms; "
        "look who leads before you ask again"
    )
