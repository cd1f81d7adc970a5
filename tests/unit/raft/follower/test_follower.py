"""The fetching side: what is taken, what is cut, and how a leader is looked for (rule R8)."""

from dataclasses import replace

import pytest

from kquorum.raft.errors import LogDivergedBelowHighWatermarkError
from kquorum.raft.messages import FetchRequest, FetchResponse
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch


def test_a_follower_fetches_on_only_after_its_flush() -> None:
    context = RaftContext(auto_flush=False)
    fetch = context.follow(leader_id=2, epoch=1)
    context.answer(fetch, context.fetched(batch(0, 1)))
    assert context.sent(FetchRequest) == []
    context.flush()
    assert [outbound.request.fetch_offset for outbound in context.sent(FetchRequest)] == [1]


def test_a_flush_from_before_a_truncation_acknowledges_nothing() -> None:
    context = RaftContext(log=[batch(0, 1, count=3)], auto_flush=False)
    fetch = context.follow(leader_id=2, epoch=2)
    context.answer(fetch, context.fetched(diverging=OffsetAndEpoch(0, 0)))
    fetch = context.sent(FetchRequest)[0]
    context.answer(fetch, context.fetched(batch(0, 2)))
    context.truncations -= 1
    context.flush()
    assert context.sent(FetchRequest) == []


def test_a_diverged_follower_cuts_its_log_and_asks_again() -> None:
    context = RaftContext(log=[batch(0, 1, count=2), batch(2, 1)])
    fetch = context.follow(leader_id=2, epoch=2)
    context.answer(fetch, context.fetched(diverging=OffsetAndEpoch(2, 1)))
    assert context.log_end_offset == 2
    assert context.sent(FetchRequest)[0].request.fetch_offset == 2


def test_a_follower_refuses_to_cut_what_is_committed() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    context.answer(fetch, context.fetched(batch(0, 1), batch(1, 1), high_watermark=2))
    fetch = context.sent(FetchRequest)[0]
    with pytest.raises(LogDivergedBelowHighWatermarkError, match="cut the log at offset 1"):
        context.answer(fetch, context.fetched(diverging=OffsetAndEpoch(1, 1)))


def test_a_followers_high_watermark_stays_within_its_log() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    context.answer(fetch, context.fetched(batch(0, 1), high_watermark=7))
    assert context.node.high_watermark == 1


def test_batches_after_a_gap_or_of_a_later_epoch_are_dropped() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    context.answer(fetch, context.fetched(batch(0, 1), batch(5, 1)))
    fetch = context.sent(FetchRequest)[0]
    context.answer(fetch, context.fetched(batch(1, 2)))
    assert context.log_end_offset == 1


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"garbage", batch(0, 1).data[:-1]])
def test_garbage_records_are_dropped(garbage: bytes) -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    context.answer(fetch, replace(context.fetched(), records=garbage))  # type: ignore[type-var]
    assert (context.log_end_offset, context.node.role) == (0, "follower")


def test_a_stale_fetch_answer_is_not_appended() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    stale = context.fetched(batch(0, 1))
    context.follow(leader_id=3, epoch=2)
    context.answer(fetch, stale)
    assert context.log_end_offset == 0


def test_errors_do_not_put_off_the_election() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    context.now_ms += 1999
    context.answer(fetch, FetchResponse(error=ErrorCode.unknown_server_error, leader_id=2, leader_epoch=1))
    context.advance(1)
    assert context.node.role == "prospective"


def test_a_silent_leader_is_looked_for_elsewhere() -> None:
    context = RaftContext(voters=(2, 3))
    context.fail(context.follow(leader_id=3, epoch=1))
    assert context.sent(FetchRequest)[0].destination_id == 2


def test_an_observer_does_not_believe_hearsay_of_a_leader_that_fell_silent() -> None:
    context = RaftContext(voters=(2, 3))
    context.follow(leader_id=3, epoch=1)
    context.advance(context.config.fetch_timeout_ms)
    asked = {outbound.destination_id: outbound for outbound in context.sent(FetchRequest)}
    assert set(asked) == {2, 3}
    hearsay = FetchResponse(error=ErrorCode.not_leader_or_follower, leader_id=3, leader_epoch=1)
    context.answer(asked[2], hearsay)
    assert context.node.role == "unattached"
    context.advance(context.config.retry_backoff_ms)
    (again,) = context.sent(FetchRequest)
    newer = FetchResponse(error=ErrorCode.fenced_leader_epoch, leader_id=2, leader_epoch=2)
    context.answer(again, newer)
    assert (context.node.role, context.node.leader_id) == ("follower", 2)


def test_a_silent_leader_does_not_hold_up_the_search_in_a_newer_epoch() -> None:
    context = RaftContext(voters=(2, 3))
    context.follow(leader_id=2, epoch=1)
    context.advance(context.config.fetch_timeout_ms)
    to_other = [outbound for outbound in context.sent(FetchRequest) if outbound.destination_id == 3]
    context.answer(to_other[0], FetchResponse(error=ErrorCode.fenced_leader_epoch, leader_epoch=2))
    assert {outbound.destination_id for outbound in context.sent(FetchRequest)} == {2, 3}


def test_a_silent_leader_that_answers_after_all_is_followed_again() -> None:
    context = RaftContext(voters=(2, 3))
    context.follow(leader_id=3, epoch=1)
    context.advance(context.config.fetch_timeout_ms)
    asked = {outbound.destination_id: outbound for outbound in context.sent(FetchRequest)}
    answer = FetchResponse(leader_id=3, leader_epoch=1, log_start_offset=0, records=batch(0, 1).data)
    context.answer(asked[3], answer)
    assert (context.node.role, context.log_end_offset) == ("follower", 1)
