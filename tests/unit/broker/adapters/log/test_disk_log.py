"""A partition's log on disk: what it appends, reads, keeps over a restart, and removes."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.broker.adapters.log import disk_log
from kquorum.broker.adapters.log.disk_log import NOTHING_FOUND, DiskLog
from kquorum.broker.log.errors import (
    KafkaStorageError,
    NoSpaceLeft,
    OffsetOutOfRange,
    OutOfOrderSequence,
    UnexpectedAppendOffset,
)
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import AbortedTransaction, AppendOrigin, Isolation
from kquorum.storage.partition_segment import PartitionSegment
from tests.support.broker.disk_logs import (
    NOW_MS,
    TOPIC_ID,
    bytes_of,
    data,
    log_dir_at,
    marker,
    of_leader,
    offset_for_time,
    offsets_in,
    open_log,
    records_in,
    values_in,
)
from tests.support.fault_file_system import FaultFileSystem, refused

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=1)


def fill(log: DiskLog, count: int, *, epoch: int = 0, first: int = 0) -> None:
    for number in range(first, first + count):
        log.append_as_leader(
            data(f"v{number}", timestamp_ms=NOW_MS + number), leader_epoch=epoch, now_ms=NOW_MS
        )


def test_a_leader_gives_offsets_and_its_epoch_and_the_records_are_read_back(tmp_path: Path) -> None:
    log = open_log(log_dir_at(tmp_path), topic_id=TOPIC_ID)
    first = log.append_as_leader(data("a", "b"), leader_epoch=3, now_ms=NOW_MS)
    second = log.append_as_leader(data("c"), leader_epoch=3, now_ms=NOW_MS)
    assert (first.first_offset, first.last_offset, second.first_offset) == (0, 1, 2)
    found = log.read(1, max_bytes=10_000, isolation=Isolation.LOG_END, at_least_one_batch=True)
    assert offsets_in(records_in(bytes_of(found))) == [0, 1, 2]
    assert (log.log_end_offset, log.latest_epoch, log.topic_id) == (3, 3, TOPIC_ID)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_is_opened_again_goes_on_where_it_ended(tmp_path: Path, is_clean: bool) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL, topic_id=TOPIC_ID)
    fill(log, 20, epoch=1)
    expected = values_in(log)
    if is_clean:
        log.close()
    again = open_log(log_dir, SMALL, is_clean=is_clean, recovery_point=log.recovery_point)
    assert values_in(again) == expected == [f"v{number}" for number in range(20)]
    assert (again.log_end_offset, again.latest_epoch, again.topic_id) == (20, 1, TOPIC_ID)
    fill(again, 3, epoch=2, first=20)
    assert values_in(again)[-3:] == ["v20", "v21", "v22"]
    assert again.leader_epochs == ((1, 0), (2, 20))


def test_a_segment_that_would_grow_beyond_its_size_is_followed_by_a_new_one_with_a_snapshot(
    tmp_path: Path,
) -> None:
    log = open_log(log_dir_at(tmp_path), SMALL)
    fill(log, 20)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 3
    assert all(segment.size <= 300 for segment in log.segments)
    assert log.snapshots.offsets == bases[1:]


def test_a_follower_keeps_offsets_epochs_and_bytes(tmp_path: Path) -> None:
    log = open_log(log_dir_at(tmp_path))
    sent = of_leader(5, "a", "b", epoch=2) + of_leader(9, "c", epoch=4)
    appended = log.append_as_follower(sent, leader_epoch=4, now_ms=NOW_MS)
    assert (appended.first_offset, appended.last_offset) == (5, 9)
    assert bytes_of(log.read(0, max_bytes=9999, isolation=Isolation.LOG_END, at_least_one_batch=True)) == sent
    assert log.leader_epochs == ((2, 5), (4, 9))
    with pytest.raises(UnexpectedAppendOffset):
        log.append_as_follower(of_leader(9, "d", epoch=4), leader_epoch=4, now_ms=NOW_MS)


def test_reads_stay_below_the_high_watermark_and_inside_the_log(tmp_path: Path) -> None:
    log = open_log(log_dir_at(tmp_path), SMALL)
    fill(log, 10)
    log.update_high_watermark(7)
    assert values_in(log, Isolation.HIGH_WATERMARK) == [f"v{number}" for number in range(7)]
    empty = log.read(7, max_bytes=999, isolation=Isolation.HIGH_WATERMARK, at_least_one_batch=True)
    assert (empty.size_bytes, empty.aborted_transactions) == (0, None)
    for offset in (-1, 11):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, max_bytes=1, isolation=Isolation.LOG_END, at_least_one_batch=True)


def bases(log: DiskLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_high_watermark_in_an_older_segment_bounds_reads_after_a_restart(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    fill(log, 20)
    assert len(log.segments) > 3
    log.close()
    again = open_log(log_dir, SMALL, is_clean=True)
    for bound in range(20):
        again.update_high_watermark(bound)
        assert values_in(again, Isolation.HIGH_WATERMARK) == [f"v{number}" for number in range(bound)]


def test_retention_by_size_takes_the_oldest_segments_and_never_below_the_limit(tmp_path: Path) -> None:
    log = open_log(log_dir_at(tmp_path), replace(SMALL, retention_ms=-1, retention_bytes=700))
    fill(log, 20)
    assert log.delete_old_segments(NOW_MS) == 0, "nothing is replicated yet"
    log.update_high_watermark(20)
    before = bases(log)
    count = log.delete_old_segments(NOW_MS)
    assert count > 0
    assert log.size_bytes >= 700
    assert log.size_bytes - log.segments[0].size < 700
    assert bases(log) == before[count:]
    assert log.log_start_offset == before[count]
    assert values_in(log) == [f"v{number}" for number in range(before[count], 20)]


def test_retention_by_time_takes_all_and_leaves_an_empty_segment_at_the_end(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, replace(SMALL, retention_ms=1000))
    fill(log, 20)
    log.update_high_watermark(20)
    assert log.delete_old_segments(NOW_MS + 1000) == 0, "the newest record is 19 ms older than the first"
    log.delete_old_segments(NOW_MS + 1020)
    assert (log.log_start_offset, log.log_end_offset, bases(log), log.size_bytes) == (20, 20, [20], 0)
    assert log.delete_old_segments(NOW_MS + 10**9) == 0, "an empty last segment stays"
    assert log.append_as_leader(data("on"), leader_epoch=1, now_ms=NOW_MS).first_offset == 20


def test_files_are_removed_after_their_delay(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, replace(SMALL, retention_ms=0, file_delete_delay_ms=500))
    fill(log, 10)
    log.update_high_watermark(10)
    log.delete_old_segments(NOW_MS + 100)
    assert list(log.folder.glob("*.log.deleted"))
    log_dir.now_ms += 399
    log_dir.retired.remove_due()
    assert list(log.folder.glob("*.log.deleted"))
    log_dir.now_ms += 201
    log_dir.retired.remove_due()
    assert not list(log.folder.glob("*.deleted"))


def test_deleted_records_stay_away_after_a_restart_when_their_start_was_checkpointed(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    fill(log, 12)
    log.update_high_watermark(12)
    with pytest.raises(OffsetOutOfRange):
        log.advance_log_start_offset(13)
    assert log.advance_log_start_offset(7)
    assert not log.advance_log_start_offset(7)
    log.delete_old_segments(NOW_MS)
    assert bases(log)[0] <= 7 < bases(log)[1]
    assert log.has_partial_start == (bases(log)[0] < 7)
    log.close()
    again = open_log(log_dir, SMALL, is_clean=True, recovery_point=12, log_start_offset=7)
    assert (again.log_start_offset, values_in(again)) == (7, [f"v{number}" for number in range(7, 12)])


@pytest.mark.parametrize("offset", [0, 1, 5, 11, 12])
def test_truncation_leaves_what_is_below(tmp_path: Path, offset: int) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    fill(log, 6, epoch=1)
    fill(log, 6, epoch=2, first=6)
    assert log.truncate_to(offset) == (offset < 12)
    assert (log.log_end_offset, values_in(log)) == (offset, [f"v{number}" for number in range(offset)])
    assert log.leader_epochs == tuple(entry for entry in ((1, 0), (2, 6)) if entry[1] < offset)
    log.append_as_leader(data("new"), leader_epoch=3, now_ms=NOW_MS)
    for is_clean in (False, True):
        if is_clean:
            log.close()
        again = open_log(log_dir, SMALL, is_clean=is_clean)
        assert values_in(again) == [f"v{number}" for number in range(offset)] + ["new"]


def test_producers_follow_a_truncation_and_a_restart(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    for sequence in range(8):
        log.append_as_leader(
            data("x", producer_id=5, producer_epoch=0, base_sequence=sequence), leader_epoch=0, now_ms=NOW_MS
        )
    log.truncate_to(5)
    assert log.producers.entries[5].last_sequence == 4
    again = open_log(log_dir, SMALL)
    repeated = again.append_as_leader(
        data("x", producer_id=5, producer_epoch=0, base_sequence=4), leader_epoch=0, now_ms=NOW_MS
    )
    assert (repeated.duplicate, repeated.first_offset, again.log_end_offset) == (True, 4, 5)
    with pytest.raises(OutOfOrderSequence):
        again.append_as_leader(
            data("x", producer_id=5, producer_epoch=0, base_sequence=7), leader_epoch=0, now_ms=NOW_MS
        )
    assert again.log_end_offset == 5


def test_committed_readers_stop_at_an_open_transaction_and_learn_of_aborted_ones(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    fill(log, 1)
    for sequence in range(6):
        log.append_as_leader(
            data("t", producer_id=9, producer_epoch=0, base_sequence=sequence, transactional=True),
            leader_epoch=0,
            now_ms=NOW_MS,
        )
    log.update_high_watermark(7)
    assert log.last_stable_offset == 1
    log.append_as_leader(
        marker(commit=False, producer_id=9), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    assert log.last_stable_offset == 1, "the marker is not replicated"
    log.update_high_watermark(8)
    assert log.last_stable_offset == 8
    for each in (log, open_log(log_dir, SMALL)):
        each.update_high_watermark(8)
        found = each.read(2, max_bytes=60, isolation=Isolation.COMMITTED, at_least_one_batch=True)
        assert found.aborted_transactions == [AbortedTransaction(9, 1)]


@pytest.mark.parametrize("damage", ["a flipped bit", "zeros behind", "half a batch", "nonsense behind"])
def test_recovery_cuts_at_the_first_batch_that_is_not_sound(tmp_path: Path, damage: str) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, LogConfig(index_interval_bytes=1))
    fill(log, 8)
    path, size = log.segments[0].path, log.segments[0].size
    log.close_files()
    content = path.read_bytes()
    kept = 8
    if damage == "a flipped bit":
        content = content[: size - 3] + bytes([content[size - 3] ^ 1]) + content[size - 2 :]
        kept = 7
    elif damage == "half a batch":
        content, kept = content[:-5], 7
    else:
        content += bytes(500) if damage == "zeros behind" else b"nonsense" * 20
    path.write_bytes(content)
    again = open_log(log_dir)
    assert values_in(again) == [f"v{number}" for number in range(kept)]
    assert path.stat().st_size == again.size_bytes
    assert again.append_as_leader(data("on"), leader_epoch=0, now_ms=NOW_MS).first_offset == kept


def test_what_lies_behind_a_cut_is_removed(tmp_path: Path) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    fill(log, 12)
    second = log.segments[1]
    content = bytearray(second.path.read_bytes())
    content[-1] ^= 1
    second.path.write_bytes(bytes(content))
    log.close_files()
    again = open_log(log_dir, SMALL)
    assert again.log_end_offset == log.segments[2].base_offset - 1
    assert bases(again) == bases(log)[:2]
    assert not log.segments[2].path.exists()


def test_a_time_is_found_in_every_segment(tmp_path: Path) -> None:
    log = open_log(log_dir_at(tmp_path), SMALL)
    fill(log, 20)
    for number in range(20):
        found = offset_for_time(log, NOW_MS + number)
        assert (found.offset, found.timestamp_ms) == (number, NOW_MS + number)
    assert offset_for_time(log, NOW_MS + 20).offset == -1
    assert log.offset_of_max_time().offset == 19


def test_batches_without_times_are_not_looked_through_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's own time is newer than the one that is looked for; each of millions of batches would be read."""
    log = open_log(log_dir_at(tmp_path))
    for number in range(3):
        log.append_as_leader(data(f"v{number}", timestamp_ms=-1), leader_epoch=0, now_ms=NOW_MS)
    monkeypatch.setattr(PartitionSegment, "headers", lambda *_: pytest.fail("batches were read"))
    assert log.search_time(5, 0) == NOTHING_FOUND


def test_a_search_that_no_index_bounds_goes_on_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first record is the youngest, and was deleted: none of the others is as young."""
    monkeypatch.setattr(disk_log, "_BATCHES_A_SEARCH", 4)
    log = open_log(log_dir_at(tmp_path), LogConfig(index_interval_bytes=1))
    log.append_as_leader(data("young", timestamp_ms=NOW_MS + 50), leader_epoch=0, now_ms=NOW_MS)
    fill(log, 10, first=1)
    log.update_high_watermark(11)
    log.advance_log_start_offset(1)
    parts, found = [], log.search_time(NOW_MS + 20, 0)
    while isinstance(found, int):
        parts.append(found)
        found = log.search_time(NOW_MS + 20, found)
    assert (parts, found) == ([5, 9], NOTHING_FOUND)
    assert offset_for_time(log, NOW_MS + 9).offset == 9


def test_a_full_disk_refuses_the_append_and_leaves_the_log_as_it_was() -> None:
    fs = FaultFileSystem(Path("/data"))
    log_dir = log_dir_at(Path("/data"), fs)
    log = open_log(log_dir)
    fill(log, 3)
    fs.capacity = sum(inode.taken for inode in fs.inodes.values()) + 20
    with pytest.raises(NoSpaceLeft, match="space"):
        log.append_as_leader(data("too much"), leader_epoch=0, now_ms=NOW_MS)
    assert not log_dir.is_failed
    assert values_in(log) == ["v0", "v1", "v2"]
    fs.capacity = 1 << 30
    fill(log, 1, first=3)
    assert values_in(open_log(log_dir)) == ["v0", "v1", "v2", "v3"]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_record_that_is_in_the_log_is_acknowledged_though_its_index_finds_no_space(is_clean: bool) -> None:
    """With flush.messages=1 the flush of a follower's append was refused, and the follower, whose log was longer than
    it knew, fetched no more."""
    fs = FaultFileSystem(Path("/data"))
    log_dir = log_dir_at(Path("/data"), fs)
    log = open_log(log_dir, LogConfig(index_interval_bytes=1, flush_messages=1))
    fill(log, 2)
    batch = of_leader(2, "v2")
    fs.capacity = sum(inode.taken for inode in fs.inodes.values()) + len(batch)
    assert log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS).last_offset == 2
    assert (log.log_end_offset, log.recovery_point, values_in(log)) == (3, 3, ["v0", "v1", "v2"])
    fs.capacity = 1 << 30
    fill(log, 1, first=3)
    if is_clean:
        log.close()
    again = open_log(log_dir, is_clean=is_clean, recovery_point=log.recovery_point)
    assert values_in(again) == ["v0", "v1", "v2", "v3"]
    assert offset_for_time(again, NOW_MS + 3).offset == 3


def test_a_flush_that_a_rename_of_the_folder_overtook_says_nothing() -> None:
    """The copy of a log takes its place while a thread flushes it: under the old names the thread finds no file."""
    fs = FaultFileSystem(Path("/data"))
    log_dir = log_dir_at(Path("/data"), fs)
    log = open_log(log_dir)
    fill(log, 3)
    work = log.begin_flush()
    assert work is not None
    fs.rename(log.folder, Path("/data/renamed-0"))
    work.run()
    log.move_to(Path("/data/renamed-0"))
    log.flushed(work)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 3


def test_retention_makes_space_on_a_full_disk() -> None:
    """It needs none for itself: the file of epochs waits, and the last segment, in whose place another comes."""
    fs = FaultFileSystem(Path("/data"))
    log = open_log(log_dir_at(Path("/data"), fs), replace(SMALL, retention_ms=1_000))
    fill(log, 20)
    log.update_high_watermark(20)
    count = len(log.segments)
    fs.capacity = sum(inode.taken for inode in fs.inodes.values())
    assert log.delete_old_segments(NOW_MS + 2_000) == count - 1
    assert log.log_start_offset == log.segments[0].base_offset
    assert log.advance_log_start_offset(20)
    fs.capacity = 1 << 30
    assert log.delete_old_segments(NOW_MS + 2_000) == 1
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


def refuse_to_create(disk: FaultFileSystem, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """ENOSPC for new files of this kind."""
    plain = disk.open

    def full(path: Path, flags: int, mode: int = 0o644) -> int:
        if path.name.endswith(suffix) and flags & os.O_CREAT:
            raise refused(errno.ENOSPC, path)
        return plain(path, flags, mode)

    monkeypatch.setattr(disk, "open", full)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_roll_that_a_full_disk_refused_leaves_no_segment_behind(
    is_clean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log went on in the old segment, and the next start took the empty one for its end: records were hidden, and
    their offsets given out again."""
    root = Path("/logs")
    disk = FaultFileSystem(root)
    config = LogConfig(segment_ms=1_000)
    log = open_log(log_dir_at(root, disk), config)
    fill(log, 5)
    with monkeypatch.context() as full:
        refuse_to_create(disk, full, "05.index")
        with pytest.raises(KafkaStorageError):
            log.append_as_leader(
                data("late", timestamp_ms=NOW_MS + 5_000), leader_epoch=0, now_ms=NOW_MS + 5_000
            )
    fill(log, 5, first=5)
    log.close()
    again = open_log(log_dir_at(root, disk), config, is_clean=is_clean, recovery_point=10 if is_clean else 0)
    assert again.log_end_offset == 10


def test_an_aborted_transaction_that_a_full_disk_refused_is_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = Path("/logs")
    disk = FaultFileSystem(root)
    log = open_log(log_dir_at(root, disk))
    sequence = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    log.append_as_leader(data("aborted", **sequence), leader_epoch=0, now_ms=NOW_MS)
    with monkeypatch.context() as full:
        refuse_to_create(disk, full, ".txnindex")
        log.append_as_leader(
            marker(commit=False, producer_id=1),
            leader_epoch=0,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
        )
    log.close()
    again = open_log(log_dir_at(root, disk), is_clean=True, recovery_point=2)
    again.update_high_watermark(2)
    found = again.read(0, max_bytes=1_000, isolation=Isolation.COMMITTED, at_least_one_batch=True)
    assert list(found.aborted_transactions) == [AbortedTransaction(1, 0)]
