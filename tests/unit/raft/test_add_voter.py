"""AddRaftVoter at the leader, after Kafka's KafkaRaftClientReconfigTest (KIP-853; rule R11)."""

import pytest

from kquorum.raft.messages import (
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
)
from kquorum.raft.voters import VotersAt, quorum_records
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.dynamic import DynamicContext, voter_of

NEW = voter_of(4)


@pytest.fixture
def leader() -> DynamicContext:
    context = DynamicContext()
    context.lead()
    return context


def test_a_caught_up_observer_becomes_a_voter_in_force_at_once_and_answered_when_committed(
    leader: DynamicContext,
) -> None:
    """testAddVoter"""
    leader.catch_up(4)
    assert leader.add(NEW) is None
    waiting = leader.last_request_id
    (outbound,) = leader.requests
    assert isinstance(outbound.request, ApiVersionsRequest)
    assert (outbound.destination_id, outbound.endpoint) == (4, NEW.endpoints[0])
    assert leader.voter_ids == (1, 2, 3), "nothing is appended before the new node was asked"
    leader.say_versions()
    assert leader.voter_ids == (1, 2, 3), "nothing is appended before the new node has fetched once more"
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3, 4)
    offset = leader.log_end_offset - 1
    assert list(quorum_records(leader.log[-1])) == [VotersAt(offset, leader.node.voters)]
    leader.catch_up(2)
    assert leader.read_answer(waiting) is None, "two of four are no majority"
    leader.catch_up(4)
    assert leader.read_answer(waiting).error is ErrorCode.none
    assert leader.node.high_watermark == offset + 1


def test_the_new_voter_gets_begin_quorum_epoch_like_the_others(leader: DynamicContext) -> None:
    leader.begin_add(4)
    assert 4 in {outbound.destination_id for outbound in leader.sent(BeginQuorumEpochRequest)}


def test_a_sole_voter_grows_to_two_and_then_needs_both() -> None:
    context = DynamicContext(voters=(1,))
    waiting = context.begin_add(2)
    assert context.voter_ids == (1, 2)
    assert context.read_answer(waiting) is None
    committed = context.node.high_watermark
    context.advance(1)
    assert context.node.high_watermark == committed
    context.catch_up(2)
    assert context.read_answer(waiting).error is ErrorCode.none


def test_what_was_proposed_before_stands_before_the_new_voters(leader: DynamicContext) -> None:
    leader.catch_up(4)
    leader.add(NEW)
    offset = leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"before"])
    leader.say_versions()
    leader.catch_up(4)
    after = leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"after"])
    leader.turn()
    (set_offset,) = [record.offset for record in quorum_records(leader.log[-2])]
    assert (offset + 1, set_offset + 1) == (set_offset, after)


def test_a_replica_that_adds_itself_is_answered_before_it_fetches(leader: DynamicContext) -> None:
    """ackWhenCommitted=false: it does not fetch while it waits for the answer."""
    leader.catch_up(4)
    leader.add(NEW, ack_when_committed=False)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.read_answer(waiting).error is ErrorCode.none
    assert leader.voter_ids == (1, 2, 3)
    leader.responses.clear()
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3, 4)
    assert leader.node.high_watermark < leader.log_end_offset
    leader.commit()
    assert leader.node.high_watermark == leader.log_end_offset
    assert waiting not in leader.responses, "it is answered once"


def test_the_fetch_of_the_new_node_that_waits_is_answered_so_that_it_fetches_again(
    leader: DynamicContext,
) -> None:
    """Otherwise each addition would take as long as a Fetch waits."""
    leader.catch_up(4)
    fetch = leader.last_request_id
    leader.add(NEW)
    assert fetch not in leader.responses
    leader.say_versions()
    assert fetch in leader.responses
