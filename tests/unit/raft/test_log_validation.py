"""Whether a log can serve a position, and what it answers if not: records, a point of divergence, or a snapshot.

After Kafka's MockLogTest, KafkaMetadataLogTest and the Fetch part of KafkaRaftClientSnapshotTest (rules R6,
). Random logs: tests/properties/test_log_index.py.
"""

from dataclasses import replace

import pytest

from kquorum.raft.log_index import LogIndex, diverging_point, snapshot_needed
from kquorum.raft.messages import FetchRequest, FetchResponse, LogSlice
from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import QuorumState
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import batch
from tests.support.raft.dynamic import DynamicContext

VALID = "valid"
Answer = str | tuple[str, int, int]


def log_of(*epochs: tuple[int, int], start: int = 0, snapshots: tuple[tuple[int, int], ...] = ()) -> LogIndex:
    """A log with so many records of each epoch ((epoch, records), ...) and snapshots ((end offset, epoch), ...)."""
    starts, end = [], start
    for epoch, records in epochs:
        starts.append((epoch, end))
        end += records
    taken = tuple(OffsetAndEpoch(*snapshot) for snapshot in snapshots)
    return LogIndex(LogSummary(start, end, tuple(starts), snapshots=taken))


def validate(log: LogIndex, offset: int, epoch: int) -> Answer:
    """What Kafka calls validateOffsetAndEpoch."""
    snapshot_id = snapshot_needed(log, offset, epoch)
    if snapshot_id is not None:
        return "snapshot", snapshot_id.offset, snapshot_id.epoch
    diverging = diverging_point(log, offset, epoch)
    return VALID if diverging is None else ("diverging", diverging.offset, diverging.epoch)


@pytest.mark.parametrize(
    ("log", "offset", "epoch", "expected"),
    [
        # testValidateEpochGreaterThanLastKnownEpoch
        (log_of((1, 1)), 1, 2, ("diverging", 1, 1)),
        # testValidateEpochLessThanOldestSnapshotEpoch
        (log_of(start=1, snapshots=((1, 1),)), 1, 0, ("snapshot", 1, 1)),
        # testValidateOffsetLessThanOldestSnapshotOffset
        (log_of(start=2, snapshots=((2, 1),)), 1, 1, ("snapshot", 2, 1)),
        # testValidateOffsetEqualToOldestSnapshotOffset
        (log_of(start=2, snapshots=((2, 1),)), 2, 1, VALID),
        # testValidateUnknownEpochLessThanLastKnownGreaterThanOldestSnapshot
        (log_of((1, 5), (2, 5), (4, 5), start=10, snapshots=((10, 1),)), 100, 3, ("diverging", 20, 2)),
        # testValidateEpochLessThanFirstEpochInLog
        (log_of((3, 5), start=10, snapshots=((10, 1),)), 100, 2, ("diverging", 10, 1)),
        # testValidateOffsetGreatThanEndOffset
        (log_of((1, 1)), 2, 1, ("diverging", 1, 1)),
        # testValidateOffsetLessThanLEO
        (log_of((1, 10), (2, 10)), 11, 1, ("diverging", 10, 1)),
        # testValidateValidEpochAndOffset
        (log_of((1, 6)), 5, 1, VALID),
        # The worked example of rule R6.2
        (log_of((1, 3), (3, 3), (5, 3)), 6, 2, ("diverging", 3, 1)),
        # An empty log serves an empty follower, and tells all others to start again.
        (log_of(), 0, 0, VALID),
        (log_of(), 3, 2, ("diverging", 0, 0)),
    ],
)
def test_validation(log: LogIndex, offset: int, epoch: int, expected: Answer) -> None:
    assert validate(log, offset, epoch) == expected


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0)), (1, (4, 1)), (2, (7, 2)), (3, (7, 2)), (4, (9, 4)), (5, (9, 4))],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next_one_known(
    epoch: int, expected: tuple[int, int]
) -> None:
    """testEndOffsetForEpoch"""
    assert log_of((1, 4), (2, 3), (4, 2)).end_offset_for_epoch(epoch) == OffsetAndEpoch(*expected)


def test_an_epoch_starts_with_its_first_record_and_no_earlier_one_follows() -> None:
    """testAssignEpochStartOffset, testMonotonicEpochStartOffset"""
    log = log_of((1, 4))
    log.append(batch(4, 3))
    log.append(batch(5, 3, count=2))
    assert (log.epochs, log.last_epoch) == (((1, 0), (3, 4)), 3)
    with pytest.raises(AssertionError):
        log.append(batch(7, 2))


@pytest.mark.parametrize("base_offset", [3, 5])
def test_a_batch_continues_the_log_or_is_our_bug(base_offset: int) -> None:
    """testUnexpectedAppendOffset"""
    with pytest.raises(AssertionError):
        log_of((1, 4)).append(batch(base_offset, 1))


def test_a_log_that_begins_with_a_snapshot_has_its_epoch_and_end() -> None:
    """testTruncateFullyToLatestSnapshot"""
    log = log_of(start=10, snapshots=((10, 4),))
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (10, 10, 4)
    log.append(batch(10, 5))
    log.truncate_to(10)
    assert (log.log_end_offset, log.last_epoch) == (10, 4)
    with pytest.raises(AssertionError):
        log.truncate_to(9)


# What a leader answers (KafkaRaftClientSnapshotTest)

OLDEST = OffsetAndEpoch(3, 2)


def leader_of(log: list[LogBatch], *snapshots: OffsetAndEpoch, start: int = 0) -> DynamicContext:
    context = DynamicContext(
        log=log,
        snapshots=snapshots,
        log_start_offset=start,
        state=QuorumState(leader_epoch=log[-1].leader_epoch),
    )
    context.lead(committed=False)
    return context


def ask(context: DynamicContext, offset: int, last_epoch: int) -> FetchResponse:
    """A fetch that waits for nothing."""
    response = context.receive(replace(context.fetch(2, offset, last_epoch), max_wait_ms=0))
    assert isinstance(response, FetchResponse)
    assert (response.leader_id, response.leader_epoch) == (1, context.node.leader_epoch)
    return response


def two_epochs() -> list[LogBatch]:
    """Records 0 to 5 of epoch 2, with the oldest snapshot in between, and 6 to 8 of epoch 4."""
    return [batch(0, 2, count=3), batch(3, 2, count=3), batch(6, 4, count=3)]


@pytest.mark.parametrize(
    ("offset", "last_epoch"), [(1, 2), (2, 2), (6, 1)], ids=["below the start", "just below", "older epoch"]
)
def test_a_follower_behind_the_snapshot_gets_its_id_at_once(offset: int, last_epoch: int) -> None:
    """testFetchRequestOffsetLessThanLogStart, testLeaderImmediatelySendsSnapshotId"""
    context = leader_of(two_epochs()[1:], OLDEST, start=3)
    response = context.receive(context.fetch(2, offset, last_epoch))
    assert response is not None, "it does not wait"
    assert (response.error, response.snapshot_id, response.diverging) == (ErrorCode.none, OLDEST, None)
    assert response.records == b""


def test_of_several_snapshots_the_newest_is_named() -> None:
    newest = OffsetAndEpoch(8, 4)
    context = leader_of(two_epochs()[1:], OLDEST, newest, start=3)
    assert ask(context, 1, 2).snapshot_id == newest
    assert ask(context, 3, 2).snapshot_id is None, "the log still serves who stands at its start"


def test_a_client_that_begins_at_zero_skips_the_replay() -> None:
    """testFetchRequestOffsetAtZero: even while the log still begins there."""
    context = leader_of(two_epochs(), OLDEST)
    assert ask(context, 0, 0).snapshot_id == OLDEST


def test_a_later_last_epoch_than_the_leaders_cannot_be() -> None:
    """testFetchRequestWithLargerLastFetchedEpoch"""
    context = leader_of(two_epochs(), OLDEST)
    response = ask(context, 4, context.node.leader_epoch + 1)
    assert (response.error, response.snapshot_id) == (ErrorCode.invalid_request, None)


def test_an_unknown_epoch_is_truncated_to_the_snapshots_end() -> None:
    """testFetchRequestTruncateToLogStart"""
    context = leader_of([batch(0, 2, count=3), batch(3, 4, count=3)], OLDEST)
    response = ask(context, 4, 3)
    assert (response.diverging, response.snapshot_id) == (OLDEST, None)
    trimmed = leader_of([batch(3, 4, count=3)], OLDEST, start=3)
    assert ask(trimmed, 4, 3).diverging == OLDEST


@pytest.mark.parametrize("start", [0, 3])
def test_a_follower_at_the_snapshots_end_gets_records(start: int) -> None:
    """testFetchRequestAtLogStartOffsetWithValidEpoch"""
    context = leader_of(two_epochs()[1 if start else 0 :], OLDEST, start=start)
    response = ask(context, 3, 2)
    assert (response.error, response.snapshot_id, response.diverging) == (ErrorCode.none, None, None)
    assert isinstance(response.records, LogSlice)
    assert (response.records.start_offset, response.log_start_offset) == (3, start)


def test_a_follower_with_another_history_gets_the_snapshot() -> None:
    """testFetchRequestAtLogStartOffsetWithInvalidEpoch"""
    context = leader_of(two_epochs()[1:], OLDEST, start=3)
    assert ask(context, 3, 3).snapshot_id == OLDEST


@pytest.mark.parametrize("start", [0, 3])
def test_a_follower_from_before_the_oldest_snapshots_epoch_gets_the_snapshot(start: int) -> None:
    """testFetchRequestWithLastFetchedEpochLessThanOldestSnapshot: however far it claims to be."""
    context = leader_of(two_epochs()[1 if start else 0 :], OLDEST, start=start)
    assert ask(context, context.log_end_offset, 1).snapshot_id == OLDEST


def test_a_fetch_answered_with_a_snapshot_does_not_keep_a_leader() -> None:
    """Rule R6.3: such an answer credits nothing."""
    context = leader_of(two_epochs()[1:], OLDEST, start=3)
    context.advance(context.config.check_quorum_timeout_ms - 1)
    ask(context, 1, 2)
    context.advance(1)
    assert context.node.role == "resigned"


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(-1, 3), OffsetAndEpoch(3, -1)])
def test_a_senseless_snapshot_id_puts_no_election_off(snapshot_id: OffsetAndEpoch) -> None:
    """testFetchResponseWithInvalidSnapshotId"""
    context = DynamicContext()
    fetch = context.follow(2, 3)
    context.advance(context.config.fetch_timeout_ms - context.config.retry_backoff_ms - 1)
    context.answer(fetch, FetchResponse(leader_id=2, leader_epoch=3, snapshot_id=snapshot_id))
    context.advance(context.config.retry_backoff_ms)
    assert len(context.sent(FetchRequest)) == 1, "after the back-off it asks again"
    context.advance(1)
    assert context.node.role == "prospective"
