"""A folder with snapshots is opened: when the log starts again, and what is removed, after KafkaMetadataLogTest."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import SnapshotGone, SnapshotStore, list_snapshots, snapshot_path
from kquorum.raft.log_index import LogIndex
from kquorum.storage.errors import LogCorrupted
from kquorum.storage.retired_files import RetiredFiles
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.log_folders import batches, read_all, set_recovery_point, write_log, write_snapshot
from tests.support.storage.log_parts import batch


def place_of(log: FileLog) -> tuple[int, int, int]:
    """Where it starts and ends, and in which epoch."""
    index = LogIndex(log.summary())
    return index.log_start_offset, index.log_end_offset, index.last_epoch


def four_snapshots(folder: Path) -> tuple[OffsetAndEpoch, ...]:
    """Beside a log of 20 records; the last one ends beyond it."""
    write_log(folder, [*batches(0, 1), *batches(1, 20, epoch=2)])
    ids = (OffsetAndEpoch(1, 1), OffsetAndEpoch(2, 2), OffsetAndEpoch(10, 2), OffsetAndEpoch(30, 2))
    for each in ids:
        write_snapshot(folder, each.offset, each.epoch)
    return ids


def test_a_log_behind_its_newest_snapshot_starts_again_there(tmp_path: Path) -> None:
    """testCreateReplicatedLogTruncatesFully, testTruncateFullyToLatestSnapshot"""
    write_log(tmp_path, batches(0, 10))
    write_snapshot(tmp_path, 20)
    log = FileLog(tmp_path)
    assert place_of(log) == (20, 20, 1), "of the log's last epoch"
    log.append(batches(20, 30))
    log.close()
    write_snapshot(tmp_path, 31, epoch=2)
    log = FileLog(tmp_path)
    assert place_of(log) == (31, 31, 2), "of a greater epoch"
    assert log.snapshots() == (OffsetAndEpoch(31, 2),)
    log.append([batch(31, epoch=2)])
    assert read_all(log) == [batch(31, epoch=2)]
    log.close()


def test_where_such_a_beginning_was_broken_off_all_up_to_the_snapshot_may_be_missing(tmp_path: Path) -> None:
    """The recovery point was taken back and the last segments were gone when the power went; damage is in what stays,
    and nothing else tells any more how far the log went."""
    write_log(tmp_path, batches(0, 9), segment_bytes=200)
    write_snapshot(tmp_path, 9)
    set_recovery_point(tmp_path, 0)
    damaged, *gone = sorted(tmp_path.glob("*.log"))[2:]
    for path in gone:
        path.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x77")
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.log_start_offset, log.damage.start_offset, log.damage.end_offset) == (0, log.end_offset, 9)
    log.close()


def test_a_log_that_holds_what_its_snapshots_hold_stays(tmp_path: Path) -> None:
    """testDoesntTruncateFully: a snapshot of an older epoch, and one of an earlier offset.

    Kafka's snapshot of an older epoch contradicts the log; here it is one of this log, for one that contradicts it
    stands for what was committed (tests/unit/raft/adapters/test_snapshot_over_tail.py).
    """
    written = [*batches(0, 5), *batches(5, 10, epoch=2)]
    write_log(tmp_path, written)
    write_snapshot(tmp_path, 5, epoch=1)
    log = FileLog(tmp_path)
    assert place_of(log) == (0, 10, 2)
    log.close()
    write_snapshot(tmp_path, 9, epoch=2)
    log = FileLog(tmp_path)
    assert place_of(log) == (0, 10, 2)
    assert read_all(log) == written
    log.close()


def test_older_snapshots_go_when_the_log_is_emptied_for_a_newer_one(tmp_path: Path) -> None:
    """testTruncateWillRemoveOlderSnapshot"""
    write_log(tmp_path, batches(0, 10))
    log = FileLog(tmp_path, retired=RetiredFiles(60_000, lambda: 0))
    for offset in (1, 2, 10, 30):
        write_snapshot(tmp_path, offset)
    log.truncate_fully_to(30)
    assert list_snapshots(tmp_path) == log.snapshots() == (OffsetAndEpoch(30, 1),)
    store = SnapshotStore(tmp_path)
    with pytest.raises(SnapshotGone):
        store.read(OffsetAndEpoch(10, 1), 0, 100)
    log.close()
    FileLog(tmp_path).close()
    assert [path.name for path in tmp_path.glob("*.checkpoint*")] == [
        "00000000000000000030-0000000001.checkpoint"
    ]


def test_older_snapshots_go_when_a_log_starts_again_at_its_start(tmp_path: Path) -> None:
    """testCleanupOlderSnapshots"""
    newest = four_snapshots(tmp_path)[-1]
    log = FileLog(tmp_path)
    assert place_of(log) == (30, 30, 2)
    assert list_snapshots(tmp_path) == log.snapshots() == (newest,)
    log.close()


def test_unfinished_snapshots_go_and_nothing_else_does(tmp_path: Path) -> None:
    """testCleanupPartialSnapshots"""
    write_log(tmp_path, batches(0, 10))
    whole = write_snapshot(tmp_path, 1)
    for offset, epoch in ((0, 0), (1, 1), (2, 2)):
        name = snapshot_path(tmp_path, OffsetAndEpoch(offset, epoch)).name
        for suffix in ("-8391274510293847561", "-fetched"):
            part = name.replace(".checkpoint", f"{suffix}.checkpoint.part")
            (tmp_path / part).write_bytes(b"not all of it")
    log = FileLog(tmp_path)
    assert (place_of(log), log.snapshots()) == ((0, 10, 1), (OffsetAndEpoch(1, 1),))
    assert list(tmp_path.glob("*.checkpoint*")) == [whole]
    log.close()


def test_an_empty_log_begins_only_where_a_snapshot_ends(tmp_path: Path) -> None:
    """testStartupWithInvalidSnapshotState"""
    log = FileLog(tmp_path)
    write_snapshot(tmp_path, 100)
    log.truncate_fully_to(100)
    log.close()
    snapshot_path(tmp_path, OffsetAndEpoch(100, 1)).unlink()
    with pytest.raises(LogCorrupted, match="begins at offset 100"):
        FileLog(tmp_path)
    write_snapshot(tmp_path, 50)
    with pytest.raises(LogCorrupted, match="begins at offset 100"):
        FileLog(tmp_path)
    write_snapshot(tmp_path, 100)
    log = FileLog(tmp_path)
    assert place_of(log) == (100, 100, 1)
    write_snapshot(tmp_path, 200)
    log.truncate_fully_to(200)
    log.close()
    snapshot_path(tmp_path, OffsetAndEpoch(200, 1)).unlink()
    write_snapshot(tmp_path, 500)
    log = FileLog(tmp_path)
    assert place_of(log) == (500, 500, 1)
    log.close()


def test_a_snapshot_on_its_way_out_stays_while_the_log_cannot_be_opened(tmp_path: Path) -> None:
    """testSnapshotDeletionWithInvalidSnapshotState: it may be all that can mend the log."""
    log = FileLog(tmp_path)
    snapshot = write_snapshot(tmp_path, 100)
    log.truncate_fully_to(100)
    log.close()
    deleted = snapshot.rename(snapshot.with_name(snapshot.name + ".deleted"))
    with pytest.raises(LogCorrupted, match="begins at offset 100"):
        FileLog(tmp_path)
    assert deleted.exists()


def test_what_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    """testReadMissingSnapshot"""
    FileLog(tmp_path).close()
    with pytest.raises(SnapshotGone):
        SnapshotStore(tmp_path).read(OffsetAndEpoch(10, 0), 0, 100)


def test_a_log_is_not_cut_where_no_snapshot_ends(tmp_path: Path) -> None:
    """testDeleteNonExistentSnapshot, testUpdateLogStartOffsetWithMissingSnapshot"""
    log = FileLog(tmp_path)
    log.append(batches(0, 10))
    with pytest.raises(AssertionError, match="no snapshot at offset 2"):
        log.advance_log_start(2)
    log.flush()
    assert place_of(log) == (0, 10, 1)
    assert read_all(log) == batches(0, 10)
    log.close()
