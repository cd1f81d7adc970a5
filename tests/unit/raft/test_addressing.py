"""Requests of another cluster, and requests meant for another replica (rules R5.3, R6.1)."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    Request,
    VoteRequest,
)
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import CLUSTER_ID, RaftContext, key_of

EPOCH = 3
OTHER_REPLICAS = [
    pytest.param(ReplicaKey(10, UUID(int=10)), id="id"),
    pytest.param(ReplicaKey(1, UUID(int=99)), id="directory"),
]


def vote(context: RaftContext) -> VoteRequest:
    return replace(context.vote_request(2, context.node.leader_epoch), last_offset_epoch=0)


def pre_vote(context: RaftContext) -> VoteRequest:
    return context.vote_request(2, context.node.leader_epoch, pre_vote=True)


def fetch(context: RaftContext) -> FetchRequest:
    return context.fetch(2, offset=0, last_epoch=0)


def begin(context: RaftContext) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=context.node.leader_epoch + 1, voter=key_of(1)
    )


def end(context: RaftContext) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=context.node.leader_epoch + 1
    )


REQUESTS = [vote, pre_vote, fetch, begin, end]


@pytest.mark.parametrize("request_of", REQUESTS)
@pytest.mark.parametrize("cluster_id", ["", "invalid-uuid"])
def test_a_request_of_another_cluster_is_refused_and_changes_nothing(
    request_of: Callable[[RaftContext], Request], cluster_id: str
) -> None:
    context = RaftContext()
    epoch = context.become_leader()
    response = context.receive(replace(request_of(context), cluster_id=cluster_id))  # type: ignore[call-arg]
    assert (response.error, response.is_top_level) == (ErrorCode.inconsistent_cluster_id, True)
    assert context.standing == ("leader", epoch, 1)
    assert context.node.replica.role.progress == {}


@pytest.mark.parametrize("request_of", REQUESTS)
@pytest.mark.parametrize("cluster_id", [CLUSTER_ID, None])
def test_a_request_of_this_cluster_or_of_an_unnamed_one_is_accepted(
    request_of: Callable[[RaftContext], Request], cluster_id: str | None
) -> None:
    context = RaftContext()
    context.become_leader()
    response = context.receive(replace(request_of(context), cluster_id=cluster_id))  # type: ignore[call-arg]
    assert (response.error, response.is_top_level) == (ErrorCode.none, False)


@pytest.mark.parametrize("voter", OTHER_REPLICAS)
def test_a_vote_asked_of_another_replica_is_refused_but_its_epoch_counts(voter: ReplicaKey) -> None:
    context = RaftContext()
    response = context.ask_for_vote(2, EPOCH, voter=voter)
    assert (response.error, response.vote_granted) == (ErrorCode.invalid_voter_key, False)
    assert response.leader_epoch == EPOCH
    assert context.state == QuorumState(leader_epoch=EPOCH)


@pytest.mark.parametrize("voter", OTHER_REPLICAS)
def test_an_announcement_to_another_replica_is_refused_but_its_leader_is_followed(voter: ReplicaKey) -> None:
    context = RaftContext()
    response = context.begin(2, EPOCH, voter=voter)
    assert (response.error, response.leader_id) == (ErrorCode.invalid_voter_key, 2)
    assert context.standing == ("follower", EPOCH, 2)
    assert context.begin(2, EPOCH, voter=key_of(1)).error is ErrorCode.none


@pytest.mark.parametrize(
    "voter", [ReplicaKey(-1), ReplicaKey(1)], ids=["no voter named", "no directory named"]
)
def test_what_is_not_named_is_not_compared(voter: ReplicaKey) -> None:
    context = RaftContext()
    assert context.begin(2, EPOCH, voter=voter).error is ErrorCode.none
    assert context.ask_for_vote(3, EPOCH + 1, voter=voter).vote_granted
