"""The fetching side goes on: acknowledgements, errors, and a leader that must be found again (rule R8.1)."""

import pytest

from kquorum.raft.inputs import FailureReason
from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.ready import OutboundRequest, QuorumState
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch

UNAUTHORIZED = ErrorCode.cluster_authorization_failed


def observer(leader_id: int = -1, epoch: int = 5, **config: object) -> tuple[RaftContext, OutboundRequest]:
    """An observer of the voters 2, 3 and 4, and the Fetch that it has out."""
    state = QuorumState(leader_epoch=epoch, leader_id=leader_id)
    context = RaftContext(voters=(2, 3, 4), state=state, **config)  # type: ignore[arg-type]
    (fetch,) = context.sent(FetchRequest)
    return context, fetch


# What is taken


def test_records_are_flushed_before_the_fetch_that_acknowledges_them() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=1, leader_id=2), auto_flush=False)
    (fetch,) = context.sent(FetchRequest)
    context.answer(fetch, context.fetched(batch(0, 1, count=2)))
    assert context.node.replica.log.flushed_offset == 0
    assert context.sent(FetchRequest) == []
    context.flush()
    assert context.node.replica.log.flushed_offset == context.node.log_end_offset == 2
    assert [out.request.fetch_offset for out in context.sent(FetchRequest)] == [2]


@pytest.mark.parametrize("can_be_voter", [False, True])
def test_only_an_observer_that_may_become_a_voter_waits_for_its_flush(can_be_voter: bool) -> None:
    context, fetch = observer(leader_id=2, can_be_voter=can_be_voter, auto_flush=False)
    context.answer(fetch, context.fetched(batch(0, 5, count=2)))
    assert context.log_end_offset == 2
    assert [out.request.fetch_offset for out in context.sent(FetchRequest)] == ([] if can_be_voter else [2])


def test_an_empty_answer_can_bring_a_high_watermark() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5, leader_id=2))
    told = []
    for records, high_watermark in (((), 0), ((batch(0, 5, count=2),), 0), ((), 2)):
        (fetch,) = context.sent(FetchRequest)
        context.answer(fetch, context.fetched(*records, high_watermark=high_watermark))
        told.append((context.log_end_offset, context.node.high_watermark))
    assert told == [(0, 0), (2, 0), (2, 2)]


def test_every_good_answer_gives_the_leader_its_time_again() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5, leader_id=2), request_timeout_ms=100_000)
    for _ in range(3):
        context.now_ms += context.config.fetch_timeout_ms - 1
        (fetch,) = context.sent(FetchRequest)
        context.answer(fetch, context.fetched(high_watermark=0))
        assert context.standing == ("follower", 5, 2)
    context.advance(context.config.fetch_timeout_ms - 1)
    assert context.standing == ("follower", 5, 2)
    context.advance(1)
    assert context.standing == ("prospective", 5, 2)


# What is refused, and what then


def top_level_error(kind: type) -> FetchResponse | VoteResponse:
    response = {
        FetchRequest: FetchResponse,
        VoteRequest: VoteResponse,
        BeginQuorumEpochRequest: BeginQuorumEpochResponse,
        EndQuorumEpochRequest: EndQuorumEpochResponse,
    }[kind]
    return response(error=UNAUTHORIZED, is_top_level=True)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("state", "kind", "role"),
    [
        (QuorumState(leader_epoch=5, leader_id=2), FetchRequest, "follower"),
        (QuorumState(leader_epoch=5), VoteRequest, "candidate"),
        (QuorumState(leader_epoch=5), BeginQuorumEpochRequest, "leader"),
        (QuorumState(leader_epoch=5, leader_id=1), EndQuorumEpochRequest, "resigned"),
    ],
)
def test_a_peer_that_refuses_authorization_is_left_alone_for_a_while(
    state: QuorumState, kind: type, role: str
) -> None:
    context = RaftContext(voters=(1, 2), state=state)
    if role == "leader":
        context.become_leader()
    elif role == "candidate":
        context.requests.extend(context.become_candidate())
    before = context.standing
    assert before[0] == role
    context.answer(context.sent(kind)[-1], top_level_error(kind))
    assert context.standing == before
    assert context.sent(kind) == []
    assert context.last_ready.deadline_ms is not None
    wait_ms = context.config.retry_backoff_ms
    if kind is BeginQuorumEpochRequest:
        wait_ms = context.config.begin_quorum_epoch_interval_ms
    context.advance(wait_ms - 1)
    assert context.sent(kind) == []
    context.advance(1)
    assert len(context.sent(kind)) == 1


def test_an_observer_that_was_answered_with_an_error_asks_again_after_the_back_off() -> None:
    context = RaftContext(voters=(2,), state=QuorumState(leader_epoch=5), retry_backoff_ms=50)
    (fetch,) = context.sent(FetchRequest)
    context.answer(fetch, FetchResponse(error=ErrorCode.unknown_server_error, is_top_level=True))
    context.advance(49)
    assert (context.standing, context.sent(FetchRequest)) == (("unattached", 5, -1), [])
    context.advance(1)
    assert [out.destination_id for out in context.sent(FetchRequest)] == [2]


# Looking for the leader


UNAVAILABLE = FetchResponse(error=ErrorCode.broker_not_available, leader_id=3, leader_epoch=5)
HEARSAY = FetchResponse(error=ErrorCode.not_leader_or_follower, leader_id=3, leader_epoch=5)


def ask_around(context: RaftContext, fetch: OutboundRequest) -> OutboundRequest:
    """Have the others name the leader until it is asked itself; answers that Fetch."""
    for _ in range(5):
        if fetch.destination_id == 3:
            return fetch
        context.answer(fetch, HEARSAY)
        assert context.standing == ("follower", 5, 3)
        if not context.requests:
            context.advance(context.config.retry_backoff_ms)
        (fetch,) = context.sent(FetchRequest)
    raise AssertionError("the leader was never asked again")


@pytest.mark.parametrize(
    "failure",
    [UNAVAILABLE, FailureReason.DISCONNECTED, FailureReason.TIMED_OUT],
    ids=["not available", "disconnected", "timed out"],
)
def test_a_leader_that_cannot_be_asked_is_asked_after_elsewhere_and_kept(
    failure: FetchResponse | FailureReason,
) -> None:
    context, fetch = observer(leader_id=3)
    assert fetch.destination_id == 3
    if isinstance(failure, FetchResponse):
        context.answer(fetch, failure)
    else:
        context.fail(fetch, failure)
    (other,) = context.sent(FetchRequest)
    assert other.destination_id in (2, 4)
    assert ask_around(context, other).destination_id == 3


def test_a_leader_that_did_not_answer_in_time_is_asked_after_elsewhere() -> None:
    """By the core's own clock: the transport's may run a little behind it."""
    context, _ = observer(leader_id=3, request_timeout_ms=1_000)
    context.advance(999)
    assert context.sent(FetchRequest) == []
    context.advance(1)
    (other,) = context.sent(FetchRequest)
    assert other.destination_id in (2, 4)
    context.answer(other, HEARSAY)
    assert context.standing == ("follower", 5, 3)


def test_after_the_fetch_timeout_others_are_asked_in_the_current_epoch() -> None:
    context, _ = observer(leader_id=3)
    context.advance(context.config.fetch_timeout_ms)
    fetches = context.sent(FetchRequest)
    assert {out.request.current_leader_epoch for out in fetches} == {5}
    assert {out.destination_id for out in fetches} & {2, 4}


def test_late_answers_of_the_leader_and_of_another_add_the_records_once() -> None:
    context, to_leader = observer(leader_id=3)
    records = context.fetched(batch(0, 5, count=2), high_watermark=0)
    context.fail(to_leader, FailureReason.TIMED_OUT)
    (to_other,) = context.sent(FetchRequest)
    context.answer(to_leader, records)
    context.answer(to_other, records)
    assert context.log_end_offset == 0, (
        "one answer is late, and what others than the leader say only names it"
    )
    (fetch,) = context.sent(FetchRequest)
    fetch = ask_around(context, fetch)
    context.answer(fetch, records)
    context.answer(fetch, records)
    assert [each.base_offset for each in context.log] == [0]


def test_while_the_fetch_to_another_is_out_no_further_one_is_sent() -> None:
    context, to_leader = observer(leader_id=3)
    context.fail(to_leader, FailureReason.TIMED_OUT)
    assert len(context.sent(FetchRequest)) == 1
    for _ in range(9):
        context.advance(100)
        assert (context.node.role, context.sent(FetchRequest)) == ("follower", [])
