"""Damage that a snapshot stands for: the sound records behind the snapshot are kept, and the log begins there."""

import logging
from pathlib import Path
from random import Random

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.disk_checks import cut_within_start
from tests.support.raft.log_folders import (
    batches,
    flip,
    read_all,
    segment_offsets,
    set_recovery_point,
    snapshot_content,
    write_log,
    write_snapshot,
)
from tests.support.raft.log_history import FOLDER
from tests.support.storage.log_parts import batch

SIZE = len(batch(0).data)
THREE = SegmentLimits(segment_bytes=3 * SIZE)
ONE_SEGMENT = SegmentLimits()
END = 20


def folder_with_damage(
    folder: Path, limits: SegmentLimits, at: tuple[int, ...], snapshots: tuple[int, ...] = (10,)
) -> None:
    """20 records, with a bit flipped at each of the given offsets, and snapshots."""
    write_log(folder, batches(0, END), segment_bytes=limits.segment_bytes)
    for offset in at:
        base = max(each for each in segment_offsets(folder) if each <= offset)
        flip(folder / f"{base:020}.log", (offset - base) * SIZE + 80)
    for offset in snapshots:
        write_snapshot(folder, offset)


@pytest.mark.parametrize("limits", [THREE, ONE_SEGMENT], ids=["segments", "one-segment"])
@pytest.mark.parametrize("damaged_at", [0, 4, 8, 9])
def test_what_is_sound_behind_the_snapshot_is_kept(
    tmp_path: Path, limits: SegmentLimits, damaged_at: int, caplog: pytest.LogCaptureFixture
) -> None:
    folder_with_damage(tmp_path, limits, (damaged_at,))
    log = FileLog(tmp_path, limits)
    assert log.damage is None
    assert (log.log_start_offset, log.end_offset) == (10, END)
    assert read_all(log)[-10:] == batches(10, END)
    assert log.summary().epochs == ((1, 10),)
    told = [record.getMessage() for record in caplog.records if "set aside" in record.getMessage()]
    assert len(told) == 1
    assert f"offset {damaged_at}" in told[0]
    log.append(batches(END, END + 2))
    log.close()
    kept = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("*.log.damaged")))
    assert batches(0, damaged_at) == [each for each in batches(0, 10) if each.data in kept][:damaged_at]
    log = FileLog(tmp_path, limits)
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 10, END + 2)
    assert read_all(log)[-12:] == batches(10, END + 2)
    log.close()


def test_of_several_snapshots_the_first_one_behind_the_damage_begins_the_log(tmp_path: Path) -> None:
    folder_with_damage(tmp_path, THREE, (7,), (5, 9, 14, END))
    log = FileLog(tmp_path, THREE)
    assert (log.log_start_offset, log.end_offset) == (9, END)
    log.close()


def test_a_log_that_begins_behind_its_snapshot_and_is_damaged_below_the_next(tmp_path: Path) -> None:
    """Its own is gone: before the only one that is left there is damage."""
    folder_with_damage(tmp_path, THREE, (7,), ())
    for base in (0, 3):
        (tmp_path / f"{base:020}.log").unlink()
    write_snapshot(tmp_path, 14)
    log = FileLog(tmp_path, THREE)
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 14, END)
    assert segment_offsets(tmp_path)[0] == 12
    log.close()


@pytest.mark.parametrize("limits", [THREE, ONE_SEGMENT], ids=["segments", "one-segment"])
def test_a_missing_part_below_the_snapshot_is_such_damage_too(tmp_path: Path, limits: SegmentLimits) -> None:
    folder_with_damage(tmp_path, limits, ())
    if limits is THREE:
        (tmp_path / f"{3:020}.log").unlink()
    else:
        path = tmp_path / f"{0:020}.log"
        content = path.read_bytes()
        path.write_bytes(content[: 4 * SIZE] + content[5 * SIZE :])
    log = FileLog(tmp_path, limits)
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 10, END)
    log.close()


@pytest.mark.parametrize("limits", [THREE, ONE_SEGMENT], ids=["segments", "one-segment"])
@pytest.mark.parametrize("damaged_at", [(4, 15), (4, 10), (10,), (15,), (4, 19)])
def test_damage_behind_the_snapshot_is_damage_as_ever(
    tmp_path: Path, limits: SegmentLimits, damaged_at: tuple[int, ...]
) -> None:
    folder_with_damage(tmp_path, limits, damaged_at)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.log")}
    log = FileLog(tmp_path, limits, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (damaged_at[0], END)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.log")} == before, "nothing is changed"
    log.set_damage_aside()
    kept = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("*.log.damaged")))
    for each in batches(damaged_at[0], END):
        assert each.base_offset in damaged_at or each.data in kept, "set aside, not deleted"
    log.close()


def test_damage_behind_the_snapshot_that_no_checksum_shows_is_damage_as_ever(tmp_path: Path) -> None:
    """A batch's leader epoch is outside its checksum. That of the last one is another than the checkpoint says: what
    is copied is seen to be damaged only when it is recovered."""
    folder_with_damage(tmp_path, ONE_SEGMENT, (4,))
    flip(tmp_path / f"{0:020}.log", (END - 1) * SIZE + 15)
    log = FileLog(tmp_path, ONE_SEGMENT, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (4, END)
    log.close()
    assert [path.name for path in tmp_path.glob("*.rolling")] == []


def test_records_missing_at_the_end_are_not_made_up_for(tmp_path: Path) -> None:
    folder_with_damage(tmp_path, THREE, (4,))
    set_recovery_point(tmp_path, END + 1)
    log = FileLog(tmp_path, THREE, on_damage="report")
    assert log.damage is not None
    log.close()


def test_a_snapshot_of_another_history_does_not_begin_the_log(tmp_path: Path) -> None:
    """A tail that was never committed, of a later epoch than a snapshot that was fetched: the record that the snapshot
    ends with is another one."""
    write_log(tmp_path, [*batches(0, 3), *batches(3, 12, epoch=2)], segment_bytes=3 * SIZE)
    flip(tmp_path / f"{3:020}.log", 80)
    write_snapshot(tmp_path, 5, epoch=1)
    log = FileLog(tmp_path, THREE, on_damage="report")
    assert log.damage is not None
    log.close()


def test_a_repair_that_is_not_finished_goes_on(tmp_path: Path) -> None:
    folder_with_damage(tmp_path, THREE, (15,), ())
    log = FileLog(tmp_path, THREE, on_damage="report")
    log.set_damage_aside()
    log.append(batches(15, 17))
    log.close()
    flip(tmp_path / f"{3:020}.log", 80)
    write_snapshot(tmp_path, 10)
    log = FileLog(tmp_path, THREE, on_damage="report")
    assert log.damage is not None
    assert log.damage.end_offset >= END
    log.close()


@pytest.mark.parametrize("limits", [THREE, ONE_SEGMENT], ids=["segments", "one-segment"])
def test_no_power_cut_on_the_way_loses_what_is_kept(
    limits: SegmentLimits, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr("tests.support.raft.disk_checks.LIMITS", limits)
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, limits, 0, fs=fs)
    log.append(batches(0, END))
    log.close()
    fs.put(snapshot_path(FOLDER, OffsetAndEpoch(10, 1)), snapshot_content())
    base = max(int(name[:20]) for name in fs.names(FOLDER) if name.endswith(".log") and int(name[:20]) <= 4)
    fs.flip(FOLDER / f"{base:020}.log", (4 - base) * SIZE + 80)
    for passing in range(45):
        for seed in range(4):
            left = cut_within_start(fs.killed(), Random(seed), passing)
            for _ in range(2):
                log = FileLog(FOLDER, limits, 0, on_damage="report", fs=left)
                assert (log.damage, log.log_start_offset, log.end_offset) == (None, 10, END)
                assert read_all(log)[-10:] == batches(10, END)
                log.close()
            assert left.open_descriptors == 0


def test_without_space_for_a_copy_the_rest_is_fetched_again() -> None:
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, ONE_SEGMENT, 0, fs=fs)
    log.append(batches(0, END))
    log.close()
    fs.put(snapshot_path(FOLDER, OffsetAndEpoch(10, 1)), snapshot_content())
    fs.flip(FOLDER / f"{0:020}.log", 4 * SIZE + 80)
    fs.capacity = sum(inode.taken for inode in fs.inodes.values()) + 2 * SIZE
    log = FileLog(FOLDER, ONE_SEGMENT, 0, on_damage="report", fs=fs)
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (4, END)
    assert not [name for name in fs.names(FOLDER) if name.endswith(".rolling")]
    log.close()
    assert fs.open_descriptors == 0
