"""A log that no longer begins at 0: where it may begin, what is removed, and what a crash between leaves."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.storage.errors import LogCorrupted
from kquorum.storage.retired_files import RetiredFiles
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.log_folders import batches, read_all, segment_offsets, write_log, write_snapshot
from tests.support.storage.log_parts import batch

THREE_EACH = 3 * len(batch(0).data)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_advancing_retires_whole_segments_and_removes_them_later(tmp_path: Path) -> None:
    clock = Clock()
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=THREE_EACH), 0, retired=RetiredFiles(60_000, clock))
    log.append([*batches(0, 4), *batches(4, 10, epoch=2)])
    log.flush()
    write_snapshot(tmp_path, 3)
    write_snapshot(tmp_path, 7, epoch=2)
    assert log.snapshots() == (OffsetAndEpoch(3, 1), OffsetAndEpoch(7, 2))
    log.advance_log_start(7)
    assert log.log_start_offset == 7
    assert (log.summary().log_start_offset, log.summary().epochs) == (7, ((2, 7),))
    assert log.snapshots() == (OffsetAndEpoch(7, 2),)
    log.flush()
    assert segment_offsets(tmp_path) == [6, 9], "the segment that holds offset 7 stays"
    retired = sorted(path.name for path in tmp_path.glob("*.deleted"))
    assert [name for name in retired if "checkpoint" in name] == [
        "00000000000000000003-0000000001.checkpoint.deleted"
    ]
    assert len([name for name in retired if name.endswith("log.deleted")]) == 2
    clock.now_ms = 59_999
    log.flush()
    assert list(tmp_path.glob("*.deleted"))
    clock.now_ms = 60_000
    log.flush()
    assert not list(tmp_path.glob("*.deleted"))
    assert read_all(log) == batches(7, 10, epoch=2)
    log.close()


def test_reopened_it_begins_at_the_first_snapshot_of_its_segments(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=THREE_EACH))
    log.append([*batches(0, 4), *batches(4, 10, epoch=2)])
    log.flush()
    write_snapshot(tmp_path, 7, epoch=2)
    log.advance_log_start(7)
    log.close()
    reopened = FileLog(tmp_path)
    assert not list(tmp_path.glob("*.deleted")), "removed at the start, whatever the delay"
    summary = reopened.summary()
    assert (summary.log_start_offset, summary.log_end_offset) == (7, 10)
    assert (summary.epochs, summary.snapshots) == (((2, 7),), (OffsetAndEpoch(7, 2),))
    assert read_all(reopened) == batches(7, 10, epoch=2)
    with pytest.raises(AssertionError, match="below the log's start"):
        reopened.read(6, 1)
    reopened.close()


def test_what_is_not_durable_yet_is_not_retired(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=THREE_EACH))
    log.append(batches(0, 10))
    write_snapshot(tmp_path, 10)
    log.advance_log_start(10)
    log.flush()
    assert segment_offsets(tmp_path) == [0, 3, 6, 9]
    log.append(batches(10, 12))
    write_snapshot(tmp_path, 11)
    log.advance_log_start(11)
    log.flush()
    assert segment_offsets(tmp_path) == [9], "the last segment always stays"
    log.close()


def test_a_start_without_its_snapshot_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 10), segment_bytes=THREE_EACH)
    (tmp_path / "00000000000000000000.log").unlink()
    with pytest.raises(LogCorrupted, match=r"begins at offset 3, but no sound snapshot.*copy the snapshot"):
        FileLog(tmp_path)
    write_snapshot(tmp_path, 2)
    with pytest.raises(LogCorrupted, match="begins at offset 3"):
        FileLog(tmp_path)
    write_snapshot(tmp_path, 4)
    log = FileLog(tmp_path)
    assert read_all(log) == batches(4, 10)
    log.close()


def test_a_log_without_its_start_is_as_good_as_lost_and_can_be_started_again(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 10), segment_bytes=THREE_EACH)
    (tmp_path / "00000000000000000000.log").unlink()
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset, log.end_offset) == (0, 10, 0)
    log.set_damage_aside()
    assert segment_offsets(tmp_path) == [0]
    log.append(batches(0, 2))
    log.close()
    again = FileLog(tmp_path, on_damage="report")
    assert again.damage is not None
    assert (again.damage.start_offset, again.damage.end_offset) == (2, 10), (
        "not repaired before it was said so"
    )
    again.close()


@pytest.mark.parametrize("problem", ["empty", "footer", "bit"])
def test_a_damaged_snapshot_does_not_count_and_is_kept_aside(tmp_path: Path, problem: str) -> None:
    write_log(tmp_path, batches(0, 10))
    write_snapshot(tmp_path, 4)
    path = write_snapshot(tmp_path, 8)
    content = bytearray(path.read_bytes())
    if problem == "empty":
        content = bytearray()
    elif problem == "footer":
        del content[-75:]
    else:
        content[70] ^= 1
    path.write_bytes(content)
    log = FileLog(tmp_path)
    assert log.snapshots() == (OffsetAndEpoch(4, 1),)
    log.close()
    assert path.with_name(path.name + ".damaged").read_bytes() == content
    assert not path.exists(), "so that it can be fetched again"


def test_what_was_never_finished_is_removed_at_the_start(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 3))
    leftovers = [
        "00000000000000000003-0000000001-8a7f1.checkpoint.part",
        "00000000000000000001-0000000001.checkpoint.deleted",
        "00000000000000000000.index.deleted",
    ]
    for name in [*leftovers, "notes.deleted"]:
        (tmp_path / name).write_bytes(b"x")
    FileLog(tmp_path).close()
    assert [name for name in leftovers if (tmp_path / name).exists()] == []
    assert (tmp_path / "notes.deleted").exists(), "a file that is not the log's stays"


def test_a_snapshot_ahead_of_the_log_means_that_the_log_was_about_to_be_emptied(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 10), segment_bytes=THREE_EACH)
    write_snapshot(tmp_path, 4)
    write_snapshot(tmp_path, 6, epoch=3)
    log = FileLog(tmp_path)
    summary = log.summary()
    assert (summary.log_start_offset, summary.log_end_offset, summary.epochs) == (6, 6, ())
    assert summary.snapshots == (OffsetAndEpoch(6, 3),)
    log.append([batch(6, epoch=3)])
    log.close()
    assert segment_offsets(tmp_path) == [6]
    reopened = FileLog(tmp_path)
    assert read_all(reopened) == [batch(6, epoch=3)]
    reopened.close()


def test_a_snapshot_ahead_of_a_log_that_lost_its_end_does_not_stand_for_it(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 10), segment_bytes=THREE_EACH)
    write_snapshot(tmp_path, 8)
    (tmp_path / "00000000000000000009.log").unlink()
    (tmp_path / "00000000000000000006.log").unlink()
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (6, 10)
    log.close()
    write_snapshot(tmp_path, 10)
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None, "this one neither: more may have been durable than the recovery point says"
    log.close()


def test_without_any_segment_the_log_goes_on_from_its_newest_snapshot(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 3))
    for path in tmp_path.glob("0000000000000000000*"):
        path.unlink()
    write_snapshot(tmp_path, 2)
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset, log.log_start_offset) == (2, 3, 2)
    log.set_damage_aside()
    log.append(batches(2, 3))
    log.mark_repaired()
    log.close()
    reopened = FileLog(tmp_path)
    assert read_all(reopened) == batches(2, 3)
    reopened.close()
