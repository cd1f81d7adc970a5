"""Records whose timestamps rise by more than `segment.ms` each begin a segment: a broker keeps its descriptors, and a
log does not become files without end.

On a running broker 20,000 such records, sent in half a minute by one client, used up all descriptors (`ulimit -n` of
20,000): the next segment could not be made, the log directory went offline, and the broker stopped.
"""

import errno
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

from kquorum.broker.adapters.log import disk_log, log_manager
from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager
from kquorum.broker.log import cleanable
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import Isolation
from kquorum.storage.file_system import PosixFileSystem
from kquorum.storage.open_segments import OpenSegments
from tests.support.broker.disk_logs import (
    DIRECTORY_ID,
    NOW_MS,
    TOPIC_ID,
    all_bytes,
    data,
    open_log,
    values_in,
)
from tests.support.fault_file_system import refused

RECORDS = 60
WEEKS_MS = 8 * 24 * 3600 * 1000


class FewDescriptors(PosixFileSystem):
    """Of those that stay open, `most` at a time. Another is refused as by the kernel."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.held: set[int] = set()

    def open_for_long(self, path: Path, flags: int, mode: int = 0o644) -> int:
        if len(self.held) >= self.most:
            raise refused(errno.EMFILE, path)
        descriptor = super().open_for_long(path, flags, mode)
        self.held.add(descriptor)
        return descriptor

    def close(self, descriptor: int) -> None:
        self.held.discard(descriptor)
        super().close(descriptor)


def log_at(folder: Path, fs: PosixFileSystem, most: int, **config: int) -> DiskLog:
    log_dir = LogDir(folder, DIRECTORY_ID, fs, now_ms=NOW_MS, open_segments=OpenSegments(most))
    return open_log(log_dir, LogConfig(**config), topic_id=TOPIC_ID)  # type: ignore[arg-type]


def append_each_much_later(log: DiskLog, count: int = RECORDS) -> None:
    for number in range(count):
        batch = data(f"v{number}", key=b"k", timestamp_ms=NOW_MS - (count - number) * WEEKS_MS)
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)


@pytest.fixture
def values() -> list[str]:
    return [f"v{number}" for number in range(RECORDS)]


def test_segments_share_a_few_descriptors_and_all_is_read(tmp_path: Path, values: list[str]) -> None:
    fs = FewDescriptors(5)
    log = log_at(tmp_path, fs, 5)
    append_each_much_later(log)
    assert len(log.segments) == RECORDS
    assert len(fs.held) == 5
    assert values_in(log) == values
    assert log.truncate_to(RECORDS // 2)
    log.append_as_leader(data("last"), leader_epoch=0, now_ms=NOW_MS)
    assert values_in(log) == [*values[: RECORDS // 2], "last"]
    assert len(fs.held) <= 5
    log.close()
    assert not fs.held


def test_where_the_process_has_no_descriptor_left_another_segment_gives_its_own(
    tmp_path: Path, values: list[str]
) -> None:
    """Connections have the others."""
    fs = FewDescriptors(2)
    log = log_at(tmp_path, fs, 1_000)
    append_each_much_later(log)
    assert values_in(log) == values
    assert not log.log_dir.is_failed


def test_without_any_descriptor_one_that_is_kept_back_serves(tmp_path: Path, values: list[str]) -> None:
    fs = FewDescriptors(0)
    log = log_at(tmp_path, fs, 1_000)
    append_each_much_later(log)
    assert values_in(log) == values
    assert not log.log_dir.is_failed


def test_a_segment_that_was_closed_is_opened_where_its_folder_is_now(
    tmp_path: Path, values: list[str]
) -> None:
    log = log_at(tmp_path, FewDescriptors(1), 1)
    append_each_much_later(log)
    target = tmp_path / "moved-0"
    log.folder.rename(target)
    log.move_to(target)
    assert values_in(log) == values


def test_a_log_of_many_small_segments_begins_no_more_for_age_or_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[str]
) -> None:
    monkeypatch.setattr(disk_log, "MOST_SMALL_SEGMENTS", 10)
    log = log_at(tmp_path, PosixFileSystem(), 10, segment_index_bytes=4)
    append_each_much_later(log)
    assert len(log.segments) == 10
    assert values_in(log) == values
    monkeypatch.setattr(disk_log, "SMALL_SEGMENT_BYTES", log.segments[-1].size)
    append_each_much_later(log, 1)
    assert len(log.segments) == 11


def test_a_log_of_many_small_segments_rolls_for_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_log, "MOST_SMALL_SEGMENTS", 1)
    log = log_at(tmp_path, PosixFileSystem(), 10, segment_bytes=200)
    append_each_much_later(log)
    assert max(segment.size for segment in log.segments) <= 200


def test_retention_deletes_some_segments_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes some ten calls of the system: 14,000 of them would hold the broker up for seconds."""
    for module in (disk_log, log_manager):
        monkeypatch.setattr(module, "MOST_DELETED_AT_ONCE", 7)
    config = LogConfig(retention_ms=-1)
    manager = LogManager([LogDir(tmp_path, DIRECTORY_ID, now_ms=NOW_MS)], config_of=lambda _topic: config)
    manager.load(NOW_MS)
    log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=NOW_MS)
    append_each_much_later(log)
    config = replace(config, retention_ms=WEEKS_MS + 1)
    manager.change_configs(["topic"])
    counts, now_ms = [len(log.segments)], NOW_MS
    while counts[-1] > 1:
        now_ms += 300_000 if len(counts) == 1 else 1_000
        manager.tick(now_ms)
        counts.append(len(log.segments))
        assert len(counts) < RECORDS
    assert max(before - after for before, after in pairwise(counts)) == 7


def test_compaction_joins_some_segments_at_a_time() -> None:
    segments = [Mock(base_offset=number, size=100, index_bytes=(8, 12)) for number in range(1_000)]
    found = cleanable.groups(segments, segment_bytes=1 << 30, index_bytes=1 << 20, end_offset=1_000)
    assert max(map(len, found)) == cleanable.MOST_IN_A_GROUP
    assert [each for group in found for each in group] == segments


def test_a_read_of_a_log_on_few_descriptors_is_that_of_one_on_many(tmp_path: Path) -> None:
    few, many = (log_at(tmp_path / name, PosixFileSystem(), most) for name, most in (("a", 2), ("b", 1_000)))
    for log in (few, many):
        append_each_much_later(log)
    assert all_bytes(few, Isolation.HIGH_WATERMARK) == all_bytes(many, Isolation.HIGH_WATERMARK)
