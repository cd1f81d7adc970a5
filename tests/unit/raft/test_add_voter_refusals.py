"""When AddRaftVoter is refused, after Kafka's KafkaRaftClientReconfigTest (KIP-853; rule R11)."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.inputs import FailureReason, LogStartAdvanced, ShutdownRequested, SnapshotWritten
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndQuorumEpochRequest,
)
from kquorum.raft.recovery import FARTHEST_OFFSET
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange, VoterSet
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import LOCAL, RaftContext, key_of
from tests.support.raft.dynamic import (
    BOTH,
    DynamicContext,
    endpoints_of,
    first_batch,
    set_of,
    voter_of,
)

NEW = voter_of(4)


@pytest.fixture
def leader() -> DynamicContext:
    context = DynamicContext()
    context.lead()
    return context


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
        leader.catch_up(4)
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


def test_nothing_changes_before_that_even_if_the_voters_were_committed_in_an_epoch_before() -> None:
    """Ongaro 2015: its predecessor may have left a change that this leader knows nothing of."""
    context = DynamicContext(log=[first_batch(1, set_of(1, 2, 3))])
    fetch = context.follow(2, 1)
    context.answer(fetch, context.fetched(high_watermark=3))
    assert context.node.replica.voter_history.voters_offset < context.node.high_watermark == 3
    context.requests.clear()
    context.lead(committed=False)
    context.catch_up(4)
    assert context.add(NEW).error is ErrorCode.request_timed_out
    assert context.remove(key_of(3)).error is ErrorCode.request_timed_out
    moved = replace(voter_of(2), endpoints=endpoints_of(2, 1))
    assert context.update(moved).error is ErrorCode.request_timed_out
    assert context.node.voters == set_of(1, 2, 3)
    context.commit()
    assert context.update(moved).error is ErrorCode.none


def test_nothing_changes_while_the_last_voters_are_not_committed(leader: DynamicContext) -> None:
    """Also when no caller waits for them any more."""
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
    assert leader.read_answer(waiting) is None
    leader.advance(1)
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3, 4)
    leader.commit()
    assert leader.node.high_watermark == leader.log_end_offset


def test_a_node_that_does_not_answer_what_it_supports_is_not_added(leader: DynamicContext) -> None:
    leader.catch_up(4)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.advance(leader.config.request_timeout_ms)
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out
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
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3)


def test_an_answer_of_another_node_is_not_the_new_nodes(leader: DynamicContext) -> None:
    leader.catch_up(4)
    leader.add(NEW)
    (outbound,) = leader.sent(ApiVersionsRequest)
    leader.answer(replace(outbound, destination_id=3), ApiVersionsResponse(kraft_versions=BOTH))
    assert leader.voter_ids == (1, 2, 3)


def test_a_late_answer_of_the_node_before_is_not_the_new_nodes(leader: DynamicContext) -> None:
    leader.catch_up(5)
    leader.add(voter_of(5))
    (late,) = leader.sent(ApiVersionsRequest)
    leader.advance(leader.config.request_timeout_ms)
    leader.catch_up(4)
    assert leader.add(NEW) is None
    waiting = leader.last_request_id
    leader.answer(late, ApiVersionsResponse(kraft_versions=BOTH))
    leader.catch_up(4)
    assert (leader.read_answer(waiting), leader.voter_ids) == (None, (1, 2, 3))
    leader.say_versions()
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3, 4)


@pytest.mark.parametrize("versions", [None, VersionRange(0, 0), VersionRange(2, 3)])
def test_a_node_that_does_not_know_the_finalised_version_is_not_added(
    leader: DynamicContext, versions: VersionRange | None
) -> None:
    """testAddVoterInvalidFeatureVersion"""
    leader.catch_up(4)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions(versions)
    assert leader.read_answer(waiting).error is ErrorCode.invalid_request
    assert leader.voter_ids == (1, 2, 3)


def test_a_node_that_never_fetched_is_not_added(leader: DynamicContext) -> None:
    """testAddVoterWithLaggingNewVoter"""
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out


def test_a_node_that_never_caught_up_or_did_so_long_ago_is_not_added(leader: DynamicContext) -> None:
    leader.catch_up(4, 0)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out
    leader.catch_up(4)
    for _ in range(3_600):
        leader.advance(1000)
        leader.commit()
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out
    assert leader.voter_ids == (1, 2, 3)


def is_asked_for(leader: DynamicContext, node_id: int) -> bool:
    """Whether the leader, for all that it remembers of this node, would have it fetch once more and then add it."""
    leader.add(voter_of(node_id))
    waiting = leader.last_request_id
    leader.say_versions()
    answer = leader.read_answer(waiting)
    assert answer is None or answer.error is ErrorCode.request_timed_out
    return answer is None


def lagging_log(leader: DynamicContext) -> None:
    """Observer 4 reaches the end of the log, which grows on."""
    leader.catch_up(4)
    leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"a", b"b"])
    leader.turn()
    leader.commit()


def test_a_node_that_lost_part_of_its_log_has_to_catch_up_once_more(leader: DynamicContext) -> None:
    """A voter with a damaged log neither stands nor votes as others do: the leader could not be replaced."""
    lagging_log(leader)
    leader.catch_up(4)
    leader.catch_up(4, 1)
    assert not is_asked_for(leader, 4)
    leader.catch_up(4)
    assert is_asked_for(leader, 4)


def test_a_node_that_only_lags_is_added(leader: DynamicContext) -> None:
    """As with Kafka, and as under load: it was at the end once, and never fell back."""
    lagging_log(leader)
    leader.catch_up(4, leader.log_end_offset - 2)
    assert is_asked_for(leader, 4)


@pytest.mark.parametrize("is_due", [False, True])
def test_a_node_that_asks_where_the_log_ends_has_to_catch_up_once_more(
    leader: DynamicContext, *, is_due: bool
) -> None:
    """It has lost records that the leader may not know of (`raft.recovery`). That it fetches from where it did
    before proves nothing, though the leader's log ended there then."""
    lagging_log(leader)
    before = leader.log_end_offset - 2
    asked = leader.fetch(4, FARTHEST_OFFSET, leader.node.leader_epoch)
    response = leader.receive(asked)
    assert response.diverging == OffsetAndEpoch(leader.log_end_offset, leader.node.leader_epoch)
    leader.catch_up(4, before)
    assert not is_asked_for(leader, 4)
    if is_due:
        # Under load it never is at the very end; it passes what was the end at its last Fetch.
        end_offset = leader.log_end_offset
        leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"c"])
        leader.turn()
        leader.commit()
        leader.catch_up(4, end_offset)
    else:
        leader.catch_up(4)
    assert is_asked_for(leader, 4)


def test_a_node_that_has_to_come_in_by_a_snapshot_has_to_catch_up_once_more(leader: DynamicContext) -> None:
    lagging_log(leader)
    end = OffsetAndEpoch(leader.log_end_offset, leader.node.leader_epoch)
    leader.feed(SnapshotWritten(end))
    leader.feed(LogStartAdvanced(end.offset))
    leader.catch_up(4, end.offset - 2)
    assert not is_asked_for(leader, 4)
    leader.catch_up(4)
    assert is_asked_for(leader, 4)


# What a node fetched before it was asked proves nothing: the process that was so far may be gone.


def asked(leader: DynamicContext, **fields: object) -> int:
    """Node 4 has caught up, and has said what it supports; the log grows on. Answers the request that waits."""
    leader.catch_up(4)
    assert leader.add(NEW, **fields) is None
    waiting = leader.last_request_id
    leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"a"])
    leader.turn()
    leader.commit()
    leader.say_versions()
    return waiting


def test_a_node_that_does_not_fetch_any_more_is_not_added(leader: DynamicContext) -> None:
    waiting = asked(leader)
    leader.advance(leader.config.request_timeout_ms - 1)
    assert (leader.read_answer(waiting), leader.voter_ids) == (None, (1, 2, 3))
    leader.advance(1)
    answer = leader.read_answer(waiting)
    assert answer.error is ErrorCode.request_timed_out
    assert "node 4 has not fetched up to the end of the log since it was asked" in answer.message
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3), "the request is over"


LESS: dict[str, Callable[[DynamicContext], object]] = {
    "its log ends earlier": lambda leader: leader.catch_up(4, 1),
    "it has what it had": lambda leader: leader.catch_up(4, leader.log_end_offset - 1),
    "it asks where the log ends": lambda leader: leader.receive(
        leader.fetch(4, FARTHEST_OFFSET, leader.node.leader_epoch)
    ),
    "it has another disk": lambda leader: leader.catch_up(voter_of(4, directory=99).key),
    "another node fetches": lambda leader: leader.catch_up(5),
    "it does not say who it is": lambda leader: leader.receive(
        replace(leader.fetch(4, leader.log_end_offset, leader.node.leader_epoch), replica=ReplicaKey(-1))
    ),
}


@pytest.mark.parametrize("adds_itself", [False, True])
@pytest.mark.parametrize("name", LESS)
def test_a_node_is_added_once_it_has_fetched_all_since_it_was_asked(
    leader: DynamicContext, name: str, *, adds_itself: bool
) -> None:
    """A spare that came back with a damaged log, and whose first Fetch had not arrived, became a voter for what it had
    before: with it as one of two voters the leader could not be replaced."""
    waiting = asked(leader, ack_when_committed=not adds_itself)
    LESS[name](leader)
    assert leader.voter_ids == (1, 2, 3)
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3, 4)
    leader.commit()
    assert leader.read_answer(waiting).error is ErrorCode.none


def test_a_node_under_load_is_added_for_what_was_the_end_at_its_last_fetch(leader: DynamicContext) -> None:
    """The log has always grown meanwhile: it need not be at the very end."""
    asked(leader)
    leader.catch_up(4, leader.log_end_offset - 1)
    end_offset = leader.log_end_offset
    leader.node.propose(leader.now_ms, leader.node.leader_epoch, [b"b"])
    leader.turn()
    leader.catch_up(4, end_offset)
    assert leader.voter_ids == (1, 2, 3, 4)


def test_a_repeated_request_needs_a_fetch_of_its_own(leader: DynamicContext) -> None:
    asked(leader)
    leader.advance(leader.config.request_timeout_ms)
    leader.commit()
    leader.catch_up(4)
    assert is_asked_for(leader, 4)
    assert leader.voter_ids == (1, 2, 3)
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3, 4)


@pytest.mark.parametrize("adds_itself", [False, True])
def test_a_new_leader_adds_nothing_that_its_predecessor_was_asked_for(
    leader: DynamicContext, *, adds_itself: bool
) -> None:
    waiting = asked(leader, ack_when_committed=not adds_itself)
    leader.node.resign(leader.now_ms, leader.node.leader_epoch)
    leader.turn()
    expected = ErrorCode.none if adds_itself else ErrorCode.not_leader_or_follower
    assert leader.read_answer(waiting).error is expected
    leader.advance(leader.config.election_timeout_ms)
    leader.lead()
    leader.catch_up(4)
    assert leader.voter_ids == (1, 2, 3)
    assert not leader.node.replica.role.change


def test_a_replica_that_added_itself_is_not_answered_again_when_it_is_late(leader: DynamicContext) -> None:
    waiting = asked(leader, ack_when_committed=False)
    leader.responses.clear()
    leader.advance(leader.config.request_timeout_ms)
    assert waiting not in leader.responses
    assert leader.node.replica.role.change is None


def test_one_of_the_same_id_on_another_disk_has_not_caught_up_for_it(leader: DynamicContext) -> None:
    leader.catch_up(voter_of(4, directory=99).key)
    leader.add(NEW)
    waiting = leader.last_request_id
    leader.say_versions()
    assert leader.read_answer(waiting).error is ErrorCode.request_timed_out


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
        leader.catch_up(4)
    leader.node.resign(leader.now_ms, leader.node.leader_epoch)
    leader.turn()
    assert leader.read_answer(waiting).error is ErrorCode.not_leader_or_follower
    ids = {outbound.destination_id for outbound in leader.sent(EndQuorumEpochRequest)}
    assert ids == ({2, 3, 4} if is_appended else {2, 3})


def test_a_leader_that_leaves_takes_no_more_changes(leader: DynamicContext) -> None:
    leader.feed(ShutdownRequested())
    assert leader.add(NEW).error in (ErrorCode.not_leader_or_follower, ErrorCode.broker_not_available)


def test_a_removed_replica_does_not_put_itself_back_but_an_operator_may(leader: DynamicContext) -> None:
    """KAFKA-19850"""
    leader.remove(key_of(3))
    leader.commit()
    leader.advance(leader.config.request_timeout_ms)  # what was sent to it as a voter has timed out
    leader.catch_up(3)
    refusal = leader.add(voter_of(3), ack_when_committed=False)
    assert refusal.error is ErrorCode.request_timed_out
    assert "removed" in refusal.message
    assert leader.sent(ApiVersionsRequest) == []
    waiting = leader.begin_add(3)
    leader.commit()
    assert leader.read_answer(waiting).error is ErrorCode.none
    assert leader.node.voters == VoterSet.of(voter_of(1), voter_of(2), voter_of(3))
