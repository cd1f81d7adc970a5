"""What a broken, misconfigured or malicious peer may say: nothing of it ends the replica or is written down."""

import pytest
from kio.schema.errors import ErrorCode

from kquorum.raft.inputs import ShutdownRequested
from kquorum.raft.messages import (
    MAX_EPOCH,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    VoteRequest,
    VoteResponse,
)
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.context import CLUSTER_ID, RaftContext, batch


@pytest.mark.parametrize("leader_id", [99, -7, -1, 1])
@pytest.mark.parametrize("kind", [BeginQuorumEpochRequest, EndQuorumEpochRequest])
def test_only_another_voter_can_claim_to_lead(
    kind: type[BeginQuorumEpochRequest | EndQuorumEpochRequest], leader_id: int
) -> None:
    context = RaftContext()
    before = context.state
    response = context.receive(kind(cluster_id=CLUSTER_ID, leader_id=leader_id, leader_epoch=5))
    assert response.error is ErrorCode.invalid_request
    assert (context.state, context.node.leader_epoch) == (before, 0)


def test_an_unknown_leader_named_by_a_peer_is_not_fetched_from() -> None:
    context = RaftContext(voters=(2, 3))
    fetch = context.sent(FetchRequest)[0]
    context.answer(fetch, FetchResponse(error=ErrorCode.fenced_leader_epoch, leader_id=4, leader_epoch=9))
    assert (context.node.leader_id, context.node.leader_epoch) == (-1, 9)
    assert {outbound.destination_id for outbound in context.sent(FetchRequest)} <= {2, 3}


def test_a_second_leader_of_an_epoch_is_refused() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=5)
    response = context.receive(BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=3, leader_epoch=5))
    assert (response.error, response.leader_id, context.node.leader_id) == (ErrorCode.invalid_request, 2, 2)


def test_a_leader_does_not_believe_in_another_one() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    response = context.receive(
        BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=3, leader_epoch=epoch)
    )
    assert (response.error, context.node.role) == (ErrorCode.invalid_request, "leader")


def test_an_epoch_that_has_no_successor_is_refused() -> None:
    context = RaftContext()
    vote = context.receive(context.vote_request(2, epoch=MAX_EPOCH + 1))
    begin = context.receive(
        BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=MAX_EPOCH + 1)
    )
    assert (vote.error, begin.error) == (ErrorCode.invalid_request, ErrorCode.invalid_request)
    assert context.node.leader_epoch == 0


def test_a_response_of_an_impossible_epoch_is_dropped() -> None:
    context = RaftContext(voters=(2, 3))
    fetch = context.sent(FetchRequest)[0]
    context.answer(
        fetch, FetchResponse(error=ErrorCode.fenced_leader_epoch, leader_id=2, leader_epoch=2**31 - 1)
    )
    assert context.node.leader_epoch == 0


@pytest.mark.parametrize("diverging", [OffsetAndEpoch(-1, 1), OffsetAndEpoch(0, -1)])
def test_an_invalid_point_of_divergence_truncates_nothing_and_does_not_reset_the_fetch_timer(
    diverging: OffsetAndEpoch,
) -> None:
    context = RaftContext(log=[batch(0, 1)])
    fetch = context.follow(leader_id=2, epoch=2)
    context.now_ms += 1999
    context.answer(fetch, context.fetched(diverging=diverging))
    assert context.log_end_offset == 1
    context.advance(1)
    assert context.node.role == "prospective"


def test_a_candidate_that_shuts_down_does_not_win_any_more() -> None:
    context = RaftContext()
    vote = context.become_candidate()[0]
    assert context.feed(ShutdownRequested()).is_shut_down
    context.answer(vote, VoteResponse(leader_epoch=1, vote_granted=True))
    assert context.node.role == "candidate"
    assert context.sent(VoteRequest) == []


def test_observers_that_are_long_gone_are_forgotten() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    for observer in range(50, 60):
        context.receive(context.fetch(observer, offset=1, last_epoch=epoch))
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    leader = context.node.replica.role
    leader.check_quorum_deadline_ms = 10**9  # not the subject here
    context.now_ms += 300_001
    context.node.replica.role.fetched_since_check.add(2)
    context.receive(context.fetch(60, offset=1, last_epoch=epoch))
    assert sorted(key.id for key in leader.progress) == [2, 60]
