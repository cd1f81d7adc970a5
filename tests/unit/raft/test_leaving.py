"""Restarts, orderly departures, and what a leader needs to stay (rules R4.2, R5.8, R9)."""

from kquorum.raft.inputs import ShutdownRequested
from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    VoteRequest,
)
from kquorum.raft.ready import QuorumState
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import CLUSTER_ID, RaftContext, batch, key_of

# Restarts


def test_a_restarted_leader_starts_resigned_and_denies_votes_of_its_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=1))
    response = context.receive(context.vote_request(2, epoch=2))
    assert (context.node.role, response.vote_granted, response.leader_id) == ("resigned", False, 1)
    assert len(context.sent(EndQuorumEpochRequest)) == 2


def test_a_restarted_leader_grants_votes_of_a_newer_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=1))
    assert context.receive(context.vote_request(2, epoch=3)).vote_granted


def test_a_restarted_candidate_keeps_its_vote_and_stands_in_a_new_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, voted=key_of(1)))
    assert context.node.role == "unattached"
    assert not context.receive(context.vote_request(2, epoch=2)).vote_granted
    votes = context.become_candidate()
    assert {outbound.request.replica_epoch for outbound in votes} == {3}


def test_the_log_knows_better_than_an_old_election_state() -> None:
    context = RaftContext(log=[batch(0, 7)], state=QuorumState(leader_epoch=3, voted=key_of(2)))
    assert context.state == QuorumState(leader_epoch=7)


# Leaving


def test_end_quorum_epoch_makes_the_first_successor_stand_at_once() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=1, preferred_candidates=(key_of(1), key_of(3))
    )
    context.receive(request)
    assert context.node.role == "prospective"


def test_the_second_successor_waits() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=1, preferred_candidates=(key_of(3), key_of(1))
    )
    context.receive(request)
    assert context.node.role == "follower"
    context.advance(500)
    assert context.node.role == "prospective"


def test_an_old_end_quorum_epoch_is_fenced() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    response = context.receive(
        EndQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=epoch - 1)
    )
    assert response == EndQuorumEpochResponse(
        error=ErrorCode.fenced_leader_epoch, leader_id=1, leader_epoch=epoch
    )


def test_a_leader_that_shuts_down_names_the_most_caught_up_first() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    context.receive(context.fetch(3, offset=1, last_epoch=epoch))
    context.sent(VoteRequest)
    context.feed(ShutdownRequested())
    request = context.sent(EndQuorumEpochRequest)[0].request
    assert [candidate.id for candidate in request.preferred_candidates] == [3, 2]
    assert not context.last_ready.is_shut_down


def test_a_leaving_leader_is_shut_down_once_another_leads() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.feed(ShutdownRequested())
    context.receive(BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=epoch + 1))
    assert context.last_ready.is_shut_down


def test_a_follower_shuts_down_at_once() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    assert context.feed(ShutdownRequested()).is_shut_down


def test_end_quorum_epoch_is_repeated_only_to_voters_that_have_not_answered() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=1))
    first, second = context.sent(EndQuorumEpochRequest)
    context.answer(first, EndQuorumEpochResponse(leader_id=1, leader_epoch=2))
    context.fail(second)
    context.advance(context.config.retry_backoff_ms)
    repeated = context.sent(EndQuorumEpochRequest)
    assert [outbound.destination_id for outbound in repeated] == [second.destination_id]


# Holding on


def test_a_leader_without_a_majorities_fetches_resigns() -> None:
    context = RaftContext()
    context.become_leader()
    context.advance(context.config.check_quorum_timeout_ms)
    assert context.node.role == "resigned"


def test_one_voters_fetch_of_three_keeps_the_leader() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.advance(context.config.check_quorum_timeout_ms - 1)
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.advance(context.config.check_quorum_timeout_ms - 1)
    assert context.node.role == "leader"


def test_an_observers_fetch_does_not_keep_the_leader() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.advance(context.config.check_quorum_timeout_ms - 1)
    context.receive(context.fetch(50, offset=1, last_epoch=epoch))
    context.advance(1)
    assert context.node.role == "resigned"


def test_a_sole_voter_needs_no_peer() -> None:
    context = RaftContext(voters=(1,))
    context.advance(100_000)
    assert context.node.role == "leader"


def test_a_fetch_spares_the_voter_the_announcement() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    for outbound in context.sent(BeginQuorumEpochRequest):
        context.answer(outbound, BeginQuorumEpochResponse(leader_id=1, leader_epoch=epoch))
    context.advance(900)
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.advance(100)
    assert [outbound.destination_id for outbound in context.sent(BeginQuorumEpochRequest)] == [3]


def test_an_observer_finds_the_leader_by_asking_any_voter() -> None:
    context = RaftContext(voters=(2, 3))
    fetch = context.sent(FetchRequest)[0]
    assert fetch.destination_id == 2
    refusal = FetchResponse(error=ErrorCode.fenced_leader_epoch, leader_id=3, leader_epoch=4)
    context.answer(fetch, refusal)
    assert context.sent(FetchRequest)[0].destination_id == 3
    assert (context.node.leader_id, context.node.leader_epoch) == (3, 4)
