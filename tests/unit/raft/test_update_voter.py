"""UpdateRaftVoter, at the leader and by the voter that moved (KIP-853; rule R11)."""

from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.inputs import FailureReason
from kquorum.raft.messages import ChangeVotersResponse, FetchRequest, FetchResponse, UpdateRaftVoterRequest
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange, VotersAt, quorum_records
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import LOCAL, RaftContext, key_of
from tests.support.raft.dynamic import LISTENER, DynamicContext, endpoints_of, voter_of

MOVED = replace(voter_of(3), endpoints=endpoints_of(3, 19093))


@pytest.fixture
def leader() -> DynamicContext:
    context = DynamicContext()
    context.lead()
    return context


# At the leader


def test_a_voter_that_moved_is_written_down_and_answered_at_once(leader: DynamicContext) -> None:
    """testUpdateVoter"""
    before = leader.node.high_watermark
    response = leader.update(MOVED)
    assert response.error is ErrorCode.none
    assert (leader.node.high_watermark, leader.log_end_offset) == (before, before + 1)
    assert leader.node.voters.voters[3] == MOVED
    assert list(quorum_records(leader.log[-1])) == [VotersAt(before, leader.node.voters)]
    assert leader.node.endpoint_of(3) == MOVED.endpoints[0]


def test_a_voter_that_did_not_move_costs_no_record(leader: DynamicContext) -> None:
    end = leader.log_end_offset
    assert leader.update(voter_of(3)).error is ErrorCode.none
    assert leader.log_end_offset == end


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_another_clusters_request_is_refused(leader: DynamicContext, cluster_id: str) -> None:
    """testUpdateVoterInvalidClusterId: the answer says who leads."""
    response = leader.update(MOVED, cluster_id=cluster_id)
    assert response.error is ErrorCode.inconsistent_cluster_id
    assert (response.leader_id, response.leader_epoch) == (LOCAL, leader.node.leader_epoch)
    assert leader.node.voters.voters[3] == voter_of(3)


@pytest.mark.parametrize(
    ("difference", "error"), [(-1, ErrorCode.fenced_leader_epoch), (1, ErrorCode.unknown_leader_epoch)]
)
def test_an_update_of_another_epoch_is_refused(
    leader: DynamicContext, difference: int, error: ErrorCode
) -> None:
    """testUpdateVoterOldEpoch, testUpdateVoterNewEpoch"""
    epoch = leader.node.leader_epoch
    response = leader.update(MOVED, current_leader_epoch=epoch + difference)
    assert (response.error, response.leader_id, response.leader_epoch) == (error, LOCAL, epoch)
    assert leader.node.leader_epoch == epoch


def test_only_the_leader_updates() -> None:
    """testUpdateVoterToNotLeader: there is no leader, and the answer says so."""
    context = DynamicContext()
    response = context.update(MOVED)
    assert (response.error, response.leader_id) == (ErrorCode.not_leader_or_follower, -1)
    context.follow(2, 4)
    response = context.update(MOVED)
    assert (response.error, response.leader_id) == (ErrorCode.not_leader_or_follower, 2)
    assert response.leader_endpoints == endpoints_of(2)


def test_nothing_is_updated_before_a_record_of_the_epoch_is_committed() -> None:
    """testUpdateVoterWithoutFencedPreviousLeaders"""
    context = DynamicContext()
    context.lead(committed=False)
    assert context.update(MOVED).error is ErrorCode.request_timed_out


@pytest.mark.parametrize("key", [ReplicaKey(3, UUID(int=99)), key_of(9)], ids=["other disk", "unknown id"])
def test_only_a_voter_with_exactly_this_key_is_updated(leader: DynamicContext, key: ReplicaKey) -> None:
    """testUpdateVoterWithNoneVoter, testUpdateVoterWithNoneVoterId"""
    assert leader.update(MOVED, voter=key).error is ErrorCode.voter_not_found


@pytest.mark.parametrize(
    "change",
    [
        {"endpoints": (Endpoint("ANOTHER", "node3", 9093),)},
        {"endpoints": ()},
        {"voter": ReplicaKey(3)},
        {"kraft_versions": VersionRange(-1, 1)},
        {"kraft_versions": VersionRange(1, 0)},
        {"kraft_versions": VersionRange(0, 0)},
        {"kraft_versions": VersionRange(2, 3)},
    ],
)
def test_a_malformed_or_unfit_update_is_refused(leader: DynamicContext, change: dict[str, object]) -> None:
    assert leader.update(MOVED, **change).error is ErrorCode.invalid_request
    assert leader.node.voters.voters[3] == voter_of(3)


def test_an_update_waits_for_a_change_that_is_under_way(leader: DynamicContext) -> None:
    """testUpdateVoterWithPendingAddVoter"""
    leader.begin_add(4)
    assert leader.update(MOVED).error is ErrorCode.request_timed_out


def test_a_static_voters_update_is_kept_in_memory() -> None:
    """testUpdateVoterWithKraftVersion0, as newer brokers do it: nothing is written, nothing changes."""
    context = RaftContext()
    epoch = context.become_leader()
    end = context.log_end_offset
    request = UpdateRaftVoterRequest(
        cluster_id=None, current_leader_epoch=epoch, voter=key_of(3), endpoints=endpoints_of(3)
    )
    assert context.receive(request).error is ErrorCode.none
    assert context.log_end_offset == end
    assert context.node.voters.voters[3].endpoints == ()
    unknown = replace(request, voter=key_of(9))
    assert context.receive(unknown).error is ErrorCode.voter_not_found


# By the voter itself


def test_a_voter_asks_when_its_fetch_is_answered_and_fetches_when_it_is() -> None:
    """testFollowerSendsUpdateVoter"""
    context = DynamicContext(endpoints=endpoints_of(LOCAL, 19093))
    fetch = context.follow(2, 1)
    context.advance(context.config.update_voter_period_ms - 1)
    assert context.sent(UpdateRaftVoterRequest) == []
    context.now_ms += 1
    context.answer(fetch, context.fetched())
    (outbound,) = context.requests
    request = outbound.request
    assert isinstance(request, UpdateRaftVoterRequest)
    assert outbound.destination_id == 2
    assert (request.voter, request.endpoints) == (context.node.replica.key, endpoints_of(LOCAL, 19093))
    assert (request.current_leader_epoch, request.kraft_versions) == (1, VersionRange(0, 1))
    context.requests.clear()
    context.answer(outbound, ChangeVotersResponse(leader_id=2, leader_epoch=1))
    (outbound,) = context.requests
    assert isinstance(outbound.request, FetchRequest)
    assert outbound.destination_id == 2


def test_a_voter_whose_entry_is_true_says_nothing_and_does_not_spin() -> None:
    """testFollowerSendsUpdateVoterWhenDifferent"""
    context = DynamicContext()
    fetch = context.follow(2, 1)
    turns = 0
    for _ in range(4):
        context.now_ms += context.config.update_voter_period_ms // 2
        ready = context.answer(fetch, context.fetched())
        (fetch,) = context.sent(FetchRequest)
        assert ready.deadline_ms > context.now_ms + 100
        turns += 1
    assert turns == 4


def test_an_answer_that_names_a_newer_leader_is_followed() -> None:
    """testUpdateVoterResponseCausesEpochChange"""
    context = DynamicContext(endpoints=endpoints_of(LOCAL, 19093))
    fetch = context.follow(2, 1)
    context.now_ms += context.config.update_voter_period_ms - 1
    context.answer(fetch, context.fetched())
    fetch = context.sent(FetchRequest)[-1]
    context.now_ms += 1
    context.answer(fetch, context.fetched())
    (outbound,) = context.sent(UpdateRaftVoterRequest)
    response = ChangeVotersResponse(
        error=ErrorCode.not_leader_or_follower, leader_id=3, leader_epoch=2, leader_endpoints=endpoints_of(3)
    )
    context.answer(outbound, response)
    assert context.standing == ("follower", 2, 3)
    (outbound,) = context.requests
    assert (outbound.destination_id, outbound.request.current_leader_epoch) == (3, 2)


@pytest.mark.parametrize("reason", list(FailureReason))
def test_a_failed_update_is_not_repeated_before_another_period(reason: FailureReason) -> None:
    """The fetching goes on: a leader that does not know the request would stop it for good."""
    context = DynamicContext(endpoints=endpoints_of(LOCAL, 19093), fetch_timeout_ms=5000)
    fetch = context.follow(2, 1)
    context.now_ms += context.config.update_voter_period_ms - 1
    context.answer(fetch, context.fetched())
    (fetch,) = context.sent(FetchRequest)
    context.now_ms += 1
    context.answer(fetch, context.fetched())
    (outbound,) = context.sent(UpdateRaftVoterRequest)
    context.fail(outbound, reason)
    context.advance(context.config.retry_backoff_ms)
    assert [type(outbound.request) for outbound in context.requests] == [FetchRequest]


def test_a_static_voter_reports_itself_once_to_each_leader() -> None:
    """Not before the leader has answered a Fetch: on a slow link it would never come to fetch at all."""
    context = RaftContext(endpoints=endpoints_of(LOCAL))
    fetch = context.follow(2, 1)
    assert context.sent(UpdateRaftVoterRequest) == []
    context.answer(fetch, context.fetched())
    (outbound,) = context.sent(UpdateRaftVoterRequest)
    context.answer(outbound, ChangeVotersResponse(leader_id=2, leader_epoch=1))
    for _ in range(3):
        (fetch,) = context.sent(FetchRequest)
        context.now_ms += context.config.fetch_timeout_ms - 1
        context.answer(fetch, context.fetched())
        assert [type(outbound.request) for outbound in context.requests] == [FetchRequest]
    context.answer(context.follow(3, 2), context.fetched())
    (outbound,) = context.sent(UpdateRaftVoterRequest)
    assert outbound.destination_id == 3


def test_a_leader_that_accepts_an_update_is_recorded() -> None:
    context = DynamicContext(endpoints=endpoints_of(LOCAL, 19093))
    context.answer(context.follow(2, 1), context.fetched())
    context.now_ms += context.config.update_voter_period_ms - 1
    context.answer(context.sent(FetchRequest)[-1], context.fetched())
    context.now_ms += 1
    context.answer(context.sent(FetchRequest)[-1], context.fetched())
    (outbound,) = context.sent(UpdateRaftVoterRequest)
    context.now_ms += context.config.fetch_timeout_ms - 1
    context.answer(outbound, ChangeVotersResponse(leader_id=2, leader_epoch=1))
    context.advance(context.config.fetch_timeout_ms - 1)
    assert context.node.role == "follower"


def test_a_leader_that_moved_is_found_by_what_others_say_of_it() -> None:
    """The voter set has its old address, where no node answers; the endpoint comes with another node's response."""
    context = DynamicContext()
    context.fail(context.follow(2, 1))
    context.advance(context.config.retry_backoff_ms)
    (asked,) = context.sent(FetchRequest)
    assert asked.destination_id == 3
    moved = endpoints_of(2, 29093)
    answer = FetchResponse(
        error=ErrorCode.not_leader_or_follower, leader_id=2, leader_epoch=1, leader_endpoints=moved
    )
    context.answer(asked, answer)
    fetch = context.sent(FetchRequest)[-1]
    assert (fetch.destination_id, fetch.endpoint) == (2, moved[0])


def test_an_observer_has_no_entry_to_correct() -> None:
    context = DynamicContext(voters=(2, 3))
    fetch = context.follow(2, 1)
    for _ in range(3):
        context.now_ms += context.config.update_voter_period_ms
        context.answer(fetch, context.fetched())
        assert [type(outbound.request) for outbound in context.requests] == [FetchRequest]
        (fetch,) = context.sent(FetchRequest)


def test_the_first_listener_is_the_quorums() -> None:
    context = DynamicContext(endpoints=(*endpoints_of(LOCAL), Endpoint("ADMIN", "node1", 9999)))
    context.lead()
    moved = replace(voter_of(3), endpoints=(Endpoint("ADMIN", "node3", 9999),))
    assert context.update(moved).error is ErrorCode.invalid_request
    assert context.config.endpoints[0].listener == LISTENER
