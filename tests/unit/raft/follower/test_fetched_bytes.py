"""What a leader sends is bytes until it has been looked at (rule R8.1)."""

import struct
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquorum.raft.messages import FetchRequest
from kquorum.raft.ready import QuorumState
from kquorum.wire.log_batch import LogBatch
from tests.support.raft.context import RaftContext, batch

EPOCH = 2
VALID = batch(0, EPOCH, count=3).data
CRC_OFFSET = 17
MAGIC_OFFSET = 16
LENGTH_OFFSET = 8


def following(**config: int) -> RaftContext:
    return RaftContext((1, 2), state=QuorumState(leader_epoch=EPOCH, leader_id=2), **config)


def answer_with(context: RaftContext, records: bytes) -> None:
    (fetch,) = context.sent(FetchRequest)
    response = replace(context.fetched(high_watermark=0), records=records)
    context.answer(fetch, response)


def patched(offset: int, form: str, value: int) -> bytes:
    data = bytearray(VALID)
    struct.pack_into(form, data, offset, value)
    return bytes(data)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_arbitrary_bytes_leave_the_log_as_it_was(records: bytes) -> None:
    context = following()
    answer_with(context, records)
    assert (context.log_end_offset, context.node.log_end_offset) == (0, 0)
    assert context.standing == ("follower", EPOCH, 2)


@given(st.integers(0, len(VALID) - 1), st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_a_batch_with_a_changed_byte_is_never_another_batch(position: int, change: int) -> None:
    """Offset and epoch lie outside the checksum: a batch that lies about them does not continue the log."""
    data = bytearray(VALID)
    data[position] ^= change
    context = following()
    answer_with(context, bytes(data))
    assert context.log_end_offset in (0, 3)
    if context.log_end_offset:
        assert LENGTH_OFFSET + 4 <= position < MAGIC_OFFSET, "only the leader epoch may pass, and only below"
        assert context.log[0].leader_epoch < EPOCH


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(VALID[:11], id="shorter than offset and length"),
        pytest.param(VALID[:40], id="cut in the header"),
        pytest.param(VALID[:-1], id="cut in the records"),
        pytest.param(patched(LENGTH_OFFSET, ">i", 0), id="no length"),
        pytest.param(patched(LENGTH_OFFSET, ">i", -1), id="negative length"),
        pytest.param(patched(LENGTH_OFFSET, ">i", 2**31 - 1), id="length of gigabytes"),
        pytest.param(patched(LENGTH_OFFSET, ">i", 20), id="length below a header's"),
        pytest.param(patched(MAGIC_OFFSET, ">b", 1), id="an old format"),
        pytest.param(patched(MAGIC_OFFSET, ">b", 3), id="a format to come"),
        pytest.param(patched(CRC_OFFSET, ">I", 0), id="checksum"),
    ],
)
def test_a_batch_that_is_not_whole_or_sound_is_dropped(records: bytes) -> None:
    context = following()
    answer_with(context, records)
    assert (context.log_end_offset, context.sent(FetchRequest)) == (0, []), "asking at once would spin"
    context.advance(context.config.retry_backoff_ms)
    answer_with(context, VALID)
    assert context.log_end_offset == 3


def test_what_is_sound_is_taken_up_to_the_first_batch_that_is_not() -> None:
    context = following()
    answer_with(context, VALID + batch(3, EPOCH).data[:-1])
    assert context.log_end_offset == 3


def test_a_batch_of_an_epoch_above_the_leaders_is_not_appended() -> None:
    context = following()
    answer_with(context, batch(0, EPOCH, count=10).data + batch(10, EPOCH + 1, count=10).data)
    assert context.log_end_offset == 10
    assert context.node.replica.log.last_epoch == EPOCH
    assert context.standing == ("follower", EPOCH, 2)


def logged(*batches: LogBatch) -> RaftContext:
    return RaftContext(log=batches, state=QuorumState(leader_epoch=EPOCH, leader_id=2))


def test_a_fetch_asks_for_what_the_configuration_allows() -> None:
    (fetch,) = following(max_fetch_bytes=1024).sent(FetchRequest)
    assert fetch.request.max_bytes == 1024


def test_a_fetch_tells_the_high_watermark_that_its_sender_knows() -> None:
    context = logged(batch(0, EPOCH, count=3), batch(3, EPOCH, count=3))
    (fetch,) = context.sent(FetchRequest)
    assert (fetch.request.fetch_offset, fetch.request.high_watermark) == (6, -1)
    context.answer(fetch, context.fetched(high_watermark=6))
    (fetch,) = context.sent(FetchRequest)
    assert (fetch.request.fetch_offset, fetch.request.high_watermark) == (6, 6)
