"""The role that a replica starts with, after QuorumStateTest's initialisation cases (rule R4.2)."""

from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.messages import FetchRequest
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from tests.support.raft.context import LOCAL, RaftContext, batch, key_of
from tests.support.raft.dynamic import DynamicContext
from tools.render_roles import FIRST_ROLES

OWN = key_of(LOCAL)


@pytest.mark.parametrize(
    ("state", "standing"),
    [
        (None, ("unattached", 0, -1)),
        (QuorumState(leader_epoch=5), ("unattached", 5, -1)),
        (QuorumState(leader_epoch=5, voted=key_of(2)), ("unattached", 5, -1)),
        (QuorumState(leader_epoch=5, voted=OWN), ("unattached", 5, -1)),
        (QuorumState(leader_epoch=5, leader_id=2), ("follower", 5, 2)),
        (QuorumState(leader_epoch=5, leader_id=2, voted=key_of(3)), ("follower", 5, 2)),
        (QuorumState(leader_epoch=5, leader_id=LOCAL, voted=OWN), ("resigned", 5, LOCAL)),
    ],
    ids=["first start", "epoch", "voted", "stood", "followed", "voted and followed", "led"],
)
def test_what_was_written_down_says_how_a_voter_starts(
    state: QuorumState | None, standing: tuple[str, int, int]
) -> None:
    """testInitializePrimordialEpoch, testInitializeAsUnattached, testInitializeAsVoted, testInitializeAsFollower,
    testInitializeAsResignedLeader, testInitializeAsResignedCandidate (which stands again here, in a new epoch)"""
    context = RaftContext(state=state)
    assert context.standing == standing
    assert context.state == (state or QuorumState()), "and it is written down again, whole"
    assert context.node.role in FIRST_ROLES


def test_a_leader_that_is_no_voter_known_here_cannot_be_fetched_from_and_its_name_is_kept() -> None:
    """testInitializeAsUnattachedWhenMissingEndpoints"""
    context = DynamicContext(state=QuorumState(leader_epoch=5, leader_id=9))
    assert context.standing == ("unattached", 5, 9)


def test_a_log_of_a_newer_epoch_outdates_what_was_written_down() -> None:
    context = RaftContext(log=[batch(0, 6)], state=QuorumState(leader_epoch=5, leader_id=2, voted=key_of(3)))
    assert context.standing == ("unattached", 6, -1)
    assert context.state == QuorumState(leader_epoch=6)


def test_one_that_led_and_is_no_voter_any_more_does_not_name_itself() -> None:
    context = DynamicContext(voters=(2, 3), state=QuorumState(leader_epoch=5, leader_id=LOCAL))
    assert context.standing == ("unattached", 5, -1)


@pytest.mark.parametrize(
    ("voted", "directory", "granted"),
    [(0, 2, True), (0, 99, True), (2, 2, True), (2, 99, False), (2, 0, False)],
)
def test_a_stored_vote_without_a_directory_is_for_any_with_that_id(
    voted: int, directory: int, granted: bool
) -> None:
    """UnattachedStateWithVoteTest.testCanGrantVoteWithoutDirectoryId and ...WithDirectoryId"""
    context = RaftContext(state=QuorumState(leader_epoch=5, voted=ReplicaKey(2, UUID(int=voted))))
    candidate = ReplicaKey(2, UUID(int=directory))
    assert context.receive(replace(context.vote_request(2, 5), candidate=candidate)).vote_granted is granted
    other = ReplicaKey(3, UUID(int=directory))
    assert not context.receive(replace(context.vote_request(3, 5), candidate=other)).vote_granted


def test_at_most_one_fetch_is_under_way_over_all_nodes() -> None:
    """RequestManagerTest.testAnyInflightRequestWithAnyRequest: two could bring the same records twice."""
    context = RaftContext(voters=(2, 3, 4, 5))
    assert len(context.sent(FetchRequest)) == 1
    for _ in range(10):
        context.advance(context.config.request_timeout_ms // 11)
        assert context.sent(FetchRequest) == []
    context.advance(context.config.request_timeout_ms)
    assert len(context.sent(FetchRequest)) == 1
