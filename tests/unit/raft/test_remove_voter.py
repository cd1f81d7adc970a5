"""RemoveRaftVoter at the leader, its own removal included (KIP-853; rule R11)."""

from uuid import UUID

import pytest

from kquorum.raft.inputs import ResignRequested
from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    RemoveRaftVoterRequest,
    VoteRequest,
)
from kquorum.raft.voters import ReplicaKey, VotersAt, quorum_records
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import LOCAL, RaftContext, key_of
from tests.support.raft.dynamic import DynamicContext, voter_of


@pytest.fixture
def leader() -> DynamicContext:
    context = DynamicContext()
    context.lead()
    return context


def test_the_set_shrinks_at_the_append_and_the_answer_comes_with_the_commit(leader: DynamicContext) -> None:
    """testRemoveVoter"""
    assert leader.remove(key_of(3)) is None
    waiting = leader.last_request_id
    offset = leader.log_end_offset - 1
    assert leader.voter_ids == (1, 2)
    assert list(quorum_records(leader.log[-1])) == [VotersAt(offset, leader.node.voters)]
    leader.catch_up(3)
    assert leader.read_answer(waiting) is None, "it does not count any more"
    leader.catch_up(2)
    assert leader.read_answer(waiting).error is ErrorCode.none
    assert leader.node.high_watermark == offset + 1


def test_a_removed_voter_is_left_alone(leader: DynamicContext) -> None:
    leader.remove(key_of(3))
    leader.commit()
    leader.requests.clear()
    leader.advance(leader.config.request_timeout_ms)
    assert {outbound.destination_id for outbound in leader.sent(BeginQuorumEpochRequest)} == {2}


def test_a_removed_leader_leads_without_counting_itself_until_the_removal_is_committed(
    leader: DynamicContext,
) -> None:
    """testRemoveVoterIsLeader"""
    assert leader.remove(key_of(LOCAL)) is None
    waiting = leader.last_request_id
    epoch = leader.node.leader_epoch
    assert leader.standing == ("leader", epoch, LOCAL)
    leader.catch_up(2)
    assert leader.read_answer(waiting) is None, "one of the two that are left"
    leader.catch_up(3)
    assert leader.read_answer(waiting).error is ErrorCode.none
    assert leader.standing == ("resigned", epoch, LOCAL)
    ends = leader.sent(EndQuorumEpochRequest)
    assert {outbound.destination_id for outbound in ends} == {2, 3}
    leader.advance(leader.config.election_timeout_ms)
    assert leader.standing == ("unattached", epoch + 1, -1)
    leader.advance(10 * leader.config.fetch_timeout_ms)
    assert leader.sent(VoteRequest) == [], "an observer does not stand"


def test_a_removed_leader_may_be_asked_to_resign_before_the_commit(leader: DynamicContext) -> None:
    """testRemoveVoterIsLeader: resigning stays legal."""
    leader.remove(key_of(LOCAL))
    waiting = leader.last_request_id
    leader.feed(ResignRequested(leader.node.leader_epoch))
    assert leader.node.role == "resigned"
    assert leader.read_answer(waiting).error is ErrorCode.not_leader_or_follower


def test_a_removed_leader_needs_fetches_of_a_majority_of_the_others(leader: DynamicContext) -> None:
    """LeaderStateTest.testCheckQuorumAfterVoterSetChanges: it is no voter that could make up half of them."""
    leader.remove(key_of(LOCAL))
    half = leader.config.check_quorum_timeout_ms // 2
    leader.advance(half)
    leader.catch_up(2, 0)
    assert leader.node.role == "leader"
    leader.advance(half)
    assert leader.node.role == "resigned"


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_another_clusters_request_is_refused(leader: DynamicContext, cluster_id: str) -> None:
    """testRemoveVoterInvalidClusterId"""
    response = leader.remove(key_of(3), cluster_id=cluster_id)
    assert (response.error, response.is_top_level) == (ErrorCode.inconsistent_cluster_id, True)
    assert leader.voter_ids == (1, 2, 3)


def test_only_the_leader_removes() -> None:
    """testRemoveVoterToNotLeader"""
    context = DynamicContext()
    context.follow(2, 1)
    assert context.remove(key_of(3)).error is ErrorCode.not_leader_or_follower
    assert context.voter_ids == (1, 2, 3)


def test_one_change_at_a_time(leader: DynamicContext) -> None:
    """testRemoveVoterWithPendingRemoveVoter, testAddVoterWithPendingRemoveVoter"""
    leader.catch_up(4)
    leader.remove(key_of(3))
    assert leader.remove(key_of(2)).error is ErrorCode.request_timed_out
    assert leader.add(voter_of(4)).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2)


def test_nothing_is_removed_before_a_record_of_the_epoch_is_committed() -> None:
    """testRemoveVoterWithoutFencedPreviousLeaders"""
    context = DynamicContext()
    context.lead(committed=False)
    assert context.remove(key_of(3)).error is ErrorCode.request_timed_out
    assert context.voter_ids == (1, 2, 3)


def test_nothing_is_removed_from_a_static_quorum() -> None:
    """testRemoveVoterWithKraftVersion0"""
    context = RaftContext()
    context.become_leader()
    context.receive(context.fetch(2, 1, 1))
    request = RemoveRaftVoterRequest(cluster_id=None, voter=key_of(3))
    assert context.receive(request).error is ErrorCode.unsupported_version


@pytest.mark.parametrize("key", [ReplicaKey(3, UUID(int=99)), key_of(9)], ids=["other disk", "unknown id"])
def test_only_a_voter_with_exactly_this_key_is_removed(leader: DynamicContext, key: ReplicaKey) -> None:
    """testRemoveVoterWithNoneVoter, testRemoveVoterWithNoneVoterId"""
    leader.catch_up(key)
    assert leader.remove(key).error is ErrorCode.voter_not_found
    assert leader.voter_ids == (1, 2, 3)


def test_the_last_voter_stays() -> None:
    """testRemoveVoterToEmptyVoterSet"""
    context = DynamicContext(voters=(1,))
    assert context.remove(key_of(1)).error is ErrorCode.voter_not_found
    assert (context.voter_ids, context.node.role) == ((1,), "leader")


def test_the_leader_of_one_other_voter_can_go_and_stands_again_while_it_may_be_alone_in_knowing_it() -> None:
    """The other has the shorter log and needs its vote: without this, no node could be elected (Ongaro, 4.2.2)."""
    context = DynamicContext(voters=(1, 2))
    context.lead()
    assert context.remove(key_of(LOCAL)) is None
    assert context.voter_ids == (2,)
    context.advance(context.config.check_quorum_timeout_ms)
    assert context.node.role == "resigned"
    context.advance(2 * context.config.election_timeout_ms)
    assert context.node.role == "prospective"
    assert {outbound.destination_id for outbound in context.sent(VoteRequest)} == {2}


def test_a_removal_that_is_not_committed_in_time_stays_in_force(leader: DynamicContext) -> None:
    """testRemoveVoterTimedOut"""
    leader.remove(key_of(3))
    waiting = leader.last_request_id
    leader.advance(leader.config.request_timeout_ms)
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2)


def test_a_leader_that_steps_down_answers_and_keeps_the_uncommitted_set(leader: DynamicContext) -> None:
    """testRemoveVoterFailsWhenLosingLeadership"""
    leader.remove(key_of(3))
    waiting = leader.last_request_id
    leader.begin(2, leader.node.leader_epoch + 1)
    assert leader.read_answer(waiting).error is ErrorCode.not_leader_or_follower
    assert leader.voter_ids == (1, 2)


def test_a_removed_voter_that_hears_of_it_does_not_stand_any_more() -> None:
    context = DynamicContext(voters=(1, 2, 3, 4))
    context.lead()
    context.remove(key_of(LOCAL))
    fetch = context.follow(2, context.node.leader_epoch + 1)
    context.answer(fetch, context.fetched(high_watermark=context.log_end_offset))
    context.advance(10 * context.config.fetch_timeout_ms)
    assert context.node.role == "unattached"
    assert context.sent(VoteRequest) == []
