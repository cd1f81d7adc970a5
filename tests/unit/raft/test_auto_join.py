"""An observer that adds itself, after Kafka's KafkaRaftClientAutoJoinTest (KIP-853; rule R11.4)."""

from typing import Any

import pytest

from kquorum.raft.batches import quorum_batch
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ChangeVotersResponse,
    FetchRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from kquorum.raft.ready import OutboundRequest, QuorumState
from kquorum.raft.voters import Voter, VoterSet, voters_record
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import LOCAL, RaftContext, batch, key_of
from tests.support.raft.dynamic import DynamicContext, endpoints_of, first_batch, set_of, voter_of

CHANGES = (AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest)


def joining(*voters: int | Voter, **config: Any) -> DynamicContext:
    return DynamicContext(voters=voters or (2, 3), **{"auto_join": True, **config})


def next_period(context: DynamicContext, fetch: OutboundRequest) -> OutboundRequest:
    """The Fetch is answered a period later; answers the one request that follows."""
    context.now_ms += context.config.update_voter_period_ms - 1
    context.answer(fetch, context.fetched())
    fetch = context.sent(FetchRequest)[-1]
    context.now_ms += 1
    context.answer(fetch, context.fetched())
    (outbound,) = context.requests
    context.requests.clear()
    return outbound


def settle(
    context: DynamicContext, outbound: OutboundRequest, error: ErrorCode = ErrorCode.none
) -> OutboundRequest:
    """The leader answers the change; answers the one request that follows, which must be a Fetch."""
    context.answer(outbound, ChangeVotersResponse(error=error))
    (fetch,) = context.requests
    assert isinstance(fetch.request, FetchRequest)
    context.requests.clear()
    return fetch


def test_a_new_node_asks_to_be_added_again_and_again_with_fetches_between() -> None:
    """testAutoAddNewVoter"""
    context = joining()
    fetch = context.follow(2, 1)
    for _ in range(3):
        outbound = next_period(context, fetch)
        assert outbound.request == AddRaftVoterRequest(
            cluster_id=context.config.cluster_id,
            timeout_ms=context.config.request_timeout_ms,
            voter=key_of(LOCAL),
            endpoints=endpoints_of(LOCAL),
            ack_when_committed=False,
        )
        assert outbound.destination_id == 2
        fetch = settle(context, outbound)


def test_a_node_with_a_damaged_log_does_not_ask_before_it_has_its_log_back() -> None:
    """It could neither stand nor vote as others do: with it, the leader might never be replaced."""
    log = [first_batch(1, set_of(2, 3))]
    state = QuorumState(leader_epoch=1, leader_id=2)
    context = joining(2, 3, log=log, state=state, damaged_until=9)
    (question,) = context.sent(FetchRequest)
    context.answer(question, context.fetched(diverging=OffsetAndEpoch(6, 1)))
    for offset, wait_ms in ((3, context.config.update_voter_period_ms - 1), (4, 1)):
        (fetch,) = context.requests
        context.requests.clear()
        context.now_ms += wait_ms
        assert not context.answer(fetch, context.fetched(batch(offset, 1))).has_caught_up
    (fetch,) = context.requests
    assert isinstance(fetch.request, FetchRequest)
    context.requests.clear()
    assert context.answer(fetch, context.fetched(batch(5, 1))).has_caught_up
    outbound = next_period(context, context.sent(FetchRequest)[-1])
    assert isinstance(outbound.request, AddRaftVoterRequest)


def test_once_it_has_read_that_it_votes_it_asks_no_more() -> None:
    """testAutoAddNewVoter: the answer may come before the record."""
    context = joining()
    fetch = settle(context, next_period(context, context.follow(2, 1)))
    three = set_of(1, 2, 3)
    context.answer(fetch, context.fetched(quorum_batch(0, 1, 1, [voters_record(three)])))
    assert context.node.replica.is_voter
    outbound = next_period(context, context.sent(FetchRequest)[-1])
    assert isinstance(outbound.request, FetchRequest)


def test_the_voter_of_the_replaced_disk_is_removed_first() -> None:
    """testAutoRemoveOldVoter"""
    old = voter_of(LOCAL, directory=77)
    context = joining(old, 2, 3)
    fetch = context.follow(2, 1)
    for _ in range(2):
        outbound = next_period(context, fetch)
        assert outbound.request == RemoveRaftVoterRequest(cluster_id=context.config.cluster_id, voter=old.key)
        fetch = settle(context, outbound)


def test_after_the_old_disk_is_out_the_new_one_is_put_in_and_then_there_is_peace() -> None:
    """testObserverRemovesOldVoterAndAutoJoins"""
    old = voter_of(LOCAL, directory=77)
    with_old = VoterSet.of(old, voter_of(2), voter_of(3))
    without = set_of(2, 3)
    joined = set_of(LOCAL, 2, 3)
    context = joining(log=[first_batch(1, with_old)])
    fetch = context.follow(2, 1)
    outbound = next_period(context, fetch)
    assert isinstance(outbound.request, RemoveRaftVoterRequest)
    fetch = settle(context, outbound)
    context.answer(fetch, context.fetched(quorum_batch(3, 1, 1, [voters_record(without)])))
    outbound = next_period(context, context.sent(FetchRequest)[-1])
    assert isinstance(outbound.request, AddRaftVoterRequest)
    fetch = settle(context, outbound)
    context.answer(fetch, context.fetched(quorum_batch(4, 1, 1, [voters_record(joined)])))
    fetch = context.sent(FetchRequest)[-1]
    for _ in range(2):
        fetch = next_period(context, fetch)
        assert isinstance(fetch.request, FetchRequest)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.none, ErrorCode.request_timed_out, ErrorCode.duplicate_voter, ErrorCode.invalid_request],
)
def test_whatever_the_answer_it_waits_a_period_before_it_asks_again(error: ErrorCode) -> None:
    context = joining()
    outbound = next_period(context, context.follow(2, 1))
    context.answer(outbound, ChangeVotersResponse(error=error))
    context.advance(context.config.retry_backoff_ms)
    fetch = context.sent(FetchRequest)[-1]
    context.answer(fetch, context.fetched())
    assert [type(outbound.request) for outbound in context.requests] == [FetchRequest]


# Who does not


def seen_over_three_periods(context: RaftContext) -> set[type]:
    fetch = context.follow(2, 1)
    seen = set()
    for _ in range(6):
        context.now_ms += context.config.update_voter_period_ms // 2
        context.answer(fetch, context.fetched())
        seen |= {type(outbound.request) for outbound in context.requests}
        fetch = context.sent(FetchRequest)[-1]
    return seen


def test_a_broker_does_not_join() -> None:
    """testObserversDoNotAutoJoin"""
    assert seen_over_three_periods(joining(can_be_voter=False)) == {FetchRequest}


def test_an_observer_that_may_not_join_does_not() -> None:
    """testObserverDoesNotAddItselfWhenAutoJoinDisabled"""
    assert seen_over_three_periods(joining(auto_join=False)) == {FetchRequest}


def test_no_controller_joins_a_static_quorum() -> None:
    """testObserverDoesNotAutoJoinWithKRaftVersion0"""
    context = RaftContext(voters=(2, 3), can_be_voter=True, endpoints=endpoints_of(LOCAL), auto_join=True)
    assert seen_over_three_periods(context) == {FetchRequest}


def test_a_voter_has_no_need_to_join() -> None:
    assert seen_over_three_periods(joining(1, 2, 3)) == {FetchRequest}


def test_a_replica_that_was_removed_stays_out() -> None:
    """KAFKA-19850: only an operator takes it back, and the log is what it remembers that by."""
    three = set_of(1, 2, 3)
    removed = quorum_batch(3, 1, 1, [voters_record(three.without(key_of(LOCAL)))])
    context = joining(1, 2, 3, log=[first_batch(1, three), removed])
    assert context.voter_ids == (2, 3)
    assert seen_over_three_periods(context) == {FetchRequest}
