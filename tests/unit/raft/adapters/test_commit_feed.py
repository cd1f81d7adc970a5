"""A high watermark inside a batch waits for the rest of it."""

from kquorum.raft.adapters.delivery import CHUNK_RECORDS, UNSLICED_RECORDS, CommitFeed
from kquorum.raft.ready import LeaderAndEpoch
from kquorum.wire.log_batch import OffsetAndEpoch, build_batch
from tests.support.memory_log import MemoryLog
from tests.support.state_machines import RecordingStateMachine

SLICES = 3


def recorder() -> RecordingStateMachine:
    return RecordingStateMachine(slices=SLICES)


def test_a_batch_is_handed_over_when_all_of_it_is_committed() -> None:
    log, heard = MemoryLog(), recorder()
    log.append([build_batch(0, 1, 1, [(None, b"a")]), build_batch(1, 1, 1, [(None, b"b")] * 4)])
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(3)
    feed.deliver(0)
    feed.deliver(0)
    assert (heard.offsets, feed.has_more) == ([0], False)
    feed.advance(5)
    feed.deliver(0)
    assert heard.offsets == [0, 1]


def long_log() -> MemoryLog:
    """A batch of one record, a long one, a short one."""
    log = MemoryLog()
    log.append([build_batch(0, 1, 1, [(None, b"a")])])
    log.append([build_batch(1, 1, 1, [(None, b"b")] * (CHUNK_RECORDS + 1))])
    log.append([build_batch(CHUNK_RECORDS + 2, 1, 1, [(None, b"c")])])
    return log


def test_a_long_batch_is_handed_over_in_slices_and_leadership_waits_for_the_last() -> None:
    log, heard = long_log(), recorder()
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(CHUNK_RECORDS + 3)
    feed.lead_changed(0, LeaderAndEpoch(1, 1))
    feed.deliver(0)
    assert (heard.offsets, heard.slices) == ([0], [])
    for turn in range(1, SLICES + 1):
        assert feed.has_more
        assert (feed.applied_offset, heard.leaders) == (1, [])
        feed.deliver(turn)
    assert heard.slices == [(1, 1), (2, 1), (3, 1)]
    assert feed.applied_offset == CHUNK_RECORDS + 2
    feed.deliver(4)
    assert (heard.offsets, heard.leaders, feed.has_more) == ([0, CHUNK_RECORDS + 2], [(1, 1)], False)


def test_batches_of_a_transaction_are_handed_over_in_slices() -> None:
    log, heard = MemoryLog(), recorder()
    log.append([build_batch(number, 1, 1, [(None, b"a")]) for number in range(3)])
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(1)
    feed.deliver(0)
    heard.is_in_transaction = True
    feed.advance(2)
    feed.deliver(1)
    heard.is_in_transaction = False  # that batch has ended it, and its image is being made
    feed.advance(3)
    for turn in range(2, SLICES + 1):
        assert feed.applied_offset == 1
        feed.deliver(turn)
    assert heard.slices == [(1, 1), (2, 1), (3, 1)]
    assert feed.applied_offset == 2
    feed.deliver(4)
    assert (heard.offsets, feed.has_more) == ([0, 2], False)


def test_many_records_in_few_bytes_are_not_handed_over_together() -> None:
    log, heard = MemoryLog(), recorder()
    half = CHUNK_RECORDS * 2 // 3
    log.append([build_batch(number * half, 1, 1, [(None, b"")] * half) for number in range(3)])
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(3 * half)
    for _ in range(SLICES):
        assert feed.applied_offset == 0
        feed.deliver(0)
    assert feed.applied_offset == half


def test_a_piece_of_many_records_is_handed_over_in_slices_whatever_its_batches() -> None:
    log, heard = MemoryLog(), recorder()
    log.append([build_batch(number, 1, 1, [(None, b"")]) for number in range(UNSLICED_RECORDS + 1)])
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(UNSLICED_RECORDS)
    feed.deliver(0)
    assert feed.applied_offset == UNSLICED_RECORDS
    few = CommitFeed(log, recorder(), node_id=1, applied_offset=0)
    few.advance(UNSLICED_RECORDS + 1)
    few.deliver(0)
    assert few.has_more
    assert few.applied_offset == 0


def test_a_snapshot_that_comes_in_the_middle_of_a_long_batch_ends_it() -> None:
    log, heard = long_log(), recorder()
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(CHUNK_RECORDS + 3)
    feed.deliver(0)
    feed.deliver(0)
    assert heard.slices == [(0, 1)]
    snapshot = OffsetAndEpoch(CHUNK_RECORDS + 2, 1)
    feed.begin_loading(snapshot)
    feed.deliver(0)
    assert heard.slices == [(0, 1)]
    feed.loaded(0, snapshot, object())
    feed.deliver(0)
    assert (heard.offsets, heard.slices) == ([0, CHUNK_RECORDS + 2], [])
