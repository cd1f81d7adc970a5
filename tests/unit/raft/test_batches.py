"""Proposals on their way into batches, after Kafka's BatchAccumulatorTest (rule R12.1)."""

import pytest

from kquorum.raft.batches import BATCH_HEADER_BYTES, RECORD_OVERHEAD_BYTES, Accumulator
from kquorum.raft.errors import NotLeaderError, RecordBatchTooLargeError
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_batch import LogBatch
from tests.support.raft.context import RaftContext

EPOCH = 3
# Room for four records of ten bytes.
FOUR_RECORDS = BATCH_HEADER_BYTES + 4 * (10 + RECORD_OVERHEAD_BYTES)
VALUE = b"0123456789"


@pytest.fixture
def accumulator() -> Accumulator:
    made = Accumulator(FOUR_RECORDS, CompressionCodec.NONE)
    made.begin(EPOCH, 100)
    return made


def values_of(batch: LogBatch) -> list[bytes | None]:
    return [record.value for record in batch.records]


def test_nothing_in_nothing_out(accumulator: Accumulator) -> None:
    """testLingerIgnoredIfAccumulatorEmpty, testCloseWhenEmpty"""
    assert accumulator.is_empty
    assert accumulator.drain() == []
    accumulator.end()


def test_groups_of_one_turn_share_a_batch(accumulator: Accumulator) -> None:
    """testSingleBatchAccumulation"""
    last_offsets = [accumulator.add([VALUE], 7), accumulator.add([b"a", b"b"], 8)]
    assert last_offsets == [100, 102]
    (batch,) = accumulator.drain()
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (100, 102, EPOCH)
    assert values_of(batch) == [VALUE, b"a", b"b"]
    assert {record.timestamp_ms for record in batch.records} == {7}, "its first group's"
    assert not batch.is_control


def test_a_full_batch_is_closed_and_the_next_one_begun(accumulator: Accumulator) -> None:
    """testMultipleBatchAccumulation"""
    for _ in range(9):
        accumulator.add([VALUE], 1)
    batches = accumulator.drain()
    assert [(batch.base_offset, batch.last_offset) for batch in batches] == [
        (100, 103),
        (104, 107),
        (108, 108),
    ]
    assert all(len(batch.data) <= FOUR_RECORDS for batch in batches)


@pytest.mark.parametrize("waiting", [0, 1, 2, 3, 4])
def test_a_group_is_never_split_over_batches(accumulator: Accumulator, waiting: int) -> None:
    for _ in range(waiting):
        accumulator.add([VALUE], 1)
    accumulator.add([b"x" * 10] * 3, 2)
    whole = [values_of(batch) for batch in accumulator.drain()]
    assert next(batch for batch in whole if b"x" * 10 in batch)[-3:] == [b"x" * 10] * 3
    assert sum(len(batch) for batch in whole) == waiting + 3


def test_a_group_that_fits_no_batch_is_refused_and_takes_no_offset(accumulator: Accumulator) -> None:
    accumulator.add([VALUE], 1)
    with pytest.raises(RecordBatchTooLargeError, match="do not fit"):
        accumulator.add([VALUE] * 5, 1)
    assert accumulator.next_offset == 101
    assert accumulator.add([VALUE] * 4, 1) == 104


def test_what_was_drained_is_not_drained_again(accumulator: Accumulator) -> None:
    """testForceDrain, testCompletedBatchReleaseBuffer"""
    accumulator.add([VALUE], 1)
    assert len(accumulator.drain()) == 1
    assert accumulator.is_empty
    assert accumulator.drain() == []
    assert accumulator.add([VALUE], 2) == 101
    (batch,) = accumulator.drain()
    assert batch.base_offset == 101


def test_no_epoch_begins_or_ends_over_what_waits(accumulator: Accumulator) -> None:
    """testUnflushedBuffersReleasedByClose: what was promised an offset must be written first."""
    accumulator.add([VALUE], 1)
    with pytest.raises(AssertionError):
        accumulator.end()
    with pytest.raises(AssertionError):
        accumulator.begin(EPOCH + 1, 0)
    accumulator.drain()
    accumulator.end()


def test_nothing_is_taken_outside_an_epoch(accumulator: Accumulator) -> None:
    accumulator.end()
    with pytest.raises(AssertionError):
        accumulator.add([VALUE], 1)


def test_an_empty_group_is_our_bug(accumulator: Accumulator) -> None:
    with pytest.raises(AssertionError):
        accumulator.add([], 1)


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
def test_large_batches_are_compressed_and_read_back(codec: CompressionCodec) -> None:
    accumulator = Accumulator(1_000_000, codec)
    accumulator.begin(EPOCH, 0)
    accumulator.add([b"value" * 100] * 50, 1)
    (batch,) = accumulator.drain()
    assert values_of(batch) == [b"value" * 100] * 50
    assert (len(batch.data) < 5000) is (codec is CompressionCodec.LZ4)


# At the leader


def test_the_leader_change_is_written_before_anything_proposed() -> None:
    """testLeaderChangeMessageWritten"""
    context = RaftContext()
    epoch = context.become_leader()
    assert context.node.propose(context.now_ms, epoch, [VALUE]) == 1
    context.turn()
    assert [(batch.base_offset, batch.is_control) for batch in context.log] == [(0, True), (1, False)]


def test_what_an_old_leader_was_proposed_is_in_its_own_epoch_or_nowhere() -> None:
    """testForceDrainBeforeAppendLeaderChangeMessage"""
    context = RaftContext()
    epoch = context.become_leader()
    context.node.propose(context.now_ms, epoch, [VALUE])
    context.begin(2, epoch + 1)
    assert [batch.leader_epoch for batch in context.log] == [epoch, epoch]
    with pytest.raises(NotLeaderError):
        context.node.propose(context.now_ms, epoch, [VALUE])


def test_any_number_of_batches_may_wait_within_a_turn() -> None:
    """testMaxNumberOfBatches: Kafka raises beyond ten; here a turn of the loop drains all, so they cannot pile up."""
    accumulator = Accumulator(FOUR_RECORDS, CompressionCodec.NONE)
    accumulator.begin(EPOCH, 0)
    for _ in range(100):
        accumulator.add([VALUE] * 4, 1)
    batches = accumulator.drain()
    assert [batch.base_offset for batch in batches] == list(range(0, 400, 4))
