"""From the first write that finds no space to the news that there is some again."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.raft.adapters.space_watch import SpaceWatch, SparingStateStore
from kquorum.raft.inputs import Input, WritesPaused
from kquorum.raft.ready import QuorumState
from kquorum.storage.errors import StorageFull
from kquorum.storage.file_system import POSIX, PosixFileSystem
from kquorum.storage.reserved_space import ReservedSpace
from tests.support.raft.driver_parts import run, until

RESERVED = 4096


def full() -> StorageFull:
    return StorageFull("write", Path("x"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


class SmallDisk(PosixFileSystem):
    """Says how much is free, and has none for the reserve while that is less than the reserve."""

    def __init__(self, free: int) -> None:
        super().__init__()
        self.free = free

    def free_bytes(self, folder: Path) -> int:
        return self.free

    def allocate(self, descriptor: int, size: int) -> None:
        if self.free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        POSIX.allocate(descriptor, size)


class Failing:
    """Finds no space so many times, then writes."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise full()
        return "written"


class Watched:
    """A watch at work in the running loop, with a disk thread of its own."""

    def __init__(self, folder: Path, *, free: int = 10 * RESERVED) -> None:
        self.disk = SmallDisk(free)
        self.reserve = ReservedSpace(folder, RESERVED, self.disk)
        self.told: list[bool] = []
        self.inputs: list[Input] = []
        self.polls = 0
        self.made_room = 0
        self.watch = SpaceWatch(self.reserve, self.told.append, poll_interval_ms=1, make_room=self.make_room)
        loop = asyncio.get_running_loop()
        self.thread = DiskThread(loop)
        self.watch.start(loop, self.inputs.append, self.on_disk)

    def on_disk(self, job: Callable[[], bool], then: Callable[[bool], None]) -> None:
        self.polls += 1
        self.thread.submit(job, then, pytest.fail)

    def make_room(self) -> None:
        self.made_room += 1

    async def close(self) -> None:
        self.watch.close()
        await self.thread.close(1000)


def test_a_write_without_space_is_repeated_with_the_reserve_and_reported_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        write = Failing(1)
        watched.disk.free = 0
        assert watched.watch.with_space(write) == "written"
        assert write.calls == 2
        assert watched.inputs == [WritesPaused(True)], "before anything else happens in the loop"
        assert watched.told == [True]
        await watched.close()

    run(test())


def test_there_is_no_second_reserve(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        watched.disk.free = 0
        with pytest.raises(StorageFull):
            watched.watch.with_space(Failing(2))
        await watched.close()

    run(test())


def test_another_thread_is_heard_in_the_loop(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        watched.disk.free = 0
        results: list[str] = []
        watched.thread.submit(lambda: watched.watch.with_space(Failing(1)), results.append, pytest.fail)
        await until(lambda: watched.inputs and results)
        assert (watched.inputs, results) == ([WritesPaused(True)], ["written"])
        await watched.close()

    run(test())


def test_writes_go_on_once_the_reserve_is_held_again(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        watched.disk.free = RESERVED
        watched.watch.with_space(Failing(1))
        await until(lambda: watched.polls >= 3)
        assert watched.watch.is_paused, "room for the reserve alone is not enough"
        assert watched.made_room >= 2, "what is only waiting to be removed goes first"
        watched.disk.free = 2 * RESERVED
        await until(lambda: not watched.watch.is_paused)
        assert watched.inputs == [WritesPaused(True), WritesPaused(False)]
        assert watched.told == [True, False]
        assert watched.reserve.is_held
        await watched.close()

    run(test())


def test_it_happens_again(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        for _ in range(2):
            watched.watch.with_space(Failing(1))
            await until(lambda: not watched.watch.is_paused)
        assert watched.inputs == [WritesPaused(True), WritesPaused(False)] * 2
        await watched.close()

    run(test())


def test_no_space_for_the_reserve_at_the_start_pauses_writes(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path, free=0)
        assert watched.inputs == [WritesPaused(True)]
        watched.disk.free = 2 * RESERVED
        await until(lambda: not watched.watch.is_paused)
        await watched.close()

    run(test())


def test_a_snapshot_that_does_not_fit_pauses_writes_and_leaves_the_reserve(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        watched.watch.handle_full_snapshot(full())
        watched.watch.handle_full_snapshot(full())
        assert (watched.inputs, watched.reserve.is_held) == ([WritesPaused(True)], True)
        assert watched.polls == 0, "not before long"
        await watched.close()

    run(test())


def test_nothing_is_reported_once_it_is_closed(tmp_path: Path) -> None:
    async def test() -> None:
        watched = Watched(tmp_path)
        await watched.close()
        assert watched.watch.with_space(Failing(1)) == "written"
        assert watched.inputs == []

    run(test())


# The election state


class FullStore:
    """Needs the spare's space for every write, as on a disk that has none at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.state: QuorumState | None = None
        self.is_full = True

    def read(self) -> QuorumState | None:
        return self.state

    def write(self, state: QuorumState) -> None:
        if self.is_full and self._path.exists():
            raise full()
        self.state = state


def test_election_states_are_written_on_a_disk_that_stays_full(tmp_path: Path) -> None:
    spare = ReservedSpace(tmp_path, RESERVED, file_name="spare")
    inner = FullStore(tmp_path / "spare")
    store = SparingStateStore(inner, spare)
    for epoch in (1, 2, 3):
        store.write(QuorumState(leader_epoch=epoch))
        assert store.read() == QuorumState(leader_epoch=epoch)
        assert spare.is_held, "what the old copy gave back is held"


def test_without_spare_space_an_election_state_that_does_not_fit_is_fatal(tmp_path: Path) -> None:
    disk = SmallDisk(0)
    store = SparingStateStore(FullStore(tmp_path), ReservedSpace(tmp_path, RESERVED, disk, file_name="spare"))
    with pytest.raises(StorageFull):
        store.write(QuorumState(leader_epoch=1))


def test_with_space_the_spare_is_not_touched(tmp_path: Path) -> None:
    spare = ReservedSpace(tmp_path, RESERVED, file_name="spare")
    inner = FullStore(tmp_path / "spare")
    inner.is_full = False
    before = (tmp_path / "spare").stat().st_ino
    SparingStateStore(inner, spare).write(QuorumState(leader_epoch=1))
    assert (tmp_path / "spare").stat().st_ino == before
