"""A repair that was broken off is remembered until the core says that the log is whole, wherever it ends meanwhile."""

import logging
from pathlib import Path
from random import Random

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.storage import recovery_point
from kquorum.storage.corruption_marker import FILE_NAME, read_corruption_marker
from kquorum.storage.recovery_point import RecoveryPoint, read_recovery_point
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.log_folders import (
    FIRST,
    batches,
    read_all,
    segment_offsets,
    set_recovery_point,
    snapshot_content,
    write_log,
    write_snapshot,
)
from tests.support.storage.disk_stops import Stopped, stopping_before
from tests.support.storage.log_parts import batch

SIZE = len(batch(0).data)
LIMITS = SegmentLimits(segment_bytes=3 * SIZE)
FOLDER = Path("/disk/__cluster_metadata-0")


@pytest.fixture
def lagging_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """All flushes but the first come within the interval in which the recovery point is not written."""
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 1000.0)


def killed_after(folder: Path, end_offset: int) -> None:
    """A log that was flushed whole, left by a killed process; then the tail from offset 2 on is damaged."""
    log = FileLog(folder)
    for offset in range(end_offset):
        log.append([batch(offset)])
        log.flush()
    assert read_recovery_point(folder) == 0
    content = bytearray((folder / FIRST).read_bytes())
    content[2 * SIZE :] = bytes(byte ^ 0x5A for byte in content[2 * SIZE :])
    (folder / FIRST).write_bytes(content)


@pytest.mark.usefixtures("lagging_point")
def test_a_restart_in_the_middle_of_a_repair_forgets_nothing_though_the_recovery_point_lags(
    tmp_path: Path,
) -> None:
    killed_after(tmp_path, 6)
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (2, 3), "nothing tells of what was behind"
    log.set_damage_aside()
    log.append([batch(2)])
    log.flush()
    for end_offset in (3, 5):
        log.close()
        log = FileLog(tmp_path, on_damage="report")
        assert log.damage is not None, f"ends at {end_offset}, and 6 was acknowledged"
        assert (log.damage.start_offset, log.end_offset) == (end_offset, end_offset)
        assert "from offset 2 on" in str(log.damage)
        log.set_damage_aside()
        log.append(batches(end_offset, 5))
        log.flush()
    log.mark_repaired()
    assert not (tmp_path / FILE_NAME).exists()
    log.close()
    log = FileLog(tmp_path)
    assert read_all(log) == batches(0, 5)
    log.close()


def test_neither_file_says_more_than_is_known_however_often_a_repair_is_broken_off(tmp_path: Path) -> None:
    """Something may be missing at the end of the log; but not that a record was there is known."""
    write_log(tmp_path, batches(0, 6))
    flip_in_first(tmp_path, 3 * SIZE + 80)
    log = FileLog(tmp_path, on_damage="report")
    log.set_damage_aside()
    log.append(batches(3, 6))
    log.close()
    for _ in range(3):
        log = FileLog(tmp_path, on_damage="report")
        assert log.damage is not None
        log.set_damage_aside()
        log.close()
        marker = read_corruption_marker(tmp_path)
        assert marker is not None
        assert (marker.end_offset, read_recovery_point(tmp_path)) == (6, 6)


def test_going_on_with_a_repair_keeps_what_was_set_aside(tmp_path: Path) -> None:
    whole = write_log(tmp_path, batches(0, 6))
    flip_in_first(tmp_path, 3 * SIZE + 80)
    for _ in range(2):
        log = FileLog(tmp_path, on_damage="report")
        log.set_damage_aside()
        log.close()
    assert len((tmp_path / f"{FIRST}.damaged").read_bytes()) == len(whole) - 3 * SIZE


def test_a_damaged_log_that_is_not_repaired_has_no_note(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 6))
    flip_in_first(tmp_path, 3 * SIZE + 80)
    FileLog(tmp_path, on_damage="report").close()
    assert not (tmp_path / FILE_NAME).exists()


def flip_in_first(folder: Path, position: int) -> None:
    content = bytearray((folder / FIRST).read_bytes())
    content[position] ^= 0x10
    (folder / FIRST).write_bytes(content)


# Snapshots


def test_a_snapshot_stands_for_damage_only_if_nothing_can_have_been_behind(tmp_path: Path) -> None:
    """A sound batch at the very end of the file says so; a damaged one may have been one of many."""
    for flipped, is_covered in (((3,), True), ((5,), False), ((3, 5), False)):
        folder = tmp_path / str(flipped)
        folder.mkdir()
        write_log(folder, batches(0, 6), durable=4)
        for offset in flipped:
            flip_in_first(folder, offset * SIZE + 80)
        write_snapshot(folder, 6)
        log = FileLog(folder, on_damage="report")
        assert (log.damage is None) is is_covered
        log.close()


def test_no_segment_behind_the_damage_is_left_when_a_snapshot_stands_for_it(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 20), segment_bytes=3 * SIZE)
    content = bytearray((tmp_path / f"{6:020}.log").read_bytes())
    content[SIZE + 80] ^= 1
    (tmp_path / f"{6:020}.log").write_bytes(content)
    write_snapshot(tmp_path, 25)
    log = FileLog(tmp_path, LIMITS, on_damage="report")
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 25, 25)
    assert segment_offsets(tmp_path) == [25]
    assert [path.name for path in tmp_path.glob("*.index")] == [f"{25:020}.index"]
    log.append(batches(25, 27))
    log.close()
    log = FileLog(tmp_path, LIMITS)
    assert read_all(log) == batches(25, 27)
    log.close()


def test_a_snapshot_that_was_fetched_during_a_repair_does_not_end_it(tmp_path: Path) -> None:
    """The node stopped after the snapshot was there and before the log was dropped for it."""
    write_log(tmp_path, batches(0, 6))
    flip_in_first(tmp_path, 3 * SIZE + 80)
    log = FileLog(tmp_path, on_damage="report")
    log.set_damage_aside()
    log.append(batches(3, 5))
    log.close()
    write_snapshot(tmp_path, 9, epoch=2)
    for _ in range(2):
        log = FileLog(tmp_path, on_damage="report")
        assert log.damage is not None
        assert (log.damage.start_offset, log.log_start_offset, log.end_offset) == (9, 9, 9)
        log.close()


def test_after_a_log_was_dropped_its_recovery_point_is_that_of_the_snapshot(tmp_path: Path) -> None:
    """Durably, for `node.metadata_folder` takes 0 for a log that is being dropped; and so it is before."""
    for has_point in (True, False):
        folder = tmp_path / str(has_point)
        folder.mkdir()
        write_log(folder, batches(0, 6))
        if not has_point:
            set_recovery_point(folder, None)
        write_snapshot(folder, 9)
        log = FileLog(folder)
        assert read_recovery_point(folder) == 9
        log.close()


def test_nothing_known_is_set_back_to_nothing_at_all() -> None:
    fs = FaultFileSystem(FOLDER)
    point = RecoveryPoint(FOLDER, fs)
    point.set_back(4)
    assert read_recovery_point(FOLDER, fs) is None, "that 4 are durable is not known either"
    point.set_back(0)
    assert read_recovery_point(FOLDER, fs) == 0
    point.close()


# Crashes


def repair(fs: FaultFileSystem) -> None:
    log = FileLog(FOLDER, LIMITS, on_damage="report", fs=fs)
    log.set_damage_aside()
    for _ in range(2):
        log.append(batches(log.end_offset, log.end_offset + 2))
        log.flush()
    log.close()


@pytest.mark.usefixtures("lagging_point")
@pytest.mark.parametrize("damaged_at", [0, 4, 7], ids=["in the first", "in the second", "in the last"])
@pytest.mark.parametrize("snapshot_at", [None, 3, 8])
def test_no_crash_during_a_repair_makes_the_log_look_whole(
    caplog: pytest.LogCaptureFixture, damaged_at: int, snapshot_at: int | None
) -> None:
    """Whichever operation it comes before, power cut or kill. All of 12 was acknowledged; nothing tells that."""
    caplog.set_level(logging.ERROR)
    random_source, done = Random(damaged_at), False
    for stop_at in range(1000):
        fs = damaged_disk(damaged_at, snapshot_at)
        fs.on_call = stopping_before(stop_at)
        try:
            repair(fs)
            done = True
        except Stopped:
            pass
        fs.on_call = lambda _count, _name: None
        for left in (fs.killed(), fs.power_cut(random_source)):
            log = FileLog(FOLDER, LIMITS, on_damage="report", fs=left)
            assert log.damage is not None, f"stopped before change {stop_at}"
            found = read_all(log)
            assert found == batches(log.log_start_offset, 12)[: len(found)]
            log.close()
        if done:
            break
    assert stop_at > 30


def test_a_repair_is_done_for_good_once_it_was_said() -> None:
    fs = damaged_disk(4, None)
    log = FileLog(FOLDER, LIMITS, on_damage="report", fs=fs)
    log.set_damage_aside()
    log.append(batches(log.end_offset, 12))
    log.mark_repaired()
    for left in (fs.killed(), *(fs.power_cut(Random(seed)) for seed in range(10))):
        found = FileLog(FOLDER, LIMITS, fs=left)
        assert read_all(found) == batches(0, 12)
        found.close()
    log.close()


def damaged_disk(damaged_at: int, snapshot_at: int | None) -> FaultFileSystem:
    """12 records in segments of 3, all of them flushed; from the given one on none can be read."""
    fs = FaultFileSystem(FOLDER)
    for start in range(0, 12, 3):
        content = b"".join(each.data for each in batches(start, start + 3))
        sound = max(0, min(3, damaged_at - start)) * SIZE
        if sound < len(content):
            content = content[:sound] + bytes(byte ^ 0x5A for byte in content[sound:])
        fs.put(FOLDER / f"{start:020}.log", content)
    if snapshot_at is not None:
        fs.put(snapshot_path(FOLDER, OffsetAndEpoch(snapshot_at, 1)), snapshot_content(1))
    point = RecoveryPoint(FOLDER, fs)
    point.put(1)
    point.close()
    return fs
