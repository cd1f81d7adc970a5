"""Retention over a real folder: what is decided on its files, and what the log does about it; after
KafkaMetadataLogTest."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import list_snapshots
from kquorum.snapshots.adapters.inventory import list_files
from kquorum.snapshots.retention import Kept, RetentionLimits, given_up
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.log_folders import batches, segment_offsets, write_snapshot
from tests.support.storage.log_parts import batch

BATCH_BYTES = len(batch(0).data)
SEGMENT_BATCHES = 10
LONG_MS = 10**12
SIZE = RetentionLimits(max_bytes=SEGMENT_BATCHES * BATCH_BYTES)


def new_log(folder: Path, records: int) -> FileLog:
    log = FileLog(folder, SegmentLimits(segment_bytes=SEGMENT_BATCHES * BATCH_BYTES))
    log.append(batches(0, records))
    log.flush()
    return log


def clean(log: FileLog, folder: Path, limits: RetentionLimits, high_watermark: int, now_ms: int = 0) -> bool:
    """As the node's cleaner does; answers whether the log begins later now."""
    segments, snapshots = list_files(folder)
    kept = Kept(
        log_start_offset=log.log_start_offset, bound=high_watermark, segments=segments, snapshots=snapshots
    )
    gone = given_up(kept, limits, now_ms)
    if gone:
        log.advance_log_start(gone[-1].log_start_offset)
        log.flush()
    return bool(gone)


def ends(folder: Path) -> list[int]:
    return [each.offset for each in list_snapshots(folder)]


def test_the_log_begins_at_the_newest_of_two_snapshots(tmp_path: Path) -> None:
    """testAdvanceLogStartOffsetAfterCleaning"""
    log = new_log(tmp_path, 100)
    assert not clean(log, tmp_path, SIZE, high_watermark=0), "nothing is committed"
    assert not clean(log, tmp_path, SIZE, high_watermark=90), "there is no snapshot"
    write_snapshot(tmp_path, 25)
    assert not clean(log, tmp_path, SIZE, high_watermark=90), "the only one stays"
    write_snapshot(tmp_path, 50)
    assert not clean(log, tmp_path, SIZE, high_watermark=49), "it is not known to be committed"
    assert clean(log, tmp_path, SIZE, high_watermark=90)
    assert (log.log_start_offset, log.end_offset) == (50, 100)
    assert segment_offsets(tmp_path) == [50, 60, 70, 80, 90]
    log.close()


def test_of_many_snapshots_only_the_newest_stays(tmp_path: Path) -> None:
    """testDeleteSnapshots"""
    log = new_log(tmp_path, 100)
    for offset in (10, 20, 30, 40, 50, 60):
        write_snapshot(tmp_path, offset)
    assert clean(log, tmp_path, SIZE, high_watermark=100)
    assert log.snapshots() == (OffsetAndEpoch(60, 1),)
    assert (ends(tmp_path), log.log_start_offset) == ([60], 60)
    log.close()


def test_what_has_to_stay_may_be_more_than_the_limit(tmp_path: Path) -> None:
    """testSoftRetentionLimit"""
    log = new_log(tmp_path, 25)
    write_snapshot(tmp_path, 10)
    newest = write_snapshot(tmp_path, 20)
    limits = RetentionLimits(max_bytes=newest.stat().st_size)
    assert clean(log, tmp_path, limits, high_watermark=20)
    assert ends(tmp_path) == [20]
    segments, snapshots = list_files(tmp_path)
    sizes = [each.size_in_bytes for each in segments] + [each.size_in_bytes for each in snapshots]
    assert sum(sizes) > limits.max_bytes
    assert not clean(log, tmp_path, limits, high_watermark=25), "and goes on being it"
    log.close()


def test_segments_go_only_below_a_snapshot_however_old_they_are(tmp_path: Path) -> None:
    """testSegmentsLessThanLatestSnapshot"""
    log = new_log(tmp_path, 40)
    write_snapshot(tmp_path, 10)
    write_snapshot(tmp_path, 20)
    limits = RetentionLimits(max_bytes=SIZE.max_bytes, max_age_ms=1)
    assert clean(log, tmp_path, limits, high_watermark=40, now_ms=LONG_MS)
    assert (ends(tmp_path), log.log_start_offset) == ([20], 20)
    assert segment_offsets(tmp_path) == [20, 30]
    assert not clean(log, tmp_path, limits, high_watermark=40, now_ms=LONG_MS)
    log.flush()
    assert segment_offsets(tmp_path) == [20, 30]
    log.close()


@pytest.mark.parametrize("plant", [lambda path: path.symlink_to(path.parent.parent / "operator"), os.mkfifo])
def test_what_is_no_file_of_the_log_does_not_count(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    (tmp_path / "operator").write_bytes(b"x" * 5000)
    folder = tmp_path / "log"
    log = new_log(folder, 10)
    plant(folder / "00000000000000000050.log")
    plant(folder / "00000000000000000050-0000000001.checkpoint")
    segments, snapshots = list_files(folder)
    assert [each.base_offset for each in segments if each.size_in_bytes] == [0]
    assert not snapshots
    log.close()
