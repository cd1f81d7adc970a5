"""The log is cut below its snapshots as what is in the folder asks for."""

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from kquorum.metadata.adapters.log_cleaner import LogCleaner
from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.snapshots.adapters.inventory import list_files
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.retention import KeptSegment, KeptSnapshot, RetentionLimits
from kquorum.snapshots.writer import SnapshotWriter
from tests.support.fault_file_system import FaultFileSystem, refused
from tests.support.metadata.snapshot_parts import FOLDER, START_MS, FakeReplica, run
from tests.support.raft.driver_parts import until


def snapshot_bytes(end_offset: int, timestamp_ms: int) -> bytes:
    writer = SnapshotWriter(
        SnapshotId(end_offset, 1), timestamp_ms=1, last_contained_log_timestamp_ms=timestamp_ms
    )
    return b"".join(writer.write([b"value"]))


def put_snapshot(disk: FaultFileSystem, end_offset: int, timestamp_ms: int = START_MS) -> int:
    data = snapshot_bytes(end_offset, timestamp_ms)
    disk.put(FOLDER / SnapshotId(end_offset, 1).file_name, data)
    return len(data)


class Rig:
    def __init__(self, **limits: int) -> None:
        self.disk = FaultFileSystem(FOLDER)
        self.replica = FakeReplica()
        self.now_ms = START_MS
        self.cleaner = LogCleaner(
            FOLDER, RetentionLimits(**limits), self.replica, self.replica, lambda: self.now_ms, self.disk
        )

    def start(self, interval_ms: int = 3_600_000) -> None:
        self._thread = DiskThread(asyncio.get_running_loop())
        self.cleaner.start(self._thread, interval_ms)

    async def looked(self) -> None:
        calls = self.disk.calls
        self.cleaner.look()
        await until(lambda: self.disk.calls > calls)
        await self.settled()

    async def settled(self) -> None:
        """What the thread was given is done, and told."""
        done = asyncio.Event()
        self._thread.submit(lambda: None, lambda _: done.set(), lambda _: done.set())
        await done.wait()

    async def close(self) -> None:
        self.cleaner.close()
        await self._thread.close(1000)


def test_the_inventory_knows_sizes_and_ages() -> None:
    disk = FaultFileSystem(FOLDER)
    size = put_snapshot(disk, 30, timestamp_ms=77)
    for name in ("5-damaged.checkpoint", "leader-epoch-checkpoint", f"{0:020}.index"):
        disk.put(FOLDER / name, b"not to be counted")
    disk.put(FOLDER / SnapshotId(40, 1).file_name, b"half a header")
    disk.put(FOLDER / SnapshotId(50, 1).file_name, b"")
    disk.put(FOLDER / f"{0:020}.log", bytes(100))
    disk.put(FOLDER / f"{35:020}.log.rolling", bytes(20))
    disk.put(FOLDER / f"{0:020}.log.deleted", bytes(20))
    assert list_files(FOLDER, disk) == (
        (KeptSegment(0, 100), KeptSegment(35, 20)),
        (
            KeptSnapshot(SnapshotId(30, 1), size, 77),
            KeptSnapshot(SnapshotId(40, 1), 13, None),
            KeptSnapshot(SnapshotId(50, 1), 0, None),
        ),
    )


def test_what_goes_away_while_it_is_listed_is_left_out() -> None:
    class Vanishing(FaultFileSystem):
        def names(self, folder: Path) -> list[str]:
            return [*super().names(folder), f"{9:020}.log", SnapshotId(9, 1).file_name]

    assert list_files(FOLDER, Vanishing(FOLDER)) == ((), ())


def test_the_log_begins_where_the_last_that_is_kept_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig(max_bytes=0)
        for end_offset in (10, 20, 30):
            put_snapshot(rig.disk, end_offset)
        rig.replica.applied_offset = 25
        rig.start()
        await rig.looked()
        assert rig.replica.asked == [20], "what the state machine has not applied yet is read from the log"
        rig.replica.applied_offset = 30
        await rig.looked()
        await rig.looked()
        assert rig.replica.asked == [20, 30]
        await rig.close()

    caplog.set_level(logging.INFO)
    run(test())
    assert (
        "gave up snapshot 00000000000000000010-0000000001.checkpoint: log and snapshots have" in caplog.text
    )
    assert "the log now begins at offset 30" in caplog.text


def test_a_log_that_takes_its_time_is_not_asked_twice() -> None:
    async def test() -> None:
        rig = Rig(max_bytes=0)
        put_snapshot(rig.disk, 10)
        put_snapshot(rig.disk, 20)
        rig.start()
        await rig.looked()
        rig.replica.log_start_offset = 0
        await rig.looked()
        assert rig.replica.asked == [20]
        await rig.close()

    run(test())


def test_snapshots_grow_old_while_nothing_happens() -> None:
    async def test() -> None:
        rig = Rig(max_age_ms=1000)
        put_snapshot(rig.disk, 10)
        put_snapshot(rig.disk, 20)
        calls = rig.disk.calls
        rig.start(interval_ms=5)
        await until(lambda: rig.disk.calls > calls)
        await rig.settled()
        assert rig.replica.asked == []
        rig.now_ms += 1001
        await until(lambda: rig.replica.asked == [20])
        await rig.close()

    run(test())


def test_a_folder_that_cannot_be_looked_at_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig(max_bytes=0)
        put_snapshot(rig.disk, 10)
        put_snapshot(rig.disk, 20)
        rig.start()

        def fail(_count: int, name: str) -> None:
            if name == "names":
                raise refused(errno.EIO)

        rig.disk.on_call = fail
        await rig.looked()
        assert rig.replica.asked == []
        rig.disk.on_call = lambda _count, _name: None
        await rig.looked()
        assert rig.replica.asked == [20]
        await rig.close()

    run(test())
    assert "could not be looked at, so nothing is given up" in caplog.text
