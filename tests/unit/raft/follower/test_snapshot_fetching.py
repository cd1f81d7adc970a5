"""A follower that comes in through a snapshot, after Kafka's KafkaRaftClientSnapshotTest (rule R10.4)."""

from typing import Any

import pytest

from kquorum.raft.inputs import SnapshotRefused
from kquorum.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, VoteRequest, VoteResponse
from kquorum.raft.ready import OutboundRequest, QuorumState, SnapshotChunk
from kquorum.raft.voters import KRaftVersionAt, VotersAt
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import batch
from tests.support.raft.dynamic import set_of
from tests.support.raft.snapshots import CONTENT, EPOCH, ID, LEADER, SnapshotContext

HALF = len(CONTENT) // 2


def position_of(request: Any) -> tuple[int, int, int]:
    assert isinstance(request, FetchRequest)
    return request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch


def asked_for(request: Any) -> tuple[int, OffsetAndEpoch, int]:
    assert isinstance(request, FetchSnapshotRequest)
    return request.current_leader_epoch, request.snapshot_id, request.position


def test_a_named_snapshot_is_fetched_and_the_log_goes_on_behind_it() -> None:
    """testFetchResponseWithSnapshotId"""
    context = SnapshotContext()
    first = context.follow_behind()
    assert asked_for(first.request) == (EPOCH, ID, 0)
    assert isinstance(first.request, FetchSnapshotRequest)
    assert first.request.replica == context.node.replica.key
    assert first.request.max_bytes == context.config.max_fetch_bytes
    context.piece(first, CONTENT)
    assert context.chunks == [SnapshotChunk(ID, 0, CONTENT, is_last=True, size=len(CONTENT))]
    ready = context.install()
    assert ready.load_snapshot == ID, "the state machine starts over from it"
    assert position_of(context.only_sent(FetchRequest).request) == (EPOCH, 100, 1)


def test_a_second_piece_is_asked_for_where_the_first_one_ended() -> None:
    """testFetchSnapshotResponsePartialData"""
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT[:HALF])
    second = context.only_sent(FetchSnapshotRequest)
    assert asked_for(second.request) == (EPOCH, ID, HALF)
    context.piece(second, CONTENT[HALF:])
    assert context.chunks == [
        SnapshotChunk(ID, 0, CONTENT[:HALF], is_last=False, size=len(CONTENT)),
        SnapshotChunk(ID, HALF, CONTENT[HALF:], is_last=True, size=len(CONTENT)),
    ]
    assert context.install().load_snapshot == ID
    assert position_of(context.only_sent(FetchRequest).request) == (EPOCH, 100, 1)


def test_an_installed_snapshot_is_where_the_log_begins_and_all_in_it_is_committed() -> None:
    """testTruncateFullyToLatestSnapshot: of the log's last epoch, and later of a greater one."""
    context = SnapshotContext(log=[batch(0, 1, count=10)], state=QuorumState(leader_epoch=1))
    first = context.name_snapshot(context.follow(LEADER, EPOCH), OffsetAndEpoch(20, 1))
    context.piece(first, CONTENT)
    ready = context.install(OffsetAndEpoch(20, 1))
    log = context.node.replica.log
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (20, 20, 1)
    assert (context.node.high_watermark, ready.high_watermark) == (20, 20)
    assert log.snapshots == (OffsetAndEpoch(20, 1),)
    fetch = context.only_sent(FetchRequest)
    context.answer(fetch, context.fetched(batch(20, 1, count=10), high_watermark=20))
    assert log.log_end_offset == 30
    second = context.name_snapshot(context.only_sent(FetchRequest), OffsetAndEpoch(40, 2))
    context.piece(second, CONTENT)
    context.install(OffsetAndEpoch(40, 2))
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (40, 40, 2)
    assert context.node.high_watermark == 40
    assert log.snapshots == (OffsetAndEpoch(40, 2),), "the older one is gone"


def test_an_uncommitted_end_of_a_newer_epoch_goes_with_the_log() -> None:
    """The records of epoch 2 were never committed, since a later leader has others in their place (Kafka gives up)."""
    log = [batch(0, 1, count=5), batch(5, 2, count=5)]
    context = SnapshotContext(log=log, state=QuorumState(leader_epoch=2))
    fetch = context.follow(LEADER, 3)
    named = FetchResponse(leader_id=LEADER, leader_epoch=3, snapshot_id=ID)
    context.answer(fetch, named)
    context.piece(context.only_sent(FetchSnapshotRequest), CONTENT, leader_epoch=3)
    context.install()
    assert position_of(context.only_sent(FetchRequest).request) == (3, 100, 1)


def test_a_snapshot_says_who_votes() -> None:
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT)
    context.install(records=[KRaftVersionAt(99, 1), VotersAt(99, set_of(1, 2, 4))])
    assert context.voter_ids == (1, 2, 4)


def with_all_pieces() -> SnapshotContext:
    """The snapshot came in two pieces, and is being put in the place of the log."""
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT[:HALF])
    context.piece(context.only_sent(FetchSnapshotRequest), CONTENT[HALF:])
    return context


def pass_time_while_it_is_installed(context: SnapshotContext) -> OutboundRequest:
    """The next sign of life; nothing else is sent."""
    assert context.requests == [], "the leader is not asked in a busy loop"
    context.advance(context.config.paused_fetch_interval_ms)
    assert len(context.requests) == 1
    return context.only_sent(FetchSnapshotRequest)


def test_the_leader_hears_of_a_follower_that_puts_it_in_the_place_of_the_log() -> None:
    """Loading a large one takes longer than a fetch timeout: the voter gave up its leader, and the leader its epoch."""
    context = with_all_pieces()
    for _ in range(3 * context.config.fetch_timeout_ms // context.config.paused_fetch_interval_ms):
        request = pass_time_while_it_is_installed(context)
        assert asked_for(request.request) == (EPOCH, ID, len(CONTENT) - 1)
        assert isinstance(request.request, FetchSnapshotRequest)
        assert request.request.max_bytes == 1, "only to be heard of"
        context.piece(request, CONTENT[-1:])
    assert context.standing == ("follower", EPOCH, LEADER)
    assert len(context.chunks) == 2, "what comes of it is not written"
    assert context.install().load_snapshot == ID
    assert position_of(context.only_sent(FetchRequest).request) == (EPOCH, 100, 1)


def test_a_fetch_follows_the_answer_to_a_sign_of_life() -> None:
    context = with_all_pieces()
    request = pass_time_while_it_is_installed(context)
    context.install()
    assert context.requests == [], "one request to the leader at a time"
    context.piece(request, CONTENT[-1:])
    assert position_of(context.only_sent(FetchRequest).request) == (EPOCH, 100, 1)


@pytest.mark.parametrize("error", [ErrorCode.none, ErrorCode.snapshot_not_found])
def test_a_leader_without_the_snapshot_is_noted_while_it_is_installed(error: ErrorCode) -> None:
    context = with_all_pieces()
    for _ in range(3 * context.config.fetch_timeout_ms // context.config.paused_fetch_interval_ms):
        context.piece(pass_time_while_it_is_installed(context), b"", error=error)
    assert context.standing == ("follower", EPOCH, LEADER)
    assert context.install().load_snapshot == ID


def test_a_leader_that_is_silent_while_it_is_installed_is_given_up() -> None:
    context = with_all_pieces()
    waited_ms = 0
    while context.node.role == "follower":
        context.advance(context.config.retry_backoff_ms)
        waited_ms += context.config.retry_backoff_ms
        for request in context.sent(FetchSnapshotRequest):
            context.fail(request)
    assert waited_ms >= context.config.fetch_timeout_ms
    assert context.node.role == "unattached"
    context.advance(context.config.fetch_timeout_ms)
    assert context.requests == [], "it does not fetch, and does not stand"


def test_the_leader_of_a_newer_epoch_hears_of_it_too() -> None:
    context = with_all_pieces()
    context.begin(LEADER, EPOCH + 1)
    request = context.only_sent(FetchSnapshotRequest)
    assert asked_for(request.request) == (EPOCH + 1, ID, len(CONTENT) - 1)
    context.piece(request, CONTENT[-1:], leader_epoch=EPOCH + 1)
    assert context.install().load_snapshot == ID
    assert position_of(context.only_sent(FetchRequest).request) == (EPOCH + 1, 100, 1)


def test_what_is_here_or_known_already_is_not_fetched() -> None:
    """testDoesntTruncateFully: the log is not dropped for a snapshot of what it holds and knows to be committed."""
    log = [batch(0, 1, count=10)]
    context = SnapshotContext(log=log, state=QuorumState(leader_epoch=1))
    context.answer(context.follow(LEADER, EPOCH), context.fetched(high_watermark=10))
    context.answer(
        context.only_sent(FetchRequest),
        FetchResponse(leader_id=LEADER, leader_epoch=EPOCH, snapshot_id=OffsetAndEpoch(10, 1)),
    )
    assert position_of(context.next_fetch()) == (EPOCH, 10, 1)
    assert context.chunks == []


def test_one_that_is_gone_at_the_leader_is_given_up_for_a_fetch() -> None:
    """testFetchSnapshotResponseMissingSnapshot"""
    context = SnapshotContext()
    context.piece(context.follow_behind(), b"", error=ErrorCode.snapshot_not_found)
    assert position_of(context.next_fetch()) == (EPOCH, 0, 0)
    assert context.chunks == []


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(-1, 1), OffsetAndEpoch(100, -1), None])
def test_an_answer_with_a_senseless_id_ends_the_download(snapshot_id: OffsetAndEpoch | None) -> None:
    """testFetchSnapshotResponseWithInvalidId"""
    context = SnapshotContext()
    context.piece(context.follow_behind(), b"", snapshot_id=snapshot_id)
    assert position_of(context.next_fetch()) == (EPOCH, 0, 0)
    assert context.chunks == []


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshot_id": OffsetAndEpoch(101, 1)},
        {"position": 0},
        {"position": HALF + 1},
        {"size": len(CONTENT) + 1},
        {"data": b""},
    ],
    ids=["another snapshot", "an earlier place", "a later place", "another size", "nothing"],
)
def test_a_piece_that_does_not_continue_the_file_ends_the_download(fields: dict[str, Any]) -> None:
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT[:HALF])
    context.piece(context.only_sent(FetchSnapshotRequest), **{"data": CONTENT[HALF:], **fields})
    assert position_of(context.next_fetch()) == (EPOCH, 0, 0)
    assert len(context.chunks) == 1


def test_another_leader_of_a_newer_epoch_is_asked_for_records() -> None:
    """testFetchSnapshotResponseFromNewerEpochNotLeader"""
    context = SnapshotContext()
    fields = {"error": ErrorCode.fenced_leader_epoch, "leader_id": 3, "leader_epoch": EPOCH + 1}
    context.piece(context.follow_behind(), b"", **fields)
    (fetch,) = context.sent(FetchRequest)
    assert fetch.destination_id == 3
    assert position_of(fetch.request) == (EPOCH + 1, 0, 0)


def test_a_newer_epoch_of_the_same_leader_drops_what_has_come() -> None:
    """testFetchSnapshotResponseFromNewerEpochLeader"""
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT[:HALF])
    second = context.only_sent(FetchSnapshotRequest)
    context.piece(second, b"", error=ErrorCode.fenced_leader_epoch, leader_epoch=EPOCH + 1)
    fetch = context.only_sent(FetchRequest)
    assert position_of(fetch.request) == (EPOCH + 1, 0, 0)
    context.answer(fetch, FetchResponse(leader_id=LEADER, leader_epoch=EPOCH + 1, snapshot_id=ID))
    assert asked_for(context.only_sent(FetchSnapshotRequest).request) == (EPOCH + 1, ID, 0)


def test_an_answer_of_an_older_epoch_changes_nothing() -> None:
    """testFetchSnapshotResponseFromOlderEpoch: the same piece is asked for again, after the back-off."""
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT[:HALF])
    second = context.only_sent(FetchSnapshotRequest)
    fields = {"error": ErrorCode.unknown_leader_epoch, "leader_id": 3, "leader_epoch": EPOCH - 1}
    context.piece(second, b"", **fields)
    context.back_off()
    assert asked_for(context.only_sent(FetchSnapshotRequest).request) == (EPOCH, ID, HALF)
    assert (context.node.leader_id, context.node.leader_epoch) == (LEADER, EPOCH)


def test_a_piece_that_comes_to_a_candidate_changes_nothing() -> None:
    """testFetchSnapshotResponseToNotFollower"""
    context = SnapshotContext()
    first = context.follow_behind()
    context.advance(context.config.fetch_timeout_ms)
    assert context.node.role == "prospective"
    for outbound in context.sent(VoteRequest):
        context.answer(outbound, VoteResponse(leader_epoch=EPOCH, vote_granted=True))
    assert context.node.role == "candidate"
    state = context.state
    context.piece(first, CONTENT)
    assert (context.node.role, context.node.leader_epoch, context.state) == ("candidate", EPOCH + 1, state)
    assert context.chunks == []


def test_what_turns_out_to_be_no_snapshot_is_fetched_again() -> None:
    context = SnapshotContext()
    context.piece(context.follow_behind(), CONTENT)
    context.feed(SnapshotRefused(ID))
    assert position_of(context.next_fetch()) == (EPOCH, 0, 0)
    assert (context.node.replica.log.log_start_offset, context.node.high_watermark) == (0, -1)


def test_a_leader_that_was_silent_once_is_asked_for_every_piece_again() -> None:
    context = SnapshotContext()
    first = context.follow_behind()
    context.fail(first)
    context.back_off()
    context.piece(context.only_sent(FetchSnapshotRequest), CONTENT[:HALF])
    assert not context.node.replica.leader_is_silent
    assert asked_for(context.only_sent(FetchSnapshotRequest).request) == (EPOCH, ID, HALF)


def test_pieces_put_the_election_off() -> None:
    context = SnapshotContext()
    first = context.follow_behind()
    context.advance(context.config.fetch_timeout_ms - 1)
    context.piece(first, CONTENT[:HALF])
    context.advance(context.config.fetch_timeout_ms - 1)
    assert context.node.role == "follower"
    context.advance(1)
    assert context.node.role == "prospective"
