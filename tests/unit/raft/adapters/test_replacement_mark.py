"""The file that says that the log is being replaced by a snapshot: what counts in it, and when it goes."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.replacement_mark import (
    FILE_NAME,
    Replacement,
    forget_replacement,
    mark_replacement,
    replacement_under_way,
)
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.storage.errors import LogCorrupted, StorageFull
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.log_folders import batches, read_all, snapshot_content, write_log, write_snapshot
from tests.support.raft.log_history import FOLDER
from tests.support.storage.log_parts import batch

SIZE = len(batch(0).data)
LIMITS = SegmentLimits(segment_bytes=3 * SIZE)
SNAPSHOT = OffsetAndEpoch(20, 2)


def half_emptied(folder: Path) -> None:
    """A log of 12 records in segments of 3; the last two are gone, to be replaced by a snapshot."""
    write_log(folder, batches(0, 12), segment_bytes=3 * SIZE, durable=0)
    for base_offset in (6, 9):
        for path in folder.glob(f"{base_offset:020}.*"):
            path.unlink()
    mark_replacement(folder, SNAPSHOT, 12)


def test_what_was_marked_is_read_back_and_forgotten() -> None:
    fs = FaultFileSystem(FOLDER)
    assert replacement_under_way(FOLDER, fs) is None
    mark_replacement(FOLDER, SNAPSHOT, 12, fs)
    assert replacement_under_way(FOLDER, fs) == Replacement(SNAPSHOT, 12)
    forget_replacement(FOLDER, fs)
    forget_replacement(FOLDER, fs)
    assert replacement_under_way(FOLDER, fs) is None


def test_every_flipped_byte_of_the_mark_still_says_that_something_may_be_lost() -> None:
    fs = FaultFileSystem(FOLDER)
    mark_replacement(FOLDER, SNAPSHOT, 12, fs)
    for position in range(len(fs.read(FOLDER / FILE_NAME)) - 1):
        for mask in (0x01, 0x20, 0x80):
            fs.flip(FOLDER / FILE_NAME, position, mask)
            found = replacement_under_way(FOLDER, fs)
            assert found is not None
            assert found.snapshot is None, position
            assert "cannot be read" in found.as_damage(6).reason
            fs.flip(FOLDER / FILE_NAME, position, mask)


def test_a_log_half_emptied_for_a_sound_snapshot_begins_there(tmp_path: Path) -> None:
    half_emptied(tmp_path)
    write_snapshot(tmp_path, SNAPSHOT.offset, SNAPSHOT.epoch)
    log = FileLog(tmp_path, LIMITS)
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 20, 20)
    assert not (tmp_path / FILE_NAME).exists()
    log.close()


def test_without_that_snapshot_the_refusal_says_what_happened(tmp_path: Path) -> None:
    half_emptied(tmp_path)
    with pytest.raises(LogCorrupted, match="being replaced by the snapshot that ends at offset 20") as caught:
        FileLog(tmp_path)
    assert "offsets 6 to 19 are lost here" in str(caught.value)
    assert (tmp_path / FILE_NAME).exists(), "nothing is changed"


def test_the_mark_stays_until_the_damage_is_noted_in_its_place(tmp_path: Path) -> None:
    half_emptied(tmp_path)
    log = FileLog(tmp_path, LIMITS, on_damage="report")
    log.close()
    assert (tmp_path / FILE_NAME).exists()
    log = FileLog(tmp_path, LIMITS, on_damage="report")
    log.set_damage_aside()
    assert not (tmp_path / FILE_NAME).exists()
    log.append(batches(6, 9))
    log.close()
    log = FileLog(tmp_path, LIMITS, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (9, 20)
    log.close()


def test_an_older_snapshot_ahead_of_what_is_left_does_not_make_up_for_it(tmp_path: Path) -> None:
    half_emptied(tmp_path)
    write_snapshot(tmp_path, 10)
    for _ in range(2):
        log = FileLog(tmp_path, LIMITS, on_damage="report")
        assert log.damage is not None
        assert (log.log_start_offset, log.damage.start_offset, log.damage.end_offset) == (10, 10, 20)
        log.close()


def test_a_mark_beside_a_log_that_begins_at_its_snapshot_says_nothing_any_more(tmp_path: Path) -> None:
    """The node stopped before it removed the mark; or Apache Kafka has run on the folder since."""
    half_emptied(tmp_path)
    write_snapshot(tmp_path, SNAPSHOT.offset, SNAPSHOT.epoch)
    FileLog(tmp_path, LIMITS).close()
    log = FileLog(tmp_path, LIMITS)
    log.append(batches(20, 30, epoch=2))
    log.close()
    mark_replacement(tmp_path, SNAPSHOT, 12)
    write_snapshot(tmp_path, 25, 2)
    log = FileLog(tmp_path, LIMITS)
    assert (log.log_start_offset, read_all(log)) == (20, batches(20, 30, epoch=2))
    assert not (tmp_path / FILE_NAME).exists()
    log.close()


def test_a_mark_before_anything_was_removed_says_nothing_of_a_log_that_is_whole(tmp_path: Path) -> None:
    """Neither does it once the log is shorter for a good reason."""
    write_log(tmp_path, batches(0, 12), segment_bytes=3 * SIZE)
    mark_replacement(tmp_path, SNAPSHOT, 12)
    log = FileLog(tmp_path, LIMITS)
    assert (log.damage, log.end_offset) == (None, 12)
    log.truncate_to(9)
    log.close()
    log = FileLog(tmp_path, LIMITS)
    assert (log.damage, log.end_offset) == (None, 9)
    log.close()


def test_a_full_disk_leaves_the_log_as_it_was_and_it_may_be_opened_again() -> None:
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, LIMITS, fs=fs)
    log.append(batches(0, 12))
    log.close()
    fs.put(snapshot_path(FOLDER, SNAPSHOT), snapshot_content(SNAPSHOT.epoch))
    fs.capacity = sum(inode.taken for inode in fs.inodes.values())
    with pytest.raises(StorageFull):
        FileLog(FOLDER, LIMITS, fs=fs)
    assert fs.open_descriptors == 0
    assert [name for name in fs.names(FOLDER) if name.endswith(".log")] == [
        f"{offset:020}.log" for offset in (0, 3, 6, 9)
    ]
    fs.capacity += 10_000
    log = FileLog(FOLDER, LIMITS, fs=fs)
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 20, 20)
    log.close()
