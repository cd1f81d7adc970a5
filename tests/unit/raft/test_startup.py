"""How a replica starts, by what it had written down (rule R4.2)."""

from uuid import UUID

import pytest

from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse, FetchRequest, VoteRequest
from kquorum.raft.ready import LeaderAndEpoch, QuorumState
from kquorum.raft.voters import KRaftVersionAt, Voter, VotersAt, VoterSet
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of


@pytest.mark.parametrize(
    ("identity", "complaint"),
    [({"directory_id": UUID(int=0)}, "the directory id is zero"), ({"node_id": -1}, "node.id is -1")],
)
def test_a_replica_without_identity_is_refused(identity: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        RaftContext(**identity)  # type: ignore[arg-type]


# The vote and the leadership of a former life


@pytest.mark.parametrize(
    "state",
    [QuorumState(leader_epoch=2, leader_id=1), QuorumState(leader_epoch=2, voted=key_of(1))],
    ids=["led", "stood"],
)
def test_a_former_leader_or_candidate_votes_only_in_a_newer_epoch_after_a_restart(state: QuorumState) -> None:
    context = RaftContext(state=state)
    denied = context.ask_for_vote(2, epoch=2)
    assert (denied.error, denied.vote_granted, denied.leader_id) == (ErrorCode.none, False, state.leader_id)
    assert context.state == state
    granted = context.ask_for_vote(2, epoch=3)
    assert (granted.vote_granted, granted.leader_epoch) == (True, 3)
    assert context.standing == ("unattached", 3, -1)
    assert context.state == QuorumState(leader_epoch=3, voted=key_of(2))


def test_the_vote_is_on_disk_before_its_answer_leaves() -> None:
    context = RaftContext()
    context.node.step(context.now_ms, RequestReceived(7, context.vote_request(2, epoch=1)))
    ready = context.turn()
    assert ready.quorum_state == QuorumState(leader_epoch=1, voted=key_of(2))
    assert [out.request_id for out in ready.responses] == [7]


def test_a_restarted_leader_neither_leads_nor_is_silent_about_it() -> None:
    context = RaftContext(
        log=[batch(0, 2)], state=QuorumState(leader_epoch=2, leader_id=1), request_timeout_ms=700
    )
    assert context.standing == ("resigned", 2, 1)
    with pytest.raises(NotLeaderError):
        context.node.propose(context.now_ms, 2, [b"value"])
    ends = context.sent(EndQuorumEpochRequest)
    assert [(end.request.leader_epoch, end.request.preferred_candidates) for end in ends] == [(2, ())] * 2
    for end in ends:
        context.answer(end, EndQuorumEpochResponse(leader_id=1, leader_epoch=2))
    context.advance(context.config.election_timeout_ms - 1)
    assert context.standing == ("resigned", 2, 1)
    assert context.sent(EndQuorumEpochRequest) == []
    context.advance(1)
    assert context.standing == ("prospective", 3, -1)
    assert context.state == QuorumState(leader_epoch=3)
    pre_votes = context.sent(VoteRequest)
    assert [(vote.request.pre_vote, vote.request.replica_epoch) for vote in pre_votes] == [(True, 3)] * 2
    context.vote(pre_votes[0])
    assert context.state == QuorumState(leader_epoch=4, voted=key_of(1))


def test_a_restarted_sole_leader_takes_the_next_epoch_at_once() -> None:
    context = RaftContext(voters=(1,), log=[batch(0, 2)], state=QuorumState(leader_epoch=2, leader_id=1))
    assert context.standing == ("leader", 3, 1)
    (leader_change,) = context.log[1:]
    assert (leader_change.is_control, leader_change.leader_epoch, leader_change.base_offset) == (True, 3, 1)


# Followers and observers


@pytest.mark.parametrize(
    ("log", "offset", "last_epoch"),
    [([], 0, 0), ([batch(0, 1, count=3), batch(3, 4)], 4, 4)],
    ids=["empty log", "with a log"],
)
def test_a_follower_asks_for_what_follows_its_log(log: list, offset: int, last_epoch: int) -> None:  # type: ignore[type-arg]
    context = RaftContext(log=log, state=QuorumState(leader_epoch=5, leader_id=3))
    assert context.standing == ("follower", 5, 3)
    (fetch,) = context.sent(FetchRequest)
    assert fetch.destination_id == 3
    assert (fetch.request.current_leader_epoch, fetch.request.fetch_offset) == (5, offset)
    assert fetch.request.last_fetched_epoch == last_epoch


def test_a_new_observer_asks_in_epoch_zero() -> None:
    context = RaftContext(voters=(2, 3))
    assert context.standing == ("unattached", 0, -1)
    (fetch,) = context.sent(FetchRequest)
    assert fetch.destination_id in (2, 3)
    assert (fetch.request.current_leader_epoch, fetch.request.fetch_offset) == (0, 0)


# The first notification of a state machine


def test_a_follower_names_its_leader_to_the_state_machine_at_once() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5, leader_id=3))
    assert context.leaders == [LeaderAndEpoch(3, 5)]


def test_an_unattached_replica_names_its_epoch_and_later_the_leader() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=5))
    context.begin(leader_id=3, epoch=5)
    context.begin(leader_id=3, epoch=5)
    assert context.leaders == [LeaderAndEpoch(-1, 5), LeaderAndEpoch(3, 5)]


def test_an_observer_is_no_candidate_whatever_it_had_written_down() -> None:
    context = RaftContext(voters=(2, 3), state=QuorumState(leader_epoch=4, voted=key_of(1)))
    assert context.standing == ("unattached", 4, -1)
    context.advance(100_000)
    assert context.sent(VoteRequest) == []


def test_the_bootstrap_checkpoints_voters_count_and_not_the_configurations() -> None:
    written = VoterSet.of(*(Voter(key_of(node_id)) for node_id in (1, 4, 5)))
    context = RaftContext((1, 2, 3), quorum_records=[KRaftVersionAt(-1, 1), VotersAt(-1, written)])
    assert (context.node.voters, context.node.kraft_version) == (written, 1)
    votes = context.become_candidate()
    assert [vote.request.voter for vote in votes] == [key_of(4), key_of(5)]
    context.vote(votes[0])
    described = context.describe().current_voters
    assert [(each.replica_id, each.directory_id) for each in described] == [
        (node_id, UUID(int=node_id)) for node_id in (1, 4, 5)
    ]
