"""What a broken, misconfigured or malicious peer may say: nothing of it ends the replica or is written down."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kquorum.raft.inputs import ShutdownRequested
from kquorum.raft.messages import (
    MAX_EPOCH,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
    VoteResponse,
)
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.calls import calls_of
from tests.support.raft.context import CLUSTER_ID, LOCAL, RaftContext, batch, key_of


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


def test_a_fetch_of_an_epoch_without_a_successor_changes_nothing() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    for claimed in (MAX_EPOCH, MAX_EPOCH + 1):
        answer = context.receive(replace(context.fetch(2, 1, epoch), current_leader_epoch=claimed))
        assert answer.error is ErrorCode.unknown_leader_epoch
    assert context.standing == ("leader", epoch, LOCAL)


def test_a_voter_stays_in_the_last_epoch_and_keeps_what_it_has() -> None:
    """A voter that lies can use the epochs up, as with Kafka: no number follows. It is taken no further than that."""
    context = RaftContext(log=[batch(0, 1)])
    context.receive(context.vote_request(2, epoch=MAX_EPOCH))
    for _ in range(10):
        context.advance(context.config.election_timeout_ms * 2)
    assert context.standing == ("unattached", MAX_EPOCH, -1)
    assert context.log_end_offset == 1
    assert context.sent(VoteRequest) == []
    context.begin(2, MAX_EPOCH)
    assert context.standing == ("follower", MAX_EPOCH, 2), "the last epoch may have a leader like any other"


@pytest.mark.parametrize("epoch", range(MAX_EPOCH - 3, MAX_EPOCH + 1))
@pytest.mark.parametrize("wins", [False, True])
@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_the_epochs_run_out_without_a_fault(epoch: int, voters: tuple[int, ...], *, wins: bool) -> None:
    """A Vote request of the last epoch ended each node that received it, by an assertion at its next time-out."""
    context = RaftContext(voters=voters, log=[batch(0, 1)])
    context.receive(context.vote_request(2, epoch=epoch))
    for _ in range(100):
        if context.node.role == "leader":
            context.node.resign(context.now_ms, context.node.leader_epoch)
        context.advance(context.config.election_timeout_ms // 2)
        for outbound in context.sent(VoteRequest):
            assert isinstance(outbound.request, VoteRequest)
            assert outbound.request.replica_epoch <= MAX_EPOCH
            if outbound.request.pre_vote or wins:
                context.vote(outbound)
        assert epoch <= context.node.leader_epoch <= MAX_EPOCH
    assert context.node.leader_epoch == MAX_EPOCH
    assert context.node.role in ("unattached", "resigned", "leader")


FLOODS: dict[str, Callable[[RaftContext, int], Request]] = {
    "pre-votes": lambda context, _: context.vote_request(2, context.node.leader_epoch, pre_vote=True),
    "votes in the epoch": lambda context, _: context.vote_request(2, context.node.leader_epoch),
    "votes in ever higher epochs": lambda context, number: context.vote_request(2, 10 + number),
    "votes of ever new voters": lambda context, number: context.vote_request(number, 10 + number),
    "farewells of no leader": lambda context, _: EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=context.node.leader_epoch
    ),
    "farewells of ever new leaders": lambda _, number: EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        leader_id=2,
        leader_epoch=10 + number,
        preferred_candidates=tuple(key_of(each) for each in range(2, 1_000)),
    ),
    "leaders of ever new epochs": lambda _, number: BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=10 + number
    ),
    "pieces beyond the end": lambda context, _: FetchSnapshotRequest(
        cluster_id=CLUSTER_ID,
        replica=key_of(2),
        current_leader_epoch=context.node.leader_epoch,
        snapshot_id=OffsetAndEpoch(2**63 - 1, 1),
        position=2**63 - 1,
        max_bytes=2**31 - 1,
    ),
}
# Well below a tenth of a millisecond of Python.
MOST_CALLS = 300


@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.parametrize("is_leader", [False, True])
def test_a_flood_of_one_voter_costs_as_much_for_each_request_and_one_write_a_turn(
    name: str, *, is_leader: bool
) -> None:
    """Of what arrives in one turn, each is answered, and the election state is written once."""
    context = RaftContext(log=[batch(0, 1)])
    if is_leader:
        context.become_leader()
    context.turn()
    end_offset, epoch = context.log_end_offset, context.node.leader_epoch
    requests = [FLOODS[name](context, number) for number in range(3, 1_003)]
    first = context.last_request_id + 1

    def arrive(some: list[Request]) -> None:
        for request in some:
            context.receive_without_a_turn(request)

    for start in range(0, 1_000, 100):
        assert calls_of(lambda start=start: arrive(requests[start : start + 100])) < 100 * MOST_CALLS  # type: ignore[misc]
    ready = context.turn()
    assert len(ready.role_changes) <= 1_001
    assert {first + number for number in range(1_000)} <= context.responses.keys()
    assert context.node.leader_epoch >= epoch
    assert context.log_end_offset >= end_offset
    context.now_ms += 1
    assert calls_of(context.turn) < 10 * MOST_CALLS, "nothing of it is kept"


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
