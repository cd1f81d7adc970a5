"""What the core knows of snapshots of its own, and where its log may begin, after Kafka's MockLogTest and
KafkaMetadataLogTest. Random logs: tests/properties/test_log_index.py."""

import pytest

from kquorum.raft.inputs import LogStartAdvanced, SnapshotWritten
from kquorum.raft.log_index import LogIndex
from kquorum.raft.ready import QuorumState
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.context import batch
from tests.support.raft.snapshots import SnapshotContext, leader_with

FIRST, SECOND = OffsetAndEpoch(2, 1), OffsetAndEpoch(4, 1)


def log_of(context: SnapshotContext) -> LogIndex:
    return context.node.replica.log


def two_batches() -> SnapshotContext:
    """A leader of epoch 2 with 0 to 3 of epoch 1 and its own record at 4, all committed."""
    return leader_with(log=[batch(0, 1, count=2), batch(2, 1, count=2)])


def test_the_newest_snapshot_is_known_from_the_start_and_when_one_is_written() -> None:
    """testLatestSnapshotId, testCreateSnapshot"""
    context = SnapshotContext(
        log=[batch(0, 1, count=4)], snapshots=[FIRST], state=QuorumState(leader_epoch=1)
    )
    assert log_of(context).newest_snapshot == FIRST
    context.follow(2, 2)
    context.feed(SnapshotWritten(SECOND))
    assert (log_of(context).first_snapshot, log_of(context).newest_snapshot) == (FIRST, SECOND)


def test_without_snapshots_there_is_no_newest_one() -> None:
    """testLatestSnapshotIdMissing"""
    assert log_of(two_batches()).newest_snapshot is None


def test_one_that_is_known_already_is_not_known_twice() -> None:
    """testCreateExistingSnapshot"""
    context = two_batches()
    for _ in range(2):
        context.feed(SnapshotWritten(FIRST))
    assert log_of(context).snapshots == (FIRST,)


def test_one_that_ends_below_the_logs_start_is_not_taken() -> None:
    """testCreateSnapshotBeforeLogStartOffset"""
    context = two_batches()
    context.feed(SnapshotWritten(SECOND))
    context.feed(LogStartAdvanced(4))
    context.feed(SnapshotWritten(FIRST))
    assert log_of(context).snapshots == (SECOND,)


def test_one_that_ends_beyond_the_log_is_our_bug() -> None:
    context = two_batches()
    with pytest.raises(AssertionError):
        context.feed(SnapshotWritten(OffsetAndEpoch(context.log_end_offset + 1, 2)))


def test_the_log_begins_at_a_snapshot_and_goes_on() -> None:
    """testUpdateLogStartOffset, testUpdateLogStartOffsetWillRemoveOlderSnapshot"""
    context = SnapshotContext(
        log=[batch(0, 1, count=4)], snapshots=[FIRST, SECOND], state=QuorumState(leader_epoch=1)
    )
    context.answer(context.follow(2, 2), context.fetched(high_watermark=4))
    context.feed(LogStartAdvanced(4))
    log = log_of(context)
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (4, 4, 1)
    assert log.snapshots == (SECOND,)
    fetch = context.fetch_sent()
    assert (fetch.fetch_offset, fetch.last_fetched_epoch) == (4, 1)
    log.append(batch(4, 2, count=2))
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (4, 6, 2)


def test_the_log_begins_at_nothing_that_is_not_committed() -> None:
    """testFailToIncreaseLogStartPastHighWatermark"""
    context = SnapshotContext(log=[batch(0, 1, count=6)], state=QuorumState(leader_epoch=1))
    context.answer(context.follow(2, 2), context.fetched(high_watermark=2))
    with pytest.raises(AssertionError):
        context.feed(LogStartAdvanced(4))
    assert log_of(context).log_start_offset == 0


def test_what_was_in_force_where_a_snapshot_ends_is_what_it_has_to_say() -> None:
    context = two_batches()
    assert context.begin_add(4)
    added_at = context.log_end_offset - 1
    assert context.node.quorum_at(added_at).voters.ids == (1, 2, 3)
    assert context.node.quorum_at(added_at + 1).voters.ids == (1, 2, 3, 4)
    assert context.node.quorum_at(added_at + 1).kraft_version == 1
