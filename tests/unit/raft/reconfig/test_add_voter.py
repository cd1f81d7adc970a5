"""AddRaftVoter at the leader, after Kafka's KafkaRaftClientReconfigTest (KIP-853; kraft-semantics A11, A17.3)."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from raft.inputs import FailureReason, ShutdownRequested
from raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
)
from raft.quorum_records import VotersAt, quorum_records
from raft.voters import Endpoint, ReplicaKey, VersionRange, VoterSet
from tests.unit.raft.context import LOCAL, RaftContext, key_of
from tests.unit.raft.reconfig.dynamic import DynamicContext, endpoints_of, voter_of

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
    assert leader.voter_ids == (1, 2, 3, 4)
    offset = leader.log_end_offset - 1
    assert list(quorum_records(leader.log[-1])) == [VotersAt(offset, leader.node.voters)]
    leader.catch_up(2)
    assert leader.answer_of(waiting) is None, "two of four are no majority"
    leader.catch_up(4)
    assert leader.answer_of(waiting).error is ErrorCode.none
    assert leader.node.high_watermark == offset + 1


def test_the_new_voter_is_told_of_the_leader_as_the_others_are(leader: DynamicContext) -> None:
    leader.begin_add(4)
    assert 4 in {outbound.destination_id for outbound in leader.sent(BeginQuorumEpochRequest)}


def test_a_sole_voter_grows_to_two_and_then_needs_both() -> None:
    context = DynamicContext(voters=(1,))
    waiting = context.begin_add(2)
    assert context.voter_ids == (1, 2)
    assert context.answer_of(waiting) is None
    committed = context.node.high_watermark
    context.advance(1)
    assert context.node.high_watermark == committed
    context.catch_up(2)
    assert context.answer_of(waiting).error is ErrorCode.none


def test_what_was_proposed_before_stands_before_the_new_voters(leader: DynamicContext) -> None:
    leader.catch_up(4)
    leader.add(NEW)
    offset = leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"before"])
    leader.say_versions()
    after = leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"after"])
    leader.turn()
    (set_offset,) = [record.offset for record in quorum_records(leader.log[-2])]
    assert (offset + 1, set_offset + 1) == (set_offset, after)


def test_one_who_adds_itself_is_answered_before_the_commit(leader: DynamicContext) -> None:
    """ackWhenCommitted=false: the commit may need its own next Fetch."""
    waiting = leader.begin_add(4, ack_when_committed=False)
    assert leader.answer_of(waiting).error is ErrorCode.none
    assert leader.node.high_watermark < leader.log_end_offset


# What is refused


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_another_clusters_request_is_refused(leader: DynamicContext, cluster_id: str) -> None:
    """testAddVoterInvalidClusterId"""
    response = leader.add(NEW, cluster_id=cluster_id)
    assert (response.error, response.is_top_level) == (ErrorCode.inconsistent_cluster_id, True)
    assert leader.voter_ids == (1, 2, 3)


def test_a_request_may_leave_the_cluster_id_out(leader: DynamicContext) -> None:
    leader.catch_up(4)
    assert leader.add(NEW, cluster_id=None) is None


def test_only_the_leader_adds() -> None:
    """testAddVoterToNotLeader"""
    context = DynamicContext()
    context.follow(2, 1)
    assert context.add(NEW).error is ErrorCode.not_leader_or_follower


@pytest.mark.parametrize(
    "change",
    [
        {"endpoints": (Endpoint("ANOTHER", "node4", 9093),)},
        {"endpoints": ()},
        {"voter": ReplicaKey(4)},
        {"voter": ReplicaKey(-1, UUID(int=4))},
    ],
    ids=["no default listener", "no listener", "no directory id", "no id"],
)
def test_a_malformed_request_is_refused(leader: DynamicContext, change: dict[str, object]) -> None:
    """testAddVoterWithMissingDefaultListener, testAddVoterWithMissingDirectoryId"""
    leader.catch_up(4)
    assert leader.add(NEW, **change).error is ErrorCode.invalid_request
    assert leader.sent(ApiVersionsRequest) == []


@pytest.mark.parametrize("is_appended", [False, True])
def test_one_change_at_a_time(leader: DynamicContext, is_appended: bool) -> None:
    """testAddVoterWithPendingAddVoter, testRemoveVoterWithPendingAddVoter, testUpdateVoterWithPendingAddVoter"""
    leader.catch_up(4)
    leader.add(NEW)
    if is_appended:
        leader.say_versions()
    leader.catch_up(5)
    assert leader.add(voter_of(5)).error is ErrorCode.request_timed_out
    assert leader.remove(key_of(2)).error is ErrorCode.request_timed_out
    assert (
        leader.update(replace(voter_of(2), endpoints=endpoints_of(2, 1))).error is ErrorCode.request_timed_out
    )
    assert leader.voter_ids == ((1, 2, 3, 4) if is_appended else (1, 2, 3))


def test_nothing_changes_before_a_record_of_the_epoch_is_committed() -> None:
    """testAddVoterWithoutFencedPreviousLeaders"""
    context = DynamicContext()
    context.lead(committed=False)
    context.catch_up(4)
    assert context.add(NEW).error is ErrorCode.request_timed_out
    context.commit()
    assert context.add(NEW) is None


def test_nothing_changes_while_the_last_voters_are_not_committed(leader: DynamicContext) -> None:
    """Also when nobody waits for them any more."""
    leader.begin_add(4)
    leader.advance(leader.config.request_timeout_ms)
    leader.catch_up(5, 0)
    assert leader.add(voter_of(5)).error is ErrorCode.request_timed_out
    assert leader.remove(key_of(3)).error is ErrorCode.request_timed_out
    assert leader.update(voter_of(3)).error is ErrorCode.request_timed_out


def test_a_static_quorum_does_not_change() -> None:
    """testAddVoterWithKraftVersion0"""
    context = RaftContext(endpoints=endpoints_of(LOCAL))
    context.become_leader()
    context.receive(context.fetch(2, 1, 1))
    request = AddRaftVoterRequest(cluster_id=None, timeout_ms=1000, voter=NEW.key, endpoints=NEW.endpoints)
    assert context.receive(request).error is ErrorCode.unsupported_version


@pytest.mark.parametrize("directory", [2, 99])
def test_a_voters_id_is_not_added_again_whatever_its_disk(leader: DynamicContext, directory: int) -> None:
    """testAddVoterWithExistingVoter"""
    leader.catch_up(voter_of(2, directory).key)
    assert leader.add(voter_of(2, directory)).error is ErrorCode.duplicate_voter


def test_a_change_that_is_not_committed_in_time_stays_in_force(leader: DynamicContext) -> None:
    """testAddVoterTimeout"""
    waiting = leader.begin_add(4)
    leader.advance(leader.config.request_timeout_ms - 1)
    assert leader.answer_of(waiting) is None
    leader.advance(1)
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3, 4)
    leader.commit()
    assert leader.node.high_watermark == leader.log_end_offset


def test_a_node_that_does_not_answer_what_it_supports_is_not_added(leader: DynamicContext) -> None:
    leader.catch_up(4)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.advance(leader.config.request_timeout_ms)
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3)


@pytest.mark.parametrize(
    "outcome",
    [
        lambda context: context.say_versions(None, error=ErrorCode.invalid_request),
        lambda context: context.fail(context.sent(ApiVersionsRequest)[0]),
        lambda context: context.fail(context.sent(ApiVersionsRequest)[0], FailureReason.TIMED_OUT),
    ],
    ids=["error", "disconnected", "timed out"],
)
def test_a_node_that_cannot_be_asked_is_not_added(
    leader: DynamicContext, outcome: Callable[[DynamicContext], object]
) -> None:
    """testAddVoterWithApiVersionsFromIncorrectNode"""
    leader.catch_up(4)
    leader.add(NEW)
    waiting = leader.last_request_id
    outcome(leader)
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3)


def test_an_answer_of_another_node_is_not_the_new_nodes(leader: DynamicContext) -> None:
    leader.catch_up(4)
    leader.add(NEW)
    (outbound,) = leader.sent(ApiVersionsRequest)
    leader.answer(replace(outbound, destination_id=3), ApiVersionsResponse(kraft_versions=VersionRange(0, 1)))
    assert leader.voter_ids == (1, 2, 3)


@pytest.mark.parametrize("versions", [None, VersionRange(0, 0), VersionRange(2, 3)])
def test_a_node_that_does_not_know_the_finalised_version_is_not_added(
    leader: DynamicContext, versions: VersionRange | None
) -> None:
    """testAddVoterInvalidFeatureVersion"""
    leader.catch_up(4)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions(versions)
    assert leader.answer_of(waiting).error is ErrorCode.invalid_request
    assert leader.voter_ids == (1, 2, 3)


def test_a_node_that_never_fetched_is_not_added(leader: DynamicContext) -> None:
    """testAddVoterWithLaggingNewVoter"""
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out


def test_a_node_that_never_caught_up_or_did_so_long_ago_is_not_added(leader: DynamicContext) -> None:
    leader.catch_up(4, 0)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out
    leader.catch_up(4)
    for _ in range(3_600):
        leader.advance(1000)
        leader.commit()
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3)


def test_one_of_the_same_id_on_another_disk_has_not_caught_up_for_it(leader: DynamicContext) -> None:
    leader.catch_up(voter_of(4, directory=99).key)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.answer_of(waiting).error is ErrorCode.request_timed_out


@pytest.mark.parametrize("is_appended", [False, True])
def test_a_leader_that_steps_down_leaves_no_request_unanswered(
    leader: DynamicContext, is_appended: bool
) -> None:
    """testAddVoterFailsWhenLosingLeadership"""
    leader.catch_up(4)
    leader.add(NEW)
    waiting = leader.last_request_id
    if is_appended:
        leader.say_versions()
    leader.node.resign(leader.now_ms, leader.node.leader_epoch)
    leader.turn()
    assert leader.answer_of(waiting).error is ErrorCode.not_leader_or_follower
    ids = {outbound.destination_id for outbound in leader.sent(EndQuorumEpochRequest)}
    assert ids == ({2, 3, 4} if is_appended else {2, 3})


def test_a_leader_that_leaves_takes_no_more_changes(leader: DynamicContext) -> None:
    leader.feed(ShutdownRequested())
    assert leader.add(NEW).error in (ErrorCode.not_leader_or_follower, ErrorCode.broker_not_available)


def test_a_removed_replica_does_not_put_itself_back_but_an_operator_may(leader: DynamicContext) -> None:
    """KAFKA-19850"""
    leader.remove(key_of(3))
    leader.commit()
    leader.catch_up(3)
    assert leader.add(voter_of(3), ack_when_committed=False).error is ErrorCode.request_timed_out
    assert leader.sent(ApiVersionsRequest) == []
    leader.advance(leader.config.request_timeout_ms)  # what was sent to it as a voter is still under way
    waiting = leader.begin_add(3)
    leader.commit()
    assert leader.answer_of(waiting).error is ErrorCode.none
    assert leader.node.voters == VoterSet.of(voter_of(1), voter_of(2), voter_of(3))
