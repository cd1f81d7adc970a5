"""The segments of one log: begun, read over, cut and given up, by an owner that is no replica."""

from pathlib import Path
from random import Random

import pytest

from kquorum.storage.segment import SegmentLimits
from kquorum.storage.segment_list import SegmentList, first_segment
from kquorum.wire.log_batch import LogBatch, build_batch, parse_batches
from tests.support.fault_file_system import FaultFileSystem
from tests.support.storage.disk_stops import Stopped, stopping_before
from tests.support.storage.log_parts import batch, flush, new_log, recovered_batches

FOLDER = Path("/disk/topic-0")
SIZE = len(batch(0).data)


def batches(start: int, end: int, epoch: int = 1) -> list[LogBatch]:
    return [batch(offset, epoch) for offset in range(start, end)]


def log_of(fs: FaultFileSystem, end: int) -> SegmentList:
    """Three batches a segment, all of them flushed."""
    log = new_log(FOLDER, 3 * SIZE, fs)
    log.append(batches(0, end))
    flush(log)
    return log


def offsets_of(fs: FaultFileSystem) -> list[int]:
    return [int(name.partition(".")[0]) for name in fs.names(FOLDER) if name.endswith(".log")]


@pytest.fixture
def fs() -> FaultFileSystem:
    return FaultFileSystem(FOLDER)


def test_a_segment_has_its_name_once_all_before_it_is_durable(fs: FaultFileSystem) -> None:
    log = new_log(FOLDER, 3 * SIZE, fs)
    log.append(batches(0, 7))
    assert offsets_of(fs) == [0]
    flush(log)
    assert offsets_of(fs) == [0, 3, 6]
    log.close()
    assert fs.open_descriptors == 0
    assert recovered_batches(fs, FOLDER) == batches(0, 7)


def test_the_age_of_a_segment_is_that_of_its_batches(fs: FaultFileSystem) -> None:
    log = SegmentList(FOLDER, SegmentLimits(segment_ms=500), [first_segment(FOLDER, 0, fs)], fs)
    for offset, timestamp_ms in enumerate((0, 100, 500, 501, 900, 5000)):
        log.append([build_batch(offset, 1, timestamp_ms, [(None, b"value")])])
    flush(log)
    assert offsets_of(fs) == [0, 3, 5]
    log.close()


def test_a_read_is_of_one_segment_and_of_whole_batches(fs: FaultFileSystem) -> None:
    log = log_of(fs, 8)
    epochs = [(1, 0)]
    assert parse_batches(log.read(1, 10_000, 8, epochs)) == tuple(batches(1, 3))
    assert parse_batches(log.read(3, 2 * SIZE + 1, 8, epochs)) == tuple(batches(3, 5))
    assert parse_batches(log.read(3, 1, 8, epochs)) == tuple(batches(3, 4))
    assert parse_batches(log.read(3, 10_000, 5, epochs)) == tuple(batches(3, 5))
    log.close()


@pytest.mark.parametrize("cut", range(9))
def test_a_cut_leaves_no_file_behind_and_is_durable(fs: FaultFileSystem, cut: int) -> None:
    log = log_of(fs, 8)
    log.truncate_to(min(cut, 8))
    left = fs.power_cut(Random(cut))
    log.append(batches(log.end_offset, 9, epoch=2))
    flush(log)
    log.close()
    kept = min(cut, 8)
    assert recovered_batches(left, FOLDER) == batches(0, kept)
    assert recovered_batches(fs, FOLDER) == [*batches(0, kept), *batches(kept, 9, epoch=2)]


def test_only_what_is_durable_and_wholly_below_is_given_up_and_never_the_last(fs: FaultFileSystem) -> None:
    log = log_of(fs, 8)
    log.append(batches(8, 10))
    assert [segment.base_offset for segment in log.take_below(5)] == [0]
    assert [segment.base_offset for segment in log.take_below(10)] == [3], "the one behind has new batches"
    flush(log)
    assert [segment.base_offset for segment in log.take_below(10)] == [6]
    assert (log.base_offset, log.end_offset) == (9, 10)


def test_started_again_it_is_empty_at_its_offset_whatever_lay_there(fs: FaultFileSystem) -> None:
    log = log_of(fs, 8)
    fs.put(FOLDER / f"{20:020}.log", b"behind damage, and never opened")
    log.start_over(100)
    flush(log)
    assert (log.base_offset, log.end_offset, offsets_of(fs)) == (100, 100, [100])
    log.append([batch(100)])
    flush(log)
    log.close()
    assert recovered_batches(fs, FOLDER) == [batch(100)]


def test_whenever_the_process_ends_no_batch_is_missing_in_the_middle(fs: FaultFileSystem) -> None:
    """What was flushed is there, whatever else is."""
    stop_at, is_done = 0, False
    while not is_done:
        disk, flushed = FaultFileSystem(FOLDER), 0
        disk.on_call = stopping_before(stop_at)
        try:
            log = new_log(FOLDER, 3 * SIZE, disk)
            for start in range(0, 12, 2):
                log.append(batches(start, start + 2))
                flush(log)
                flushed = start + 2
            is_done = True
        except Stopped:
            stop_at += 1
        for seed in range(5):
            found = recovered_batches(disk.power_cut(Random(seed)), FOLDER)
            assert found == batches(0, len(found))
            assert len(found) >= flushed
    assert stop_at > 20
