"""A replica without space: it follows and votes, and neither writes records nor leads (raft/full_disk.py)."""

from dataclasses import replace

import pytest

from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import ShutdownRequested, WritesPaused
from kquorum.raft.messages import (
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    TransferLeadershipRequest,
    VoteRequest,
)
from kquorum.raft.ready import LeaderAndEpoch, OutboundRequest, QuorumState
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of
from tests.support.raft.dynamic import DynamicContext, voter_of

FULL, FREE = WritesPaused(True), WritesPaused(False)


def leading(**config: int) -> tuple[RaftContext, int]:
    """A leader whose LeaderChange is committed."""
    context = RaftContext(**config)
    epoch = context.become_leader()
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    return context, epoch


def following(leader_id: int = 2, epoch: int = 1) -> tuple[RaftContext, OutboundRequest]:
    context = RaftContext()
    fetch = context.follow(leader_id, epoch)
    return context, fetch


# Leading


def test_a_leader_leaves_for_the_first_voter_that_has_everything() -> None:
    context, epoch = leading()
    context.node.propose(context.now_ms, epoch, [b"x"])
    context.turn()
    context.sent(EndQuorumEpochRequest)
    context.feed(FULL)
    assert context.node.role == "leader", "no follower has x yet"
    context.receive(context.fetch(3, offset=2, last_epoch=epoch))
    assert context.node.role == "resigned"
    assert context.node.high_watermark == 2
    end = context.sent(EndQuorumEpochRequest)[0]
    assert [key.id for key in end.request.preferred_candidates] == [3, 2]


def test_nothing_is_proposed_while_it_leaves_and_its_state_machine_hears_of_it() -> None:
    context, epoch = leading()
    context.feed(FULL)
    assert context.leaders[-1] == LeaderAndEpoch(-1, epoch)
    with pytest.raises(NotLeaderError):
        context.node.propose(context.now_ms, epoch, [b"x"])


def test_what_was_proposed_in_the_same_turn_is_not_written() -> None:
    context, epoch = leading()
    end_offset = context.log_end_offset
    context.node.propose(context.now_ms, epoch, [b"x"])
    context.feed(FULL)
    assert context.node.role == "resigned", "node 2 has all that was written"
    assert context.log_end_offset == end_offset
    assert context.node.log_end_offset == end_offset


def test_it_leaves_in_any_case_when_an_election_would_be_over() -> None:
    context, epoch = leading()
    context.node.propose(context.now_ms, epoch, [b"x"])
    context.turn()
    context.feed(FULL)
    context.advance(context.config.election_timeout_ms - 1)
    assert context.node.role == "leader"
    context.advance(1)
    assert context.node.role == "resigned"


def test_space_in_time_keeps_it_leader() -> None:
    context, epoch = leading()
    context.node.propose(context.now_ms, epoch, [b"x"])
    context.turn()
    context.feed(FULL)
    context.feed(FREE)
    context.receive(context.fetch(2, offset=2, last_epoch=epoch))
    assert context.leaders[-1] == LeaderAndEpoch(1, epoch)
    assert context.node.propose(context.now_ms, epoch, [b"y"]) == 2


def test_a_hand_over_that_was_asked_for_ends_it_as_well() -> None:
    context, epoch = leading()
    context.node.propose(context.now_ms, epoch, [b"x"])
    context.turn()
    assert context.receive(TransferLeadershipRequest(target_id=3)) is None
    request_id = context.last_request_id
    context.feed(FULL)
    context.receive(context.fetch(2, offset=2, last_epoch=epoch))
    assert context.node.role == "resigned", "node 2 will do, if node 3 is not there"
    assert context.responses[request_id].error is ErrorCode.not_leader_or_follower


def test_a_voter_that_was_about_to_be_added_is_not() -> None:
    context = DynamicContext()
    context.lead()
    context.catch_up(4)
    assert context.add(voter_of(4)) is None
    waiting, end_offset = context.last_request_id, context.log_end_offset
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    context.feed(FULL)
    assert context.read_answer(waiting).error is ErrorCode.request_timed_out
    assert context.add(voter_of(4)).error is not ErrorCode.none
    assert context.log_end_offset == end_offset


def test_a_sole_voter_does_not_lead_until_there_is_space() -> None:
    context = RaftContext(voters=(1,))
    assert context.node.role == "leader"
    epoch = context.node.leader_epoch
    context.feed(FULL)
    for _ in range(10):
        context.advance(1_000)
    assert context.node.role == "unattached"
    context.feed(FREE)
    assert context.node.role == "leader"
    assert context.node.leader_epoch > epoch


# Following


def test_a_follower_leaves_what_comes_and_asks_again_after_a_while() -> None:
    context, fetch = following()
    context.feed(FULL)
    ready = context.answer(fetch, context.fetched(batch(0, 1), high_watermark=1))
    assert ready.append == ()
    assert context.sent(FetchRequest) == []
    interval_ms = context.config.paused_fetch_interval_ms
    assert ready.deadline_ms == context.now_ms + interval_ms, (
        "no turn before, and none of the other voters is asked"
    )
    context.advance(interval_ms - 1)
    assert context.sent(FetchRequest) == []
    context.advance(1)
    (again,) = context.sent(FetchRequest)
    assert (again.destination_id, again.request.fetch_offset, again.request.max_bytes) == (2, 0, 1)


def test_it_asks_often_enough_not_to_lose_its_leader() -> None:
    context, fetch = following()
    context.feed(FULL)
    for _ in range(50):
        context.answer(fetch, context.fetched(batch(0, 1), high_watermark=1))
        context.advance(context.config.paused_fetch_interval_ms)
        (fetch,) = context.sent(FetchRequest)
    assert context.standing == ("follower", 1, 2)
    assert context.config.paused_fetch_interval_ms < context.config.begin_quorum_epoch_interval_ms


def test_a_leader_that_has_nothing_new_is_asked_as_ever() -> None:
    context, fetch = following()
    context.feed(FULL)
    context.answer(fetch, context.fetched(high_watermark=0))
    assert len(context.sent(FetchRequest)) == 1


def test_a_follower_goes_on_as_soon_as_there_is_space() -> None:
    context, fetch = following()
    context.feed(FULL)
    context.answer(fetch, context.fetched(batch(0, 1), high_watermark=1))
    context.feed(FREE)
    (fetch,) = context.sent(FetchRequest)
    assert fetch.request.max_bytes == context.config.max_fetch_bytes
    context.answer(fetch, context.fetched(batch(0, 1), high_watermark=1))
    assert (context.log_end_offset, context.node.high_watermark) == (1, 1)


def test_what_has_to_be_cut_is_cut() -> None:
    context = RaftContext(log=[batch(0, 1), batch(1, 1)], state=QuorumState(leader_epoch=1))
    fetch = context.follow(2, 2)
    context.feed(FULL)
    context.answer(fetch, context.fetched(diverging=OffsetAndEpoch(1, 1)))
    assert context.log_end_offset == 1


def test_no_snapshot_is_begun_and_none_is_finished() -> None:
    context, fetch = following()
    named = FetchResponse(leader_id=2, leader_epoch=1, snapshot_id=OffsetAndEpoch(9, 1), records=b"")
    context.answer(fetch, named)
    (piece,) = context.sent(FetchSnapshotRequest)
    context.feed(FULL)
    answer = FetchSnapshotResponse(
        leader_id=2, leader_epoch=1, snapshot_id=OffsetAndEpoch(9, 1), position=0, size=4, data=b"abcd"
    )
    assert context.answer(piece, answer).snapshot_chunks == ()
    (fetch,) = context.sent(FetchRequest)
    context.answer(fetch, named)
    for _ in range(3):
        (sent,) = context.sent(FetchSnapshotRequest)
        assert sent.request.max_bytes == 1, "only to be heard of"
        assert context.answer(sent, replace(answer, data=b"a")).snapshot_chunks == ()
        context.advance(context.config.paused_fetch_interval_ms)


# Voting and standing


def test_it_votes() -> None:
    context = RaftContext()
    context.feed(FULL)
    assert context.ask_for_pre_vote(2, 1).vote_granted
    assert context.ask_for_vote(2, 1).vote_granted
    assert context.state.voted == key_of(2)


def test_it_does_not_stand_before_there_is_space() -> None:
    context, _ = following()
    context.feed(FULL)
    for _ in range(20):
        context.advance(1_000)
    assert context.node.role == "unattached"
    assert context.sent(VoteRequest) == []
    context.feed(FREE)
    context.advance(context.config.election_timeout_ms)
    assert context.node.role == "prospective"


def test_one_that_waited_for_a_leader_waits_on_and_starts_again() -> None:
    context = RaftContext()
    context.feed(FULL)
    context.advance(10 * context.config.election_timeout_ms)
    assert context.node.role == "unattached"
    context.feed(FREE)
    context.advance(context.config.election_timeout_ms - 1)
    assert context.node.role == "unattached"
    context.advance(1)
    assert context.node.role == "prospective"


@pytest.mark.parametrize("role", ["prospective", "candidate"])
def test_a_preferred_successor_gives_up_and_keeps_its_vote(role: str) -> None:
    context = RaftContext()
    votes = context.become_candidate() if role == "candidate" else []
    if role == "prospective":
        context.advance(context.config.election_timeout_ms)
        votes = context.sent(VoteRequest)
    epoch = context.node.leader_epoch
    context.feed(FULL)
    assert context.standing == ("unattached", epoch, -1)
    for outbound in votes:
        context.vote(outbound)
    assert context.node.role == "unattached"
    if role == "candidate":
        assert not context.ask_for_vote(2, epoch, last_offset=99, last_offset_epoch=0).vote_granted


def test_one_that_knows_who_led_follows_again() -> None:
    context, _ = following()
    context.advance(context.config.fetch_timeout_ms)
    assert context.node.role == "prospective"
    context.feed(FULL)
    assert context.standing == ("follower", 1, 2)


def test_leaving_in_good_order_goes_on() -> None:
    context, _ = leading()
    context.feed(ShutdownRequested())
    context.feed(FULL)
    assert context.node.role == "resigned"


@pytest.mark.parametrize("event", [FULL, FREE])
def test_news_that_are_none_change_nothing(event: WritesPaused) -> None:
    context, _ = leading()
    context.feed(event)
    before = context.node.role, context.node.leader_epoch, context.node.replica.role
    ready = context.feed(event)
    assert (context.node.role, context.node.leader_epoch, context.node.replica.role) == before
    assert ready.role_changes == ()
