"""What becomes of proposals: taken, refused, or left behind by a leader that steps down (rule R12.1)."""

from collections.abc import Callable

import pytest

from kquorum.raft.errors import NotLeaderError, RecordBatchTooLargeError
from kquorum.raft.messages import FetchResponse, LogSlice
from kquorum.raft.ready import QuorumState
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, key_of


def test_a_sole_voters_high_watermark_follows_its_log_end() -> None:
    context = RaftContext(voters=(1,))
    assert (context.log_end_offset, context.node.high_watermark) == (1, 1)
    last = context.node.propose(context.now_ms, 1, [b"a", b"b", b"c"])
    context.turn()
    assert (last, context.log_end_offset, context.node.high_watermark) == (3, 4, 4)
    leader_change, data = context.log
    assert (leader_change.is_control, leader_change.last_offset) == (True, 0)
    assert (data.is_control, data.base_offset, data.last_offset, data.leader_epoch) == (False, 1, 3, 1)
    assert [record.value for record in data.records] == [b"a", b"b", b"c"]
    response = context.receive(context.fetch(50, offset=0, last_epoch=0))
    assert isinstance(response, FetchResponse)
    assert isinstance(response.records, LogSlice)
    assert (response.records.start_offset, response.high_watermark) == (0, 4)


@pytest.mark.parametrize("difference", [-1, 1], ids=["older epoch", "newer epoch"])
def test_a_leader_takes_no_proposal_for_another_epoch(difference: int) -> None:
    context = RaftContext()
    epoch = context.become_leader()
    with pytest.raises(NotLeaderError):
        context.node.propose(context.now_ms, epoch + difference, [b"value"])
    context.turn()
    assert context.log_end_offset == 1


@pytest.mark.parametrize(
    "state",
    [QuorumState(leader_epoch=3), QuorumState(leader_epoch=3, leader_id=2)],
    ids=["unattached", "follower"],
)
def test_a_follower_takes_no_proposal_and_names_the_leader(state: QuorumState) -> None:
    context = RaftContext(state=state)
    with pytest.raises(NotLeaderError) as refusal:
        context.node.propose(context.now_ms, 3, [b"value"])
    assert (refusal.value.leader_id, refusal.value.leader_epoch) == (state.leader_id, 3)
    assert context.log_end_offset == 0


def test_a_group_above_the_largest_batch_is_refused_whole() -> None:
    context = RaftContext(max_batch_bytes=1_000)
    epoch = context.become_leader()
    with pytest.raises(RecordBatchTooLargeError):
        context.node.propose(context.now_ms, epoch, [b"x" * 600, b"y" * 600])
    assert context.node.propose(context.now_ms, epoch, [b"x" * 600]) == 1
    context.turn()
    assert [each.base_offset for each in context.log] == [0, 1]


# A leader that steps down in the turn of a proposal


def follow_another(context: RaftContext, epoch: int) -> None:
    context.begin(leader_id=2, epoch=epoch)


def vote_for_another(context: RaftContext, epoch: int) -> None:
    assert context.ask_for_vote(2, epoch, last_offset=100, last_offset_epoch=epoch - 1).vote_granted


def refuse_a_stale_candidate(context: RaftContext, epoch: int) -> None:
    assert not context.ask_for_vote(2, epoch, last_offset=0, last_offset_epoch=0).vote_granted


@pytest.mark.parametrize(
    ("step_down", "standing", "state"),
    [
        (follow_another, ("follower", 2, 2), QuorumState(leader_epoch=2, leader_id=2)),
        (vote_for_another, ("unattached", 2, -1), QuorumState(leader_epoch=2, voted=key_of(2))),
        (refuse_a_stale_candidate, ("unattached", 2, -1), QuorumState(leader_epoch=2)),
    ],
)
def test_a_leader_that_steps_down_holds_no_proposals_back(
    step_down: Callable[[RaftContext, int], None], standing: tuple[str, int, int], state: QuorumState
) -> None:
    context = RaftContext()
    assert context.become_leader() == 1
    offset = context.node.propose(context.now_ms, 1, [b"a", b"b"])
    assert not context.node.replica.accumulator.is_empty
    step_down(context, 2)
    assert (context.standing, context.state) == (standing, state)
    assert context.node.replica.accumulator.is_empty
    assert (context.log[-1].last_offset, context.log[-1].leader_epoch) == (offset, 1)
    assert context.node.high_watermark == -1
    with pytest.raises(NotLeaderError):
        context.node.propose(context.now_ms, 1, [b"c"])


def test_a_stepped_down_leaders_proposals_count_in_its_vote() -> None:
    """They are in its log, so a candidate without them is behind."""
    context = RaftContext()
    context.become_leader()
    context.node.propose(context.now_ms, 1, [b"a", b"b"])
    response = context.ask_for_vote(2, epoch=2, last_offset=1, last_offset_epoch=1)
    assert (response.error, response.vote_granted, response.leader_epoch) == (ErrorCode.none, False, 2)
