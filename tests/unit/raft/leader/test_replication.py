"""Replication: fetch checks, long poll, high watermark, divergence (rules R6 to R8)."""

from dataclasses import replace

import pytest

from kquorum.raft.errors import NotLeaderError, RecordBatchTooLargeError
from kquorum.raft.leader.majority import majority_offset
from kquorum.raft.log_index import LogIndex, diverging_point, truncation_target
from kquorum.raft.messages import BeginQuorumEpochRequest, FetchRequest, FetchResponse, LogSlice
from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import QuorumState
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import CLUSTER_ID, RaftContext, batch

EXAMPLE = LogIndex(LogSummary(0, 9, ((1, 0), (3, 3), (5, 6))))


def leading(**options: object) -> tuple[RaftContext, int]:
    context = RaftContext(**options)  # type: ignore[arg-type]
    epoch = context.become_leader()
    context.sent(FetchRequest)
    return context, epoch


# High watermark


def test_nothing_is_committed_before_the_own_epoch_is_on_a_majority() -> None:
    context, epoch = leading(log=[batch(0, 0, count=5)])
    context.receive(context.fetch(2, offset=5, last_epoch=0))
    assert context.node.high_watermark == -1
    context.receive(context.fetch(2, offset=6, last_epoch=epoch))
    assert context.node.high_watermark == 6


def test_the_leader_counts_only_what_it_flushed() -> None:
    context, epoch = leading(auto_flush=False)
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.node.high_watermark == -1
    context.flush()
    assert context.node.high_watermark == 1


def test_two_followers_can_commit_before_the_leaders_own_flush() -> None:
    context, epoch = leading(auto_flush=False)
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.receive(context.fetch(3, offset=1, last_epoch=epoch))
    assert context.node.high_watermark == 1


def test_observers_commit_nothing() -> None:
    context, epoch = leading()
    context.receive(context.fetch(50, offset=1, last_epoch=epoch))
    assert context.node.high_watermark == -1


def test_a_follower_that_falls_back_does_not_lower_the_high_watermark() -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    assert context.node.high_watermark == 1


def test_leadership_is_announced_only_after_the_epochs_first_record_is_committed() -> None:
    context, epoch = leading()
    assert context.last_ready.leader is None or context.last_ready.leader.leader_id == -1
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.last_ready.leader is not None
    assert (context.last_ready.leader.leader_id, context.last_ready.high_watermark) == (1, 1)


@pytest.mark.parametrize(
    ("end_offsets", "expected"),
    [([5], 5), ([5, 3], 3), ([5, 3, 1], 3), ([5, -1, -1], -1), ([9, 7, 5, 3, 1], 5), ([], -1)],
)
def test_majority_offset(end_offsets: list[int], expected: int) -> None:
    assert majority_offset(end_offsets) == expected


# Proposals


def test_proposals_of_one_turn_share_a_batch() -> None:
    context, epoch = leading()
    first = context.node.propose(context.now_ms, epoch, [b"a", b"b"])
    second = context.node.propose(context.now_ms, epoch, [b"c"])
    ready = context.turn()
    assert (first, second) == (2, 3)
    assert context.log[-1].base_offset == 1
    assert len(context.log[-1].records) == 3
    assert ready is not None


def test_a_proposal_for_another_epoch_is_refused() -> None:
    context, epoch = leading()
    with pytest.raises(NotLeaderError):
        context.node.propose(context.now_ms, epoch - 1, [b"a"])
    with pytest.raises(NotLeaderError):
        RaftContext().node.propose(0, 0, [b"a"])


def test_a_group_that_fits_no_batch_is_refused_and_nothing_is_appended() -> None:
    context, epoch = leading()
    with pytest.raises(RecordBatchTooLargeError):
        context.node.propose(context.now_ms, epoch, [b"x" * context.config.max_batch_bytes])
    context.turn()
    assert context.log_end_offset == 1


def test_what_was_proposed_keeps_its_offsets_when_leadership_ends_in_the_same_turn() -> None:
    context, epoch = leading()
    offset = context.node.propose(context.now_ms, epoch, [b"a"])
    context.receive(BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=epoch + 1))
    assert context.log[-1].last_offset == offset


# Fetch at the leader


def test_a_caught_up_fetch_waits_for_records() -> None:
    context, epoch = leading()
    assert context.receive(context.fetch(2, offset=1, last_epoch=epoch, known_high_watermark=-1)) is not None
    parked_id = context._next_request_id + 1
    assert context.receive(context.fetch(2, offset=1, last_epoch=epoch, known_high_watermark=1)) is None
    context.node.propose(context.now_ms, epoch, [b"a"])
    context.turn()
    response = context.responses[parked_id]
    assert isinstance(response, FetchResponse)
    assert isinstance(response.records, LogSlice)
    assert response.records.start_offset == 1


def test_a_waiting_fetch_returns_empty_in_time() -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.receive(context.fetch(2, offset=1, last_epoch=epoch, known_high_watermark=1)) is None
    context.advance(500)
    response = context.responses[context._next_request_id]
    assert (response.error, response.records) == (ErrorCode.none, b"")


def test_a_waiting_fetch_is_turned_away_with_the_new_leader() -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.receive(context.fetch(3, offset=1, last_epoch=epoch, known_high_watermark=1))
    waiting = context._next_request_id
    context.receive(BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=2, leader_epoch=epoch + 1))
    response = context.responses[waiting]
    assert (response.error, response.leader_id, response.leader_epoch) == (
        ErrorCode.not_leader_or_follower,
        2,
        epoch + 1,
    )


def test_a_newer_high_watermark_answers_waiting_fetches() -> None:
    context, epoch = leading()
    assert context.receive(context.fetch(50, offset=1, last_epoch=epoch)) is None
    observer = context._next_request_id
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.responses[observer].high_watermark == 1


@pytest.mark.parametrize("change", [{"fetch_offset": -5}, {"last_fetched_epoch": -1}, {"max_wait_ms": -1}])
def test_malformed_fetches_are_refused(change: dict[str, int]) -> None:
    context, epoch = leading()
    response = context.receive(replace(context.fetch(2, offset=0, last_epoch=0), **change))
    assert response.error is ErrorCode.invalid_request
    later = replace(context.fetch(2, offset=0, last_epoch=0), last_fetched_epoch=epoch + 1)
    assert context.receive(later).error is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("difference", "error"), [(-1, ErrorCode.fenced_leader_epoch), (1, ErrorCode.unknown_leader_epoch)]
)
def test_fetches_of_another_epoch_are_refused(difference: int, error: ErrorCode) -> None:
    context, epoch = leading()
    request = replace(context.fetch(2, offset=0, last_epoch=0), current_leader_epoch=epoch + difference)
    assert context.receive(request).error is error


def test_a_follower_does_not_serve_fetches() -> None:
    context = RaftContext()
    context.follow(leader_id=2, epoch=1)
    response = context.receive(context.fetch(3, offset=0, last_epoch=0))
    assert (response.error, response.leader_id) == (ErrorCode.not_leader_or_follower, 2)


def test_a_diverging_fetch_is_answered_at_once_and_does_not_count_as_progress() -> None:
    context, _ = leading(log=[batch(0, 0, count=5)])
    response = context.receive(context.fetch(2, offset=9, last_epoch=0))
    assert response.diverging == OffsetAndEpoch(5, 0)
    assert context.node.replica.role.progress == {}


# Where logs agree


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, None),
        (3, 1, None),
        (6, 3, None),
        (9, 5, None),
        (7, 5, None),
        (6, 2, OffsetAndEpoch(3, 1)),
        (4, 1, OffsetAndEpoch(3, 1)),
        (9, 9, OffsetAndEpoch(9, 5)),
        (12, 5, OffsetAndEpoch(9, 5)),
    ],
)
def test_diverging_point(offset: int, epoch: int, expected: OffsetAndEpoch | None) -> None:
    assert diverging_point(EXAMPLE, offset, epoch) == expected


@pytest.mark.parametrize(
    ("diverging", "expected"),
    [
        (OffsetAndEpoch(4, 0), 4),
        (OffsetAndEpoch(3, 1), 3),
        (OffsetAndEpoch(8, 3), 6),
        (OffsetAndEpoch(5, 4), 6),
    ],
)
def test_truncation_target(diverging: OffsetAndEpoch, expected: int) -> None:
    assert truncation_target(EXAMPLE, diverging) == expected


def test_a_leader_with_records_of_older_epochs_is_announced_when_all_of_them_are_committed() -> None:
    """So that what it decides then is decided on the end of its log (KAFKA-15345)."""
    context = RaftContext(log=[batch(0, 1, count=3), batch(3, 2, count=2)], state=QuorumState(leader_epoch=2))
    epoch = context.become_leader()
    assert context.log_end_offset == 6
    context.receive(context.fetch(2, offset=3, last_epoch=1))
    context.receive(context.fetch(2, offset=5, last_epoch=2))
    assert all(leader.leader_id != 1 for leader in context.leaders)
    assert context.node.high_watermark < 0, "records of older epochs are not committed by counting"
    context.receive(context.fetch(2, offset=6, last_epoch=epoch))
    assert (context.leaders[-1].leader_id, context.leaders[-1].epoch) == (1, epoch)
    assert context.last_ready.high_watermark == 6
