"""Pieces of a snapshot come no faster than the disk takes them, and the follower stays one meanwhile."""

from dataclasses import replace

import pytest

from kquorum.raft.inputs import SnapshotPieceWritten, WritesPaused
from kquorum.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse
from kquorum.raft.ready import OutboundRequest
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import batch, key_of
from tests.support.raft.snapshots import CONTENT, EPOCH, ID, LEADER, SnapshotContext, leader_with

STEP = len(CONTENT) // 5
LAST_BYTE = CONTENT[2 * STEP - 1 : 2 * STEP]


def waiting_for_its_disk() -> SnapshotContext:
    """Two pieces have come and are not written."""
    context = SnapshotContext()
    context.is_disk_slow = True
    context.piece(context.follow_behind(), CONTENT[:STEP])
    second = context.only_sent(FetchSnapshotRequest)
    context.piece(second, CONTENT[STEP : 2 * STEP])
    return context


def with_two_pieces_unwritten() -> tuple[SnapshotContext, OutboundRequest]:
    """And the sign of life that went out in the place of a request for the third."""
    context = waiting_for_its_disk()
    return context, sign_of_life(context, 2 * STEP - 1)


def sign_of_life(
    context: SnapshotContext, position: int, snapshot_id: OffsetAndEpoch = ID
) -> OutboundRequest:
    """The one request under way to the leader, which is sent only to be heard of."""
    sent = context.only_sent(FetchSnapshotRequest)
    assert isinstance(sent.request, FetchSnapshotRequest)
    assert (sent.request.snapshot_id, sent.request.position) == (snapshot_id, position)
    assert sent.request.max_bytes == 1, "only to be heard of"
    return sent


def third_piece(context: SnapshotContext) -> OutboundRequest:
    third = context.only_sent(FetchSnapshotRequest)
    assert isinstance(third.request, FetchSnapshotRequest)
    assert (third.request.snapshot_id, third.request.position) == (ID, 2 * STEP)
    assert third.request.max_bytes == context.config.max_fetch_bytes
    return third


def test_no_third_piece_is_asked_for_while_two_are_not_written() -> None:
    context, sent = with_two_pieces_unwritten()
    for _ in range(5):
        context.piece(sent, LAST_BYTE)
        assert context.requests == [], "the leader is not asked in a busy loop"
        context.advance(context.config.paused_fetch_interval_ms)
        sent = sign_of_life(context, 2 * STEP - 1)
    assert len(context.chunks) == 2


def test_it_goes_on_as_soon_as_one_is_written() -> None:
    context, sent = with_two_pieces_unwritten()
    context.piece(sent, LAST_BYTE)
    context.feed(SnapshotPieceWritten())
    third = third_piece(context)
    context.feed(SnapshotPieceWritten())
    context.piece(third, CONTENT[2 * STEP :])
    assert b"".join(chunk.data for chunk in context.chunks) == CONTENT
    assert context.install().load_snapshot == ID


def test_the_answer_to_a_sign_of_life_that_was_under_way_is_no_piece() -> None:
    context, sent = with_two_pieces_unwritten()
    context.feed(SnapshotPieceWritten())
    assert context.requests == [], "one request to the leader at a time"
    context.piece(sent, LAST_BYTE)
    assert len(context.chunks) == 2
    third_piece(context)


def test_a_snapshot_that_is_gone_at_the_leader_is_given_up_for_a_fetch() -> None:
    context, sent = with_two_pieces_unwritten()
    context.piece(sent, b"", error=ErrorCode.snapshot_not_found)
    assert context.next_fetch().fetch_offset == 0


def test_a_disk_that_stalls_for_long_deposes_no_leader_and_costs_no_piece() -> None:
    context, sent = with_two_pieces_unwritten()
    waited_ms = 0
    while waited_ms < 5 * context.config.fetch_timeout_ms:
        context.piece(sent, LAST_BYTE)
        context.advance(context.config.paused_fetch_interval_ms)
        waited_ms += context.config.paused_fetch_interval_ms
        sent = sign_of_life(context, 2 * STEP - 1)
    assert context.standing == ("follower", EPOCH, LEADER)
    context.feed(SnapshotPieceWritten())
    context.piece(sent, LAST_BYTE)
    third_piece(context)


def test_its_leader_stays_leader_by_its_fetches_meanwhile() -> None:
    """A Fetch from below the start of the leader's log is answered with the snapshot, and counts for nothing."""
    leader = leader_with(ID, log=[batch(100, 1, count=3)], start=100)
    context = waiting_for_its_disk()
    waited_ms = 0
    while waited_ms < 3 * leader.config.check_quorum_timeout_ms:
        sent = context.only_sent(FetchRequest | FetchSnapshotRequest)
        epoch = leader.node.leader_epoch
        answer = leader.receive(replace(sent.request, replica=key_of(2), current_leader_epoch=epoch))
        if isinstance(answer, FetchSnapshotResponse):
            answer = replace(answer, data=LAST_BYTE, size=len(CONTENT))
        context.answer(sent, replace(answer, leader_id=LEADER, leader_epoch=EPOCH))
        for each in (leader, context):
            each.advance(context.config.paused_fetch_interval_ms)
        waited_ms += context.config.paused_fetch_interval_ms
    assert (leader.node.role, context.node.role) == ("leader", "follower")


def test_a_leader_that_is_silent_while_the_disk_is_behind_is_given_up() -> None:
    context, sent = with_two_pieces_unwritten()
    context.fail(sent)
    context.advance(context.config.fetch_timeout_ms)
    assert context.node.role == "prospective"


@pytest.mark.parametrize("downloads", [2, 5])
def test_pieces_of_downloads_that_were_given_up_count_until_they_are_written(downloads: int) -> None:
    """A follower that changes its leader starts again; what it had asked for is still in memory."""
    context, _ = with_two_pieces_unwritten()
    for epoch in range(EPOCH + 1, EPOCH + downloads):
        context.begin(LEADER, epoch)
        fetch = context.only_sent(FetchRequest)
        context.answer(fetch, FetchResponse(leader_id=LEADER, leader_epoch=epoch, snapshot_id=ID))
        context.piece(sign_of_life(context, 0), CONTENT[:1], leader_epoch=epoch)
        assert context.requests == []
    assert len(context.chunks) == 2


def test_the_leader_hears_of_a_follower_without_space_that_is_below_the_start_of_its_log() -> None:
    context = SnapshotContext()
    fetch = context.follow(LEADER, EPOCH)
    context.feed(WritesPaused(True))
    context.answer(fetch, FetchResponse(leader_id=LEADER, leader_epoch=EPOCH, snapshot_id=ID))
    for _ in range(2 * context.config.fetch_timeout_ms // context.config.paused_fetch_interval_ms):
        context.piece(sign_of_life(context, 0), CONTENT[:1])
        assert context.requests == []
        context.advance(context.config.paused_fetch_interval_ms)
    assert context.standing == ("follower", EPOCH, LEADER)
    assert context.chunks == []
    context.piece(sign_of_life(context, 0), CONTENT[:1])
    context.feed(WritesPaused(False))
    context.piece(context.only_sent(FetchSnapshotRequest), CONTENT)
    assert context.install().load_snapshot == ID
