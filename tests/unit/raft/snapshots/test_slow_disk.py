"""Pieces of a snapshot come no faster than the disk takes them, and the follower stays one meanwhile."""

import pytest

from raft.inputs import SnapshotPieceWritten
from raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest
from raft.ready import OutboundRequest
from tests.unit.raft.snapshots.parts import CONTENT, EPOCH, ID, LEADER, SnapshotContext
from wire.log_batch import OffsetAndEpoch

STEP = len(CONTENT) // 5
NAMED = FetchResponse(leader_id=LEADER, leader_epoch=EPOCH, snapshot_id=ID)


def with_two_pieces_unwritten() -> tuple[SnapshotContext, OutboundRequest]:
    """And the Fetch that went out in the place of a request for the third."""
    context = SnapshotContext()
    context.is_disk_slow = True
    context.piece(context.follow_behind(), CONTENT[:STEP])
    second = context.only_sent(FetchSnapshotRequest)
    context.piece(second, CONTENT[STEP : 2 * STEP])
    return context, context.only_sent(FetchRequest)


def test_no_third_piece_is_asked_for_while_two_are_not_written() -> None:
    context, fetch = with_two_pieces_unwritten()
    assert isinstance(fetch.request, FetchRequest)
    assert fetch.request.max_bytes == 1, "only to be heard of"
    for _ in range(5):
        context.answer(fetch, NAMED)
        assert context.requests == [], "nobody is asked in a busy loop"
        context.advance(context.config.paused_fetch_interval_ms)
        fetch = context.only_sent(FetchRequest)
    assert len(context.chunks) == 2


def test_it_goes_on_as_soon_as_one_is_written() -> None:
    context, fetch = with_two_pieces_unwritten()
    context.answer(fetch, NAMED)
    context.feed(SnapshotPieceWritten())
    third = context.only_sent(FetchSnapshotRequest)
    assert isinstance(third.request, FetchSnapshotRequest)
    assert third.request.position == 2 * STEP
    context.feed(SnapshotPieceWritten())
    context.piece(third, CONTENT[2 * STEP :])
    assert b"".join(chunk.data for chunk in context.chunks) == CONTENT
    assert context.install().load_snapshot == ID


def test_the_answer_of_a_fetch_that_was_under_way_changes_nothing() -> None:
    context, fetch = with_two_pieces_unwritten()
    context.feed(SnapshotPieceWritten())
    assert context.requests == [], "one request to the leader at a time"
    newer = FetchResponse(leader_id=LEADER, leader_epoch=EPOCH, snapshot_id=OffsetAndEpoch(200, 1))
    context.answer(fetch, newer)
    third = context.only_sent(FetchSnapshotRequest)
    assert isinstance(third.request, FetchSnapshotRequest)
    assert (third.request.snapshot_id, third.request.position) == (ID, 2 * STEP)


def test_a_disk_that_stalls_for_long_deposes_nobody_and_costs_no_piece() -> None:
    context, fetch = with_two_pieces_unwritten()
    waited_ms = 0
    while waited_ms < 5 * context.config.fetch_timeout_ms:
        context.answer(fetch, NAMED)
        context.advance(context.config.paused_fetch_interval_ms)
        waited_ms += context.config.paused_fetch_interval_ms
        fetch = context.only_sent(FetchRequest)
    assert (context.node.role, context.node.leader_id, context.node.leader_epoch) == (
        "follower",
        LEADER,
        EPOCH,
    )
    context.feed(SnapshotPieceWritten())
    context.answer(fetch, NAMED)
    third = context.only_sent(FetchSnapshotRequest)
    assert isinstance(third.request, FetchSnapshotRequest)
    assert third.request.position == 2 * STEP


@pytest.mark.parametrize("downloads", [2, 5])
def test_pieces_of_downloads_that_were_given_up_count_until_they_are_written(downloads: int) -> None:
    """A follower that changes its leader begins anew; what it had asked for is still in memory."""
    context, _ = with_two_pieces_unwritten()
    for epoch in range(EPOCH + 1, EPOCH + downloads):
        context.begin(LEADER, epoch)
        fetch = context.only_sent(FetchRequest)
        context.answer(fetch, FetchResponse(leader_id=LEADER, leader_epoch=epoch, snapshot_id=ID))
        assert not context.sent(FetchSnapshotRequest)
    assert len(context.chunks) == 2
