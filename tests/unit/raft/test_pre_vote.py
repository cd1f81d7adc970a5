"""Pre-votes, asked of a node in every role (KIP-996)."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.raft.inputs import ResignRequested
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of

OBSERVER = 9


def fetch_once(context: RaftContext) -> None:
    """Have the followed leader answer the Fetch that is out."""
    fetch = next(out for out in reversed(context.requests) if out.destination_id == context.node.leader_id)
    context.answer(fetch, context.fetched(high_watermark=0))


# Followers


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3)], ids=["voter", "observer"])
@pytest.mark.parametrize("has_fetched", [False, True])
def test_a_follower_grants_pre_votes_until_its_leader_has_answered(
    voters: tuple[int, ...], has_fetched: bool
) -> None:
    context = RaftContext(voters=voters, state=QuorumState(leader_epoch=2, leader_id=3))
    assert context.standing == ("follower", 2, 3)
    if has_fetched:
        fetch_once(context)
    for candidate in (2, OBSERVER):
        response = context.ask_for_pre_vote(candidate, epoch=2)
        assert (response.error, response.vote_granted) == (ErrorCode.none, not has_fetched)
        assert (response.leader_id, response.leader_epoch) == (3, 2)
    assert context.standing == ("follower", 2, 3)


def test_the_first_good_fetch_turns_the_followers_answer() -> None:
    context = RaftContext(voters=(2, 3), state=QuorumState(leader_epoch=2, leader_id=2))
    before = context.ask_for_pre_vote(3, epoch=2)
    fetch_once(context)
    after = context.ask_for_pre_vote(3, epoch=2)
    assert (before.vote_granted, before.leader_id) == (True, 2)
    assert (after.vote_granted, after.leader_id) == (False, 2)
    assert context.standing == ("follower", 2, 2)


@pytest.mark.parametrize("has_fetched", [False, True])
def test_a_pre_vote_of_a_newer_epoch_detaches_a_follower(has_fetched: bool) -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=3))
    if has_fetched:
        fetch_once(context)
    response = context.ask_for_pre_vote(2, epoch=3)
    assert (response.vote_granted, response.leader_id, response.leader_epoch) == (True, -1, 3)
    assert context.standing == ("unattached", 3, -1)
    assert context.state == QuorumState(leader_epoch=3)


def test_a_followers_earlier_vote_does_not_matter_to_pre_votes() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, voted=key_of(3)))
    assert context.begin(leader_id=3, epoch=2).error is ErrorCode.none
    assert context.ask_for_pre_vote(2, epoch=2).vote_granted
    fetch_once(context)
    assert not context.ask_for_pre_vote(2, epoch=2).vote_granted
    assert context.state == QuorumState(leader_epoch=2, leader_id=3, voted=key_of(3))


# Roles without a leader


def test_a_candidate_grants_pre_votes_and_stays_a_candidate() -> None:
    context = RaftContext()
    context.become_candidate()
    voted_for_itself = QuorumState(leader_epoch=1, voted=key_of(1))
    for rival in (2, OBSERVER):
        response = context.ask_for_pre_vote(rival, epoch=1)
        assert (response.vote_granted, response.leader_id) == (True, -1)
        assert (context.standing, context.state) == (("candidate", 1, -1), voted_for_itself)
    assert context.ask_for_pre_vote(2, epoch=2).vote_granted
    assert context.standing == ("unattached", 2, -1)


@pytest.mark.parametrize(
    ("state", "leader_id"),
    [
        (QuorumState(leader_epoch=2), -1),
        (QuorumState(leader_epoch=2, voted=key_of(3)), -1),
        (QuorumState(leader_epoch=2, leader_id=7), 7),
    ],
    ids=["neither vote nor leader", "voted", "knows a leader it cannot reach"],
)
@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3)], ids=["voter", "observer"])
def test_an_unattached_replica_grants_every_pre_vote_and_keeps_its_state(
    voters: tuple[int, ...], state: QuorumState, leader_id: int
) -> None:
    context = RaftContext(voters=voters, state=state)
    for candidate in (2, 2, 3, OBSERVER):
        response = context.ask_for_pre_vote(candidate, epoch=2)
        assert (response.error, response.vote_granted) == (ErrorCode.none, True)
        assert (response.leader_id, response.leader_epoch) == (leader_id, 2)
    assert context.standing == ("unattached", 2, leader_id)
    assert context.state == state


def test_a_resigned_leader_grants_pre_votes_and_is_detached_by_a_newer_epoch() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    context.feed(ResignRequested(epoch))
    response = context.ask_for_pre_vote(2, epoch)
    assert (response.vote_granted, response.leader_id) == (True, 1)
    assert context.standing == ("resigned", epoch, 1)
    response = context.ask_for_pre_vote(2, epoch + 1)
    assert (response.vote_granted, response.leader_id) == (True, -1)
    assert context.standing == ("unattached", epoch + 1, -1)


# Leaders


def test_a_leader_refuses_pre_votes_also_of_observers() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    for candidate in (2, OBSERVER):
        response = context.ask_for_pre_vote(candidate, epoch)
        assert (response.error, response.vote_granted, response.leader_id) == (ErrorCode.none, False, 1)
    assert context.standing == ("leader", epoch, 1)


def test_a_leader_fences_pre_votes_of_an_older_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=4))
    epoch = context.become_leader()
    response = context.ask_for_pre_vote(OBSERVER, epoch - 1, last_offset_epoch=0, last_offset=0)
    assert (response.error, response.vote_granted) == (ErrorCode.fenced_leader_epoch, False)
    assert (response.leader_id, response.leader_epoch) == (1, epoch)


# What is refused


def test_a_pre_vote_of_an_older_epoch_is_fenced_and_changes_nothing() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2))
    response = context.ask_for_pre_vote(2, epoch=1)
    assert (response.error, response.leader_epoch) == (ErrorCode.fenced_leader_epoch, 2)
    assert context.state == QuorumState(leader_epoch=2)


@pytest.mark.parametrize(
    "voter", [ReplicaKey(10, UUID(int=10)), ReplicaKey(1, UUID(int=99))], ids=["id", "directory"]
)
def test_a_pre_vote_asked_of_another_replica_is_refused(voter: ReplicaKey) -> None:
    context = RaftContext()
    epoch = context.become_leader()
    response = context.ask_for_pre_vote(2, epoch, voter=voter, last_offset=100)
    assert (response.error, response.vote_granted) == (ErrorCode.invalid_voter_key, False)
    assert (response.leader_id, response.leader_epoch) == (1, epoch)


@pytest.mark.parametrize(
    "change",
    [{"last_offset": -5}, {"last_offset_epoch": -1}, {"last_offset_epoch": 6}],
    ids=["offset", "epoch", "epoch above the replica's own"],
)
def test_a_malformed_pre_vote_changes_nothing(change: dict[str, Any]) -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5, leader_id=2))
    response = context.ask_for_pre_vote(2, epoch=5, **change)
    assert (response.error, response.leader_id, response.leader_epoch) == (ErrorCode.invalid_request, 2, 5)
    assert context.standing == ("follower", 5, 2)


def test_a_pre_vote_may_name_its_own_epoch_as_the_last_one_where_a_vote_may_not() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5))
    assert context.ask_for_pre_vote(2, epoch=5, last_offset_epoch=5).vote_granted
    vote = context.ask_for_vote(2, epoch=5, last_offset_epoch=5)
    assert vote.error is ErrorCode.invalid_request


def test_a_log_that_is_behind_gets_no_pre_vote() -> None:
    context = RaftContext(log=[batch(0, 2, count=3)], state=QuorumState(leader_epoch=2))
    shorter = context.ask_for_pre_vote(2, epoch=2, last_offset=2)
    older = context.ask_for_pre_vote(2, epoch=2, last_offset=100, last_offset_epoch=1)
    equal = context.ask_for_pre_vote(2, epoch=2)
    assert [shorter.vote_granted, older.vote_granted, equal.vote_granted] == [False, False, True]
    fenced = context.ask_for_pre_vote(2, epoch=1, last_offset=0, last_offset_epoch=1)
    assert fenced.error is ErrorCode.fenced_leader_epoch
    assert context.standing == ("unattached", 2, -1)
