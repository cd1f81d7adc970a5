"""What every PartitionLog promises (broker.log.partition_log): asked of each implementation alike.

`CASES` names how each is opened; a log on disk enters itself there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kquorum.broker.log.errors import CorruptRecord, InvalidRecord, OffsetOutOfRange, UnexpectedAppendOffset
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import EpochEnd, Isolation, LogSlice, PartitionLog
from kquorum.wire.record_batch import read_batch_header, write_batch
from tests.support.batches import rewrite_offsets
from tests.support.broker.disk_logs import log_dir_at, offset_for_time, open_log
from tests.support.memory_partition_log import MemoryPartitionLog

NOW_MS = 1_000_000

CASES: dict[str, Callable[[Path], PartitionLog]] = {
    "memory": lambda _folder: MemoryPartitionLog(),
    "disk": lambda folder: open_log(log_dir_at(folder), now_ms=NOW_MS),
    # Each batch has an index entry.
    "disk in small segments": lambda folder: open_log(
        log_dir_at(folder), LogConfig(segment_bytes=900, index_interval_bytes=0), now_ms=NOW_MS
    ),
}


@pytest.fixture(params=sorted(CASES))
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PartitionLog]:
    made = CASES[request.param](tmp_path)
    yield made
    close = getattr(made, "close", None)
    if close is not None:
        close()


def produced(records: int = 1, *, value: bytes = b"value", timestamp_ms: int = NOW_MS) -> bytes:
    """A batch as a producer sends it."""
    return write_batch(
        base_offset=0, leader_epoch=-1, timestamp_ms=timestamp_ms, records=[(b"key", value)] * records
    )


def replicated(base_offset: int, epoch: int, records: int = 1) -> bytes:
    """A batch as a leader sends it."""
    return rewrite_offsets(produced(records), base_offset, epoch)


def lead(log: PartitionLog, epoch: int, *counts: int) -> None:
    for records in counts:
        log.append_as_leader(produced(records), leader_epoch=epoch, now_ms=NOW_MS)


def follow(log: PartitionLog, data: bytes, epoch: int = 9) -> None:
    log.append_as_follower(data, leader_epoch=epoch, now_ms=NOW_MS)


def read(
    log: PartitionLog,
    offset: int,
    max_bytes: int = 1 << 20,
    isolation: Isolation = Isolation.LOG_END,
    *,
    at_least_one_batch: bool = True,
) -> list[tuple[int, int]]:
    """(base offset, last offset) of what a read finds."""
    return ranges(
        log.read(offset, max_bytes=max_bytes, isolation=isolation, at_least_one_batch=at_least_one_batch)
    )


def ranges(found: LogSlice) -> list[tuple[int, int]]:
    data = b"".join(bytes(piece) for piece in found.pieces)
    assert len(data) == found.size_bytes
    batches, position = [], 0
    while position < len(data):
        header = read_batch_header(data, position)
        batches.append((header.base_offset, header.last_offset))
        position += header.size_in_bytes
    return batches


# Appends


def test_a_new_log_is_empty(log: PartitionLog) -> None:
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.size_bytes) == (0, 0, 0, 0)
    assert log.latest_epoch is None
    assert read(log, 0) == []


def test_a_leader_gives_offsets_and_its_epoch(log: PartitionLog) -> None:
    first = log.append_as_leader(produced(3), leader_epoch=4, now_ms=NOW_MS)
    second = log.append_as_leader(produced(2), leader_epoch=4, now_ms=NOW_MS)
    assert (first.first_offset, first.last_offset, second.first_offset, second.last_offset) == (0, 2, 3, 4)
    assert (log.log_end_offset, log.latest_epoch, log.high_watermark) == (5, 4, 0)
    stored = log.read(3, max_bytes=1 << 20, isolation=Isolation.LOG_END, at_least_one_batch=True)
    header = read_batch_header(b"".join(bytes(piece) for piece in stored.pieces))
    assert (header.base_offset, header.partition_leader_epoch) == (3, 4)


def test_a_follower_keeps_the_offsets_and_epochs_of_its_leader(log: PartitionLog) -> None:
    follow(log, replicated(0, 2, 3) + replicated(3, 5))
    assert (log.log_end_offset, log.latest_epoch) == (4, 5)
    assert log.end_of_epoch(2) == EpochEnd(2, 3)


def test_a_follower_leaves_out_a_batch_that_is_cut(log: PartitionLog) -> None:
    whole = replicated(0, 2, 3)
    appended = log.append_as_follower(whole + replicated(3, 2)[:-1], leader_epoch=2, now_ms=NOW_MS)
    assert (appended.first_offset, appended.last_offset, log.log_end_offset) == (0, 2, 3)


def test_a_follower_stops_before_a_batch_of_a_later_epoch_than_its_fetch(log: PartitionLog) -> None:
    follow(log, replicated(0, 2, 3) + replicated(3, 5), epoch=4)
    assert (log.log_end_offset, log.latest_epoch) == (3, 2)


def test_a_follower_appends_nothing_of_a_fetch_that_is_all_of_a_later_epoch(log: PartitionLog) -> None:
    appended = log.append_as_follower(replicated(0, 5), leader_epoch=4, now_ms=NOW_MS)
    assert (appended.first_offset, log.log_end_offset, log.latest_epoch) == (-1, 0, None)


def test_a_corrupt_batch_changes_nothing(log: PartitionLog) -> None:
    lead(log, 1, 2)
    damaged = bytearray(produced())
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecord):
        log.append_as_leader(bytes(damaged), leader_epoch=1, now_ms=NOW_MS)
    with pytest.raises(CorruptRecord):
        follow(log, rewrite_offsets(bytes(damaged), 2, 1))
    assert (log.log_end_offset, read(log, 0)) == (2, [(0, 1)])


def test_records_that_are_no_batch_are_refused(log: PartitionLog) -> None:
    with pytest.raises((InvalidRecord, CorruptRecord)):
        log.append_as_leader(b"", leader_epoch=1, now_ms=NOW_MS)
    assert log.log_end_offset == 0


def test_a_batch_below_the_end_of_a_followers_log_is_refused(log: PartitionLog) -> None:
    follow(log, replicated(0, 2, 3))
    with pytest.raises(UnexpectedAppendOffset):
        follow(log, replicated(1, 2, 3))
    assert log.log_end_offset == 3


def test_a_gap_between_batches_is_kept(log: PartitionLog) -> None:
    follow(log, replicated(0, 2))
    follow(log, replicated(7, 2))
    assert (log.log_end_offset, read(log, 3)) == (8, [(7, 7)])


# Reads


def test_a_read_begins_with_the_batch_that_holds_the_offset(log: PartitionLog) -> None:
    lead(log, 1, 3, 3, 3)
    assert read(log, 4) == [(3, 5), (6, 8)]


def test_a_read_has_whole_batches_within_its_bytes(log: PartitionLog) -> None:
    lead(log, 1, 1, 1, 1)
    size = len(produced())
    assert read(log, 0, 2 * size) == [(0, 0), (1, 1)]


def test_the_first_batch_comes_whole_where_the_reader_must_get_on(log: PartitionLog) -> None:
    lead(log, 1, 50)
    assert read(log, 0, 10) == [(0, 49)]
    assert read(log, 0, 10, at_least_one_batch=False) == []


def test_a_consumer_reads_up_to_the_high_watermark(log: PartitionLog) -> None:
    lead(log, 1, 2, 2, 2)
    log.update_high_watermark(4)
    assert read(log, 0, isolation=Isolation.HIGH_WATERMARK) == [(0, 1), (2, 3)]
    assert read(log, 4, isolation=Isolation.HIGH_WATERMARK) == []
    assert read(log, 5, isolation=Isolation.HIGH_WATERMARK) == []
    assert read(log, 4) == [(4, 5)]


def test_a_read_out_of_the_log_is_refused(log: PartitionLog) -> None:
    lead(log, 1, 4)
    log.update_high_watermark(4)
    log.advance_log_start_offset(2)
    for offset in (-1, 1, 5):
        with pytest.raises(OffsetOutOfRange):
            read(log, offset)
    assert read(log, 4) == []


def test_a_reader_of_committed_records_gets_a_list_of_aborted_transactions(log: PartitionLog) -> None:
    lead(log, 1, 1)
    log.update_high_watermark(1)
    found = log.read(0, max_bytes=100, isolation=Isolation.COMMITTED, at_least_one_batch=True)
    assert found.aborted_transactions is not None
    assert list(found.aborted_transactions) == []
    plain = log.read(0, max_bytes=100, isolation=Isolation.HIGH_WATERMARK, at_least_one_batch=True)
    assert plain.aborted_transactions is None


def test_a_time_finds_the_first_record_that_is_not_older(log: PartitionLog) -> None:
    for timestamp_ms in (NOW_MS, NOW_MS + 20, NOW_MS + 10):
        log.append_as_leader(produced(2, timestamp_ms=timestamp_ms), leader_epoch=3, now_ms=NOW_MS)
    found = offset_for_time(log, NOW_MS + 5)
    assert (found.offset, found.timestamp_ms, found.leader_epoch) == (2, NOW_MS + 20, 3)
    assert offset_for_time(log, NOW_MS + 21).offset == -1
    assert log.offset_of_max_time().offset == 2


# Watermarks


def test_the_high_watermark_stays_within_the_log(log: PartitionLog) -> None:
    lead(log, 1, 5)
    assert (log.update_high_watermark(9), log.high_watermark) == (5, 5)
    log.advance_log_start_offset(2)
    assert (log.update_high_watermark(0), log.high_watermark) == (2, 2)


def test_the_high_watermark_may_be_set_back(log: PartitionLog) -> None:
    lead(log, 1, 5)
    log.update_high_watermark(5)
    assert log.update_high_watermark(3) == 3


def test_the_log_start_moves_up_to_the_high_watermark_at_most(log: PartitionLog) -> None:
    lead(log, 1, 3, 3)
    log.update_high_watermark(4)
    with pytest.raises(OffsetOutOfRange):
        log.advance_log_start_offset(5)
    assert log.log_start_offset == 0
    assert log.advance_log_start_offset(4)
    assert not log.advance_log_start_offset(4)
    assert not log.advance_log_start_offset(1)
    assert (log.log_start_offset, read(log, 4)) == (4, [(3, 5)])


# Epochs


def test_the_end_of_an_epoch(log: PartitionLog) -> None:
    follow(log, replicated(0, 0, 2) + replicated(2, 3, 6) + replicated(8, 4, 5))
    follow(log, replicated(13, 7, 1) + replicated(14, 9, 3))
    log.assign_epoch_start(10)
    ends = {
        epoch: (end.leader_epoch, end.end_offset)
        for epoch in range(-1, 12)
        for end in [log.end_of_epoch(epoch)]
    }
    assert ends == {
        -1: (-1, -1),
        0: (0, 2),
        1: (0, 2),
        2: (0, 2),
        3: (3, 8),
        4: (4, 13),
        5: (4, 13),
        6: (4, 13),
        7: (7, 14),
        8: (7, 14),
        9: (9, 17),
        10: (10, 17),
        11: (-1, -1),
    }


def test_an_epoch_below_the_first_ends_where_the_first_begins(log: PartitionLog) -> None:
    follow(log, replicated(0, 4, 2))
    assert log.end_of_epoch(2) == EpochEnd(2, 0)


def test_a_new_leader_notes_its_epoch_before_it_has_records(log: PartitionLog) -> None:
    lead(log, 1, 2)
    log.assign_epoch_start(5)
    assert (log.latest_epoch, log.end_of_epoch(1), log.end_of_epoch(5)) == (5, EpochEnd(1, 2), EpochEnd(5, 2))


def test_an_epoch_that_is_assigned_again_keeps_its_start(log: PartitionLog) -> None:
    """A broker that restarts may learn again that it leads the epoch that it led before."""
    lead(log, 1, 2)
    lead(log, 5, 3)
    log.assign_epoch_start(5)
    assert (log.end_of_epoch(1), log.end_of_epoch(5)) == (EpochEnd(1, 2), EpochEnd(5, 5))


def test_an_epoch_without_records_gives_way_to_the_next(log: PartitionLog) -> None:
    lead(log, 1, 2)
    log.assign_epoch_start(5)
    log.assign_epoch_start(6)
    assert (log.latest_epoch, log.end_of_epoch(5)) == (6, EpochEnd(1, 2))


def test_epochs_below_the_log_start_shrink_to_the_one_in_force_there(log: PartitionLog) -> None:
    follow(log, replicated(0, 0, 2) + replicated(2, 3, 6) + replicated(8, 4, 5))
    log.update_high_watermark(13)
    log.advance_log_start_offset(5)
    assert log.end_of_epoch(3) == EpochEnd(3, 8)
    assert log.end_of_epoch(0) == EpochEnd(0, 5)


# Truncation


def test_truncation_takes_records_epochs_and_the_high_watermark_back(log: PartitionLog) -> None:
    follow(log, replicated(0, 0, 2) + replicated(2, 3, 6) + replicated(8, 4, 5))
    log.update_high_watermark(13)
    assert log.truncate_to(8)
    assert (log.log_end_offset, log.latest_epoch, log.high_watermark) == (8, 3, 8)
    assert read(log, 0) == [(0, 1), (2, 7)]
    follow(log, replicated(8, 6))
    assert (log.log_end_offset, log.latest_epoch) == (9, 6)


def test_truncation_at_the_end_takes_back_an_epoch_without_records(log: PartitionLog) -> None:
    """A leader that was deposed before it appended: its epoch must not stand in the way of its successor's."""
    lead(log, 1, 2)
    log.assign_epoch_start(5)
    assert not log.truncate_to(2)
    assert (log.latest_epoch, log.log_end_offset) == (1, 2)


def test_a_log_goes_on_elsewhere_after_it_was_emptied(log: PartitionLog) -> None:
    lead(log, 1, 4)
    log.update_high_watermark(4)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert log.latest_epoch is None
    follow(log, replicated(100, 3, 2))
    assert (log.log_end_offset, read(log, 100)) == (102, [(100, 101)])


def test_an_emptied_log_may_begin_below_its_next_record(log: PartitionLog) -> None:
    lead(log, 1, 4)
    log.truncate_fully_and_start_at(100, log_start_offset=90)
    assert (log.log_start_offset, log.log_end_offset) == (90, 100)


def test_a_flush_keeps_all(log: PartitionLog) -> None:
    lead(log, 1, 4)
    log.flush()
    assert (log.log_end_offset, read(log, 0)) == (4, [(0, 3)])
