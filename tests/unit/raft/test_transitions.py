"""Every change of role, legal and illegal, after Kafka's QuorumStateTest (rule R4.1)."""

from collections.abc import Callable
from itertools import product

import pytest

from kquorum.raft.messages import BeginQuorumEpochRequest
from kquorum.raft.ready import QuorumState
from kquorum.raft.roles import IllegalTransitionError, check_transition
from kquorum.raft.voters import ReplicaKey
from tests.support.raft.context import CLUSTER_ID, LOCAL, RaftContext, key_of

ROLES = ("unattached", "prospective", "candidate", "leader", "follower", "resigned")
EPOCH = 5

# Written down here once more, from KIP-595, KIP-853 and KIP-996 and not from the code.
# What Kafka makes a move and we do not: a follower that hears of more endpoints of its leader (it stays what it is).
SAME_EPOCH = {
    ("unattached", "prospective"),  # the election timer of a voter
    ("unattached", "follower"),  # heard of the leader
    ("prospective", "unattached"),  # not elected, and no leader known
    ("prospective", "follower"),  # not elected, but there is a leader
    ("candidate", "prospective"),  # not elected
    ("candidate", "follower"),  # another candidate was elected
    ("candidate", "leader"),
    ("follower", "prospective"),  # the fetch timer of a voter
    ("follower", "unattached"),  # the fetch timer of an observer
    ("leader", "resigned"),
}
HIGHER_EPOCH = {(source, target) for source in ROLES for target in ("unattached", "follower")} | {
    ("prospective", "candidate")
}


def is_allowed(source: str, target: str, difference: int) -> bool:
    allowed = {-1: set(), 0: SAME_EPOCH, 1: HIGHER_EPOCH}[difference]
    return (source, target) in allowed


@pytest.mark.parametrize("difference", [-1, 0, 1])
@pytest.mark.parametrize("target", ROLES)
@pytest.mark.parametrize("source", ROLES)
def test_the_table_allows_what_the_protocol_allows_and_nothing_else(
    source: str, target: str, difference: int
) -> None:
    def move() -> None:
        check_transition(source, target, source_epoch=EPOCH, target_epoch=EPOCH + difference)

    if is_allowed(source, target, difference):
        move()
    else:
        with pytest.raises(IllegalTransitionError, match=source):
            move()


# The same of a replica in each role


def in_role(role: str) -> RaftContext:
    """A voter of three in this role, in epoch 5."""
    if role == "resigned":
        context = RaftContext(state=QuorumState(leader_epoch=EPOCH, leader_id=LOCAL))
    elif role == "follower":
        context = RaftContext(state=QuorumState(leader_epoch=EPOCH, leader_id=2))
    elif role in ("candidate", "leader"):
        context = RaftContext(state=QuorumState(leader_epoch=EPOCH - 1))
        context.become_candidate() if role == "candidate" else context.become_leader()
    else:
        context = RaftContext(state=QuorumState(leader_epoch=EPOCH))
        if role == "prospective":
            context.advance(context.config.election_timeout_ms)
    assert (context.node.role, context.node.leader_epoch) == (role, EPOCH)
    return context


def move_of(context: RaftContext, target: str, epoch: int) -> Callable[[], None]:
    """The call that would make the change; a leader to follow is the one already known, or node 3."""
    replica, now_ms = context.node.replica, context.now_ms
    leader_id = replica.leader_id if replica.leader_id not in (-1, LOCAL) and epoch == EPOCH else 3
    moves: dict[str, Callable[[], None]] = {
        "unattached": lambda: replica.become_unattached(epoch, now_ms, "test"),
        "prospective": lambda: replica.become_prospective(now_ms, "test"),
        "candidate": lambda: replica.become_candidate(now_ms, "test"),
        "leader": lambda: replica.become_leader(now_ms),
        "follower": lambda: replica.become_follower(epoch, leader_id, now_ms, "test"),
        "resigned": lambda: replica.become_resigned(now_ms, "test", ()),
    }
    return moves[target]


# Roles that carry no epoch of their own into the move: a nominee, leader or resigned stays, a candidate adds one.
EPOCHS_OF = {"unattached": (-1, 0, 1), "follower": (-1, 0, 1), "candidate": (1,)}


@pytest.mark.parametrize(
    ("source", "target", "difference"),
    [
        (source, target, difference)
        for source, target in product(ROLES, ROLES)
        for difference in EPOCHS_OF.get(target, (0,))
    ],
)
def test_a_replica_makes_legal_moves_and_raises_at_the_others(
    source: str, target: str, difference: int
) -> None:
    context = in_role(source)
    before = context.node.replica.role
    move = move_of(context, target, EPOCH + difference)
    # Only a candidate with a majority becomes leader: see test_candidate_state.py.
    if is_allowed(source, target, difference) and target != "leader":
        move()
        assert (context.node.role, context.node.leader_epoch) == (target, EPOCH + difference)
        return
    with pytest.raises((AssertionError, IllegalTransitionError)):
        move()
    assert context.node.replica.role is before
    assert context.node.leader_epoch == EPOCH


@pytest.mark.parametrize("role", ROLES)
def test_no_role_follows_itself(role: str) -> None:
    context = in_role(role)
    for epoch in (EPOCH, EPOCH + 1):
        with pytest.raises(AssertionError, match="itself"):
            context.node.replica.become_follower(epoch, LOCAL, context.now_ms, "test")
    assert context.node.role == role


@pytest.mark.parametrize("role", ["leader", "follower", "resigned"])
def test_no_other_leader_of_an_epoch_whose_leader_is_known_is_followed(role: str) -> None:
    context = in_role(role)
    with pytest.raises(AssertionError):
        context.node.replica.become_follower(EPOCH, 3, context.now_ms, "test")
    assert context.node.role == role


@pytest.mark.parametrize("role", ["candidate", "leader"])
def test_no_second_vote_is_recorded_in_an_epoch(role: str) -> None:
    """The vote for itself is one."""
    context = in_role(role)
    with pytest.raises(AssertionError):
        context.node.replica.record_vote(key_of(2), context.now_ms)
    assert context.state is not None
    assert context.state.voted == context.node.replica.key


@pytest.mark.parametrize("role", ["unattached", "follower"])
def test_an_observer_neither_stands_nor_leads(role: str) -> None:
    state = QuorumState(leader_epoch=EPOCH, leader_id=2 if role == "follower" else -1)
    context = RaftContext(voters=(2, 3), state=state)
    replica = context.node.replica
    assert context.node.role == role
    for move in (
        lambda: replica.become_prospective(context.now_ms, "test"),
        lambda: replica.become_candidate(context.now_ms, "test"),
        lambda: replica.become_leader(context.now_ms),
        lambda: replica.become_resigned(context.now_ms, "test", ()),
    ):
        with pytest.raises((AssertionError, IllegalTransitionError)):
            move()
    assert context.node.role == role


# What is kept over a change


def test_the_high_watermark_is_kept_in_every_role_after_it_was_known() -> None:
    """QuorumStateTest.testHighWatermarkRetained: committed records stay readable during elections."""
    context = RaftContext()
    epoch = context.become_leader()
    context.receive(context.fetch(2, 1, epoch))
    assert context.node.high_watermark == 1
    replica = context.node.replica
    seen = {"leader"}
    replica.become_resigned(context.now_ms, "test", ())
    for move in (
        lambda: replica.become_unattached(epoch + 1, context.now_ms, "test"),
        lambda: replica.become_prospective(context.now_ms, "test"),
        lambda: replica.become_candidate(context.now_ms, "test"),
        lambda: replica.become_follower(replica.epoch, 2, context.now_ms, "test"),
    ):
        move()
        seen.add(context.node.role)
        assert context.node.high_watermark == 1
    assert seen == set(ROLES) - {"resigned"}


def test_a_vote_is_kept_for_its_epoch_and_no_longer() -> None:
    context = RaftContext()
    context.receive(context.vote_request(2, epoch=EPOCH))
    context.begin(3, EPOCH)
    assert context.state == QuorumState(leader_epoch=EPOCH, leader_id=3, voted=key_of(2))
    context.begin(2, EPOCH + 1)
    assert context.state == QuorumState(leader_epoch=EPOCH + 1, leader_id=2)


def test_a_vote_may_be_followed_by_another_ones_leadership() -> None:
    """QuorumStateTest.testUnattachedVotedToFollowerSameEpoch."""
    context = RaftContext(state=QuorumState(leader_epoch=EPOCH, voted=ReplicaKey(2)))
    context.receive(BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=3, leader_epoch=EPOCH))
    assert context.standing == ("follower", EPOCH, 3)


def test_a_voted_replica_stands_when_its_time_has_come_and_votes_again_in_its_own_epoch() -> None:
    """QuorumStateTest.testUnattachedVotedToCandidate."""
    context = RaftContext(state=QuorumState(leader_epoch=EPOCH, voted=ReplicaKey(2)))
    context.become_candidate()
    assert context.state == QuorumState(leader_epoch=EPOCH + 1, voted=context.node.replica.key)
