"""The disk is cut off at every call that changes it: a log that is opened again holds what was flushed, and nothing
that was not appended."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.log.errors import KafkaStorageError
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.storage.offset_checkpoints import RECOVERY_POINTS, read_offsets
from kquorum.wire.data_batch import Record, data_headers
from tests.support.broker.disk_logs import DIRECTORY_ID, NOW_MS, TOPIC_ID, all_bytes, data, marker, records_in
from tests.support.fault_file_system import CHANGES, FaultFileSystem, refused

FOLDER = Path("/data")
COORDINATOR = AppendOrigin.COORDINATOR
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=1, retention_ms=-1, file_delete_delay_ms=1000)


def manager_on(fs: FaultFileSystem, config: LogConfig = CONFIG) -> LogManager:
    manager = LogManager([LogDir(FOLDER, DIRECTORY_ID, fs)], config_of=lambda _topic: config)
    manager.load(NOW_MS)
    return manager


@dataclass
class Story:
    """A broker's life on a disk, and what it must not lose."""

    fs: FaultFileSystem = field(default_factory=lambda: FaultFileSystem(FOLDER))
    appended: dict[int, set[bytes]] = field(default_factory=dict)
    """Every value that may be found at an offset."""
    settled: dict[int, bytes] = field(default_factory=dict)
    """What was flushed, and not given up since."""
    kernel: dict[int, bytes] = field(default_factory=dict)
    """What was handed to the kernel, and not given up since: it outlives the process."""
    now_ms: int = NOW_MS
    counter: int = 0

    def append(self, log: DiskLog, count: int = 1, *, epoch: int = 1, **fields: int) -> None:
        for _ in range(count):
            value = f"value {self.counter}".encode()
            self.counter += 1
            self.appended.setdefault(log.log_end_offset, set()).add(value)
            at = log.append_as_leader(data(value, **fields), leader_epoch=epoch, now_ms=self.now_ms)
            self.kernel[at.first_offset] = value

    def flush(self, log: DiskLog) -> None:
        log.flush()
        self.settled = dict(self.kernel)

    def truncate(self, log: DiskLog, offset: int) -> None:
        self._give_up(lambda each: each >= offset)
        log.truncate_to(offset)
        # What was truncated never comes back.
        for each in [each for each in self.appended if each >= offset]:
            del self.appended[each]

    def delete_below(self, log: DiskLog, offset: int) -> None:
        self._give_up(lambda each: each < offset)
        log.advance_log_start_offset(offset)

    def _give_up(self, which: Callable[[int], bool]) -> None:
        for kept in (self.settled, self.kernel):
            for offset in [each for each in kept if which(each)]:
                del kept[offset]

    def tick(self, manager: LogManager, ms: int = 400_000) -> None:
        self.now_ms += ms
        run_work(manager.tick(self.now_ms))

    def live(self) -> None:
        manager = manager_on(self.fs)
        log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=self.now_ms)
        log.assign_epoch_start(1)
        self.append(log, 4)
        self.flush(log)
        self.append(log, 9)
        self.append(log, 1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        log.append_as_leader(
            marker(commit=False, producer_id=7), leader_epoch=1, now_ms=self.now_ms, origin=COORDINATOR
        )
        self.tick(manager)
        self.truncate(log, 9)
        log.assign_epoch_start(2)
        self.append(log, 3, epoch=2)
        self.truncate(log, 2)
        self.append(log, 12, epoch=3)
        self.flush(log)
        self.tick(manager)
        log.update_high_watermark(log.log_end_offset)
        self.delete_below(log, 7)
        self.tick(manager)
        self.append(log, 2, epoch=3)
        log.roll(self.now_ms)
        self.tick(manager)
        self.append(log, 1, epoch=4)
        manager.close(9)
        self.settled = dict(self.kernel)


def check(story: Story, disk: FaultFileSystem, kept: dict[int, bytes]) -> None:
    """What is found on a disk after a crash."""
    manager = manager_on(disk)
    assert not manager.offline_dirs
    log = manager.get("topic", 0)
    if log is None:
        assert not kept
        return
    found = records_of(log)
    assert {offset: found.get(offset) for offset in kept} == kept
    for offset, value in found.items():
        assert value in story.appended.get(offset, ()), offset
    headers = [header for _, header in data_headers(memoryview(all_bytes(log)))]
    for before, header in pairwise(headers):
        assert header.base_offset == before.next_offset, "there is a hole in the log"
    assert all(
        first < second for first, second in zip(log.leader_epochs, log.leader_epochs[1:], strict=False)
    )
    # It goes on, and a second start finds what the first one left.
    end = log.log_end_offset
    log.append_as_leader(data("after"), leader_epoch=9, now_ms=NOW_MS)
    log.flush()
    again = manager_on(disk).get("topic", 0)
    assert again is not None
    assert records_of(again) == {**found, end: b"after"}


def records_of(log: DiskLog) -> dict[int, bytes]:
    records: list[Record] = records_in(all_bytes(log), from_offset=log.log_start_offset)
    return {each.offset: each.value or b"" for each in records if each.key is None}


def calls_of_a_life() -> list[tuple[int, str]]:
    story, calls = Story(), []
    story.fs.on_call = lambda number, name: calls.append((number, name)) if name in CHANGES else None
    story.live()
    return calls


def cuts(*, share: int) -> Iterator[tuple[int, str]]:
    calls = calls_of_a_life()
    assert len(calls) > 100
    yield from calls[::share]


@pytest.mark.parametrize(
    ("way", "share"),
    [
        ("power cut", 9),
        ("killed", 9),
        pytest.param("power cut", 1, marks=pytest.mark.slow),
        pytest.param("killed", 1, marks=pytest.mark.slow),
    ],
)
def test_a_log_holds_what_was_flushed_wherever_the_disk_is_cut_off(way: str, share: int) -> None:
    for number, name in cuts(share=share):
        story = Story()
        disks: list[tuple[FaultFileSystem, dict[int, bytes], dict[int, set[bytes]]]] = []

        def cut(
            at: int,
            _name: str,
            story: Story = story,
            number: int = number,
            disks: list[tuple[FaultFileSystem, dict[int, bytes], dict[int, set[bytes]]]] = disks,
        ) -> None:
            if at == number:
                if way == "killed":
                    disks.append((story.fs.killed(), dict(story.kernel), dict(story.appended)))
                else:
                    for seed in range(3):
                        disk = story.fs.power_cut(Random(number * 7 + seed))
                        disks.append((disk, dict(story.settled), dict(story.appended)))

        story.fs.on_call = cut
        story.live()
        for disk, kept, story.appended in disks:
            try:
                check(story, disk, kept)
            except BaseException as error:
                error.add_note(f"cut at call {number}, {name}")
                raise


def test_a_disk_that_fails_at_any_call_takes_the_directory_offline_and_loses_nothing_flushed() -> None:
    for number, name in cuts(share=5):
        story = Story()
        failed = False

        def fail(at: int, _name: str, number: int = number) -> None:
            nonlocal failed
            if at == number:
                failed = True
                raise refused(5)

        story.fs.on_call = fail
        with suppress(KafkaStorageError):
            story.live()
        assert failed
        story.fs.on_call = lambda _number, _name: None
        try:
            check(story, story.fs.killed(), {})
        except BaseException as error:
            error.add_note(f"failed at call {number}, {name}")
            raise


def test_what_was_written_after_a_cut_is_not_taken_for_what_was_flushed_before_it() -> None:
    """The recovery point on the disk is below all that is written again, when it is written."""
    for cut_at in (2, 5, 9):
        story = Story()
        manager = manager_on(story.fs)
        log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=story.now_ms)
        log.assign_epoch_start(1)
        story.append(log, 12)
        story.flush(log)
        story.tick(manager)
        assert read_offsets(FOLDER / RECOVERY_POINTS, story.fs) == {("topic", 0): 12}
        story.truncate(log, cut_at)
        log.assign_epoch_start(2)
        story.append(log, 12, epoch=2)
        points = read_offsets(FOLDER / RECOVERY_POINTS, story.fs)
        assert points[("topic", 0)] <= cut_at
        for seed in range(30):
            check(story, story.fs.power_cut(Random(seed)), story.settled)


def test_a_new_log_does_not_inherit_the_recovery_point_of_a_deleted_one() -> None:
    story = Story()
    manager = manager_on(story.fs)
    log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=story.now_ms)
    story.append(log, 12)
    story.flush(log)
    story.tick(manager)
    manager.delete("topic", 0, now_ms=story.now_ms)
    again = manager.get_or_create("topic", 0, UUID(int=77), now_ms=story.now_ms)
    assert again is not log
    again.append_as_leader(data("other"), leader_epoch=1, now_ms=story.now_ms)
    assert read_offsets(FOLDER / RECOVERY_POINTS, story.fs)["topic", 0] == 0


def test_an_older_checkpoint_does_not_replace_a_newer_one() -> None:
    """A thread may write what was true before a log was cut, after the loop has written what is true now."""
    story = Story()
    manager = manager_on(story.fs)
    log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=story.now_ms)
    log.assign_epoch_start(1)
    story.append(log, 12)
    story.flush(log)
    story.now_ms += 400_000
    late = manager.tick(story.now_ms)
    story.truncate(log, 3)
    story.append(log, 1)
    run_work(late)
    assert read_offsets(FOLDER / RECOVERY_POINTS, story.fs) == {("topic", 0): 3}


def test_a_flush_that_began_before_a_cut_says_nothing_of_what_was_written_after_it() -> None:
    story = Story()
    manager = manager_on(story.fs)
    log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=story.now_ms)
    log.assign_epoch_start(1)
    story.append(log, 6)
    work = log.begin_flush()
    assert work is not None
    work.run()
    story.truncate(log, 1)
    log.assign_epoch_start(2)
    story.append(log, 6, epoch=2)
    log.flushed(work)
    assert log.recovery_point <= 1
    story.flush(log)
    assert log.recovery_point == log.log_end_offset
