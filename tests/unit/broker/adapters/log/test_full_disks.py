"""A full disk: no records, everything else; each log goes on as it was, and all of them once there is space."""

import errno
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.adapters.log.log_space import FILE_NAME, LogSpace
from kquorum.broker.log.errors import KafkaStorageError, NoSpaceLeft
from kquorum.broker.log.log_config import LogConfig
from tests.support.broker.disk_logs import NOW_MS, TOPIC_ID, data, of_leader, values_in
from tests.support.fault_file_system import FaultFileSystem, refused

ROOT = Path("/logs")
RESERVED = 64 * 1024
CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=1, file_delete_delay_ms=0, retention_ms=-1)


class Disk:
    """A log manager on a small disk, and what it was told of space."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.fs = FaultFileSystem(ROOT, capacity=1 << 20)
        self.told: list[bool] = []
        self.config = config
        self.start()

    def start(self) -> None:
        space = LogSpace(ROOT, RESERVED, self.fs)
        space.on_change = self.told.append
        self.dir = LogDir(ROOT, UUID(int=1), self.fs, space=space)
        self.manager = LogManager([self.dir], config_of=lambda _topic: self.config)
        self.now_ms = NOW_MS
        self.manager.load(self.now_ms)

    def made(self, topic: str = "topic", count: int = 0) -> DiskLog:
        log = self.manager.get_or_create(topic, 0, TOPIC_ID, now_ms=NOW_MS)
        for number in range(count):
            log.append_as_leader(data(f"v{number}"), leader_epoch=0, now_ms=NOW_MS)
        return log

    def fill(self) -> None:
        """By another program."""
        self.fs.capacity -= self.fs.free_bytes(ROOT)

    def free(self) -> None:
        self.fs.capacity = 1 << 20

    def tick(self) -> None:
        self.now_ms += 1_000
        run_work(self.manager.tick(self.now_ms))


def append(log: DiskLog, *values: str) -> None:
    log.append_as_leader(data(*values), leader_epoch=0, now_ms=NOW_MS)


def test_records_are_refused_until_there_is_space_also_those_that_would_fit() -> None:
    """They would take the room that is kept for the small files."""
    disk = Disk()
    log = disk.made(count=3)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        append(log, "x" * 100)
    assert disk.told == [True]
    assert not disk.fs.exists(ROOT / FILE_NAME)
    with pytest.raises(NoSpaceLeft, match="takes no records until there is"):
        append(log, "small")
    disk.tick()
    with pytest.raises(NoSpaceLeft):
        append(log, "small")
    disk.free()
    disk.tick()
    assert disk.told == [True, False]
    append(log, "v3")
    assert values_in(log) == ["v0", "v1", "v2", "v3"]
    assert disk.manager.offline_dirs == ()


def state_of(log: DiskLog) -> tuple[object, ...]:
    """What a restart keeps: an epoch without records is not kept, as its leader begins it again."""
    end = log.log_end_offset
    return values_in(log), log.log_start_offset, end, [each for each in log.leader_epochs if each[1] < end]


def truncated(log: DiskLog) -> None:
    log.truncate_to(2)
    assert values_in(log) == ["v0", "v1"]


def truncated_fully(log: DiskLog) -> None:
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)


def led(log: DiskLog) -> None:
    log.assign_epoch_start(7)
    assert log.latest_epoch == 7


def flushed(log: DiskLog) -> None:
    log.flush()
    assert log.recovery_point == log.log_end_offset


def cut_at_the_start(log: DiskLog) -> None:
    log.update_high_watermark(12)
    assert log.advance_log_start_offset(11)
    assert log.delete_old_segments(NOW_MS) > 0


def rolled_away(log: DiskLog) -> None:
    """Retention takes all records, for which it begins a segment."""
    log.update_high_watermark(log.log_end_offset)
    log.change_config(LogConfig(segment_bytes=300, retention_ms=1, file_delete_delay_ms=0))
    log.delete_old_segments(NOW_MS + 10**9)
    assert log.log_start_offset == log.log_end_offset == 12


@pytest.mark.parametrize("change", [truncated, truncated_fully, led, flushed, cut_at_the_start, rolled_away])
def test_everything_else_goes_on_and_is_there_after_a_restart(change: Callable[[DiskLog], None]) -> None:
    disk = Disk()
    log = disk.made(count=12)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        append(log, "x" * 200)
    change(log)
    assert disk.manager.offline_dirs == ()
    state = state_of(log)
    disk.manager.close(broker_epoch=1)
    disk.start()
    again = disk.made()
    assert state_of(again) == state
    disk.free()
    disk.tick()
    append(again, "goes on")


@pytest.mark.parametrize("change", [truncated, led])
def test_not_even_the_reserved_space_is_needed_to_be_cut_or_to_lead(
    change: Callable[[DiskLog], None],
) -> None:
    disk = Disk()
    log = disk.made(count=12)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        append(log, "x" * 200)
    disk.fill()  # the other program took it, too
    change(log)
    assert disk.manager.offline_dirs == ()
    disk.free()
    disk.tick()
    append(log, "goes on")
    state = state_of(log)
    disk.manager.close(broker_epoch=1)
    disk.start()
    again = disk.made()
    assert state_of(again) == state


def test_new_logs_are_made_on_a_full_disk() -> None:
    disk = Disk()
    log = disk.made(count=3)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        append(log, "x" * 100)
    other = disk.made("other")
    disk.free()
    disk.tick()
    append(other, "a")
    assert values_in(other) == ["a"]


def test_a_log_that_cannot_be_made_yet_takes_no_directory_offline() -> None:
    disk = Disk()
    log = disk.made(count=3)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        append(log, "x" * 100)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        disk.made("other")
    assert disk.manager.offline_dirs == ()
    disk.free()
    disk.tick()
    append(disk.made("other"), "a")


@pytest.mark.parametrize("is_in_order", [True, False])
def test_a_broker_starts_on_a_full_disk_without_its_reserve(is_in_order: bool) -> None:
    disk = Disk()
    log = disk.made(count=12)
    disk.fill()
    with pytest.raises(NoSpaceLeft):
        append(log, "x" * 200)
    if is_in_order:
        disk.manager.close(broker_epoch=1)
    disk.start()
    assert disk.manager.offline_dirs == ()
    again = disk.made()
    assert values_in(again) == [f"v{number}" for number in range(12)]
    with pytest.raises(NoSpaceLeft):
        append(again, "small")
    disk.free()
    disk.tick()
    append(again, "goes on")


def test_a_follower_takes_the_records_again_that_it_refused() -> None:
    disk = Disk()
    log = disk.made(count=3)
    disk.fill()
    batch = of_leader(3, "x" * 200, epoch=0)
    for _ in range(2):
        with pytest.raises(NoSpaceLeft):
            log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS)
    disk.free()
    disk.tick()
    log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == 4


def test_an_error_of_the_disk_takes_it_offline_as_before() -> None:
    disk = Disk()
    log = disk.made(count=3)

    def fail(_count: int, name: str) -> None:
        if name == "write":
            raise refused(errno.EIO)

    disk.fs.on_call = fail
    with pytest.raises(KafkaStorageError):
        append(log, "x")
    assert disk.manager.offline_dirs == (disk.dir,)
    assert disk.told == []
