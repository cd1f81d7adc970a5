"""A snapshot's way into its folder: whole under its name or not there, whatever the disk does."""

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from kquorum.raft.adapters.snapshot_files import problem_of
from kquorum.snapshots.adapters.durable_snapshot import (
    SnapshotExists,
    WrittenOtherwise,
    WrittenSnapshot,
    write_snapshot,
)
from kquorum.snapshots.adapters.pace import Stopped
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.storage.errors import FsyncFailed, StorageFailed, StorageFull
from kquorum.storage.file_system import Content
from tests.support.fault_file_system import FaultFileSystem, refused

FOLDER = Path("/data/__cluster_metadata-0")
ID = SnapshotId(40, 3)
PATH = FOLDER / ID.file_name
VALUES = [bytes([number]) * 900 for number in range(12)]


def batches(snapshot_id: SnapshotId = ID) -> Iterator[bytes]:
    writer = SnapshotWriter(
        snapshot_id, timestamp_ms=9, last_contained_log_timestamp_ms=8, max_batch_bytes=3000
    )
    return writer.write(VALUES)


@pytest.fixture
def disk() -> FaultFileSystem:
    return FaultFileSystem(FOLDER)


def fail(disk: FaultFileSystem, name: str, number: int, nth: int = 1) -> None:
    """Have the nth call of that name fail."""
    seen = 0

    def on_call(_count: int, called: str) -> None:
        nonlocal seen
        seen += called == name
        if called == name and seen == nth:
            raise refused(number)

    disk.on_call = on_call


def test_a_write_is_announced_and_read(disk: FaultFileSystem) -> None:
    whole = b"".join(batches())
    assert write_snapshot(PATH, ID, batches(), fs=disk) == WrittenSnapshot(PATH, len(whole), len(VALUES))
    assert disk.names(FOLDER) == [PATH.name]
    assert disk.read(PATH) == whole
    assert list(SnapshotReader(whole).values()) == VALUES
    assert disk.open_descriptors == 0


def test_it_is_read_only_on_a_real_disk(tmp_path: Path) -> None:
    written = write_snapshot(tmp_path / ID.file_name, ID, batches())
    assert written.path.stat().st_mode & 0o222 == 0
    assert [path.name for path in tmp_path.iterdir()] == [ID.file_name]


def test_one_that_is_there_is_left_as_it_is(disk: FaultFileSystem) -> None:
    disk.put(PATH, b"another")
    with pytest.raises(SnapshotExists, match=ID.file_name):
        write_snapshot(PATH, ID, batches(), fs=disk)
    assert disk.read(PATH) == b"another"


@pytest.mark.parametrize(
    ("call", "number", "expected"),
    [
        ("open", errno.ENOSPC, StorageFull),
        ("open", errno.EACCES, StorageFailed),
        ("write", errno.ENOSPC, StorageFull),
        ("write", errno.EIO, StorageFailed),
        ("fsync", errno.EIO, FsyncFailed),
        ("fsync", errno.ENOSPC, StorageFull),
        ("map", errno.EIO, StorageFailed),
        ("rename", errno.EIO, StorageFailed),
        ("rename", errno.ENOSPC, StorageFull),
    ],
)
def test_a_failing_disk_keeps_nothing(
    disk: FaultFileSystem, call: str, number: int, expected: type[StorageFailed]
) -> None:
    fail(disk, call, number)
    with pytest.raises(StorageFailed) as caught:
        write_snapshot(PATH, ID, batches(), fs=disk)
    assert type(caught.value) is expected
    assert disk.names(FOLDER) == []
    assert disk.open_descriptors == 0
    disk.on_call = lambda _count, _name: None
    assert write_snapshot(PATH, ID, batches(), fs=disk).record_count == len(VALUES), "it can be tried again"


def test_a_folder_that_cannot_be_flushed_is_reported(disk: FaultFileSystem) -> None:
    fail(disk, "fsync", errno.EIO, nth=2)
    with pytest.raises(FsyncFailed, match=FOLDER.name):
        write_snapshot(PATH, ID, batches(), fs=disk)


def test_a_disk_that_runs_full_half_way_gets_its_space_back(disk: FaultFileSystem) -> None:
    disk.capacity = 5000
    with pytest.raises(StorageFull):
        write_snapshot(PATH, ID, batches(), fs=disk)
    assert (disk.names(FOLDER), disk.free_bytes(FOLDER)) == ([], 5000)


class LyingDisk(FaultFileSystem):
    """Gives back other bytes than it was given."""

    def __init__(self, position: int | None) -> None:
        super().__init__(FOLDER)
        self._position = position

    def map(self, path: Path) -> Content:
        content = bytearray(super().map(path))
        if self._position is None:
            return bytes(content[:-75])
        content[self._position] ^= 1
        return bytes(content)


# The base offset and the epoch of a batch are outside its checksum; a byte of a record is in it.
@pytest.mark.parametrize("position", [7, 15, 300, 2000, None])
def test_what_reads_back_otherwise_gets_no_name(position: int | None) -> None:
    disk = LyingDisk(position)
    with pytest.raises(WrittenOtherwise, match="not what was written"):
        write_snapshot(PATH, ID, batches(), fs=disk)
    assert disk.names(FOLDER) == []


def test_batches_of_another_epoch_get_no_name(disk: FaultFileSystem) -> None:
    with pytest.raises(WrittenOtherwise, match="epoch"):
        write_snapshot(PATH, ID, batches(SnapshotId(40, 4)), fs=disk)
    assert disk.names(FOLDER) == []


def test_a_file_without_a_footer_gets_no_name(disk: FaultFileSystem) -> None:
    with pytest.raises(WrittenOtherwise, match="footer"):
        write_snapshot(PATH, ID, list(batches())[:-1], fs=disk)


def test_an_objection_is_the_last_word(disk: FaultFileSystem) -> None:
    seen = []

    def objection(part: Path) -> str:
        seen.append(disk.read(part))
        return "topic t differs"

    with pytest.raises(WrittenOtherwise, match="topic t differs"):
        write_snapshot(PATH, ID, batches(), objection=objection, fs=disk)
    assert (seen, disk.names(FOLDER)) == ([b"".join(batches())], [])


def test_an_interrupted_write_leaves_nothing(disk: FaultFileSystem) -> None:
    rests = 0

    def rest() -> None:
        nonlocal rests
        rests += 1
        if rests == 3:
            raise Stopped

    with pytest.raises(Stopped):
        write_snapshot(PATH, ID, batches(), rest=rest, fs=disk)
    assert disk.names(FOLDER) == []


def test_an_image_that_cannot_be_encoded_leaves_nothing(disk: FaultFileSystem) -> None:
    def broken() -> Iterator[bytes]:
        yield next(batches())
        raise ValueError("no room in this version")

    with pytest.raises(ValueError, match="no room"):
        write_snapshot(PATH, ID, broken(), fs=disk)
    assert disk.names(FOLDER) == []


@pytest.mark.parametrize("seed", range(6))
def test_the_power_may_go_at_any_moment(seed: int) -> None:
    """After every call, and many outcomes of each: under the name there is a whole snapshot or nothing, and once the
    call that wrote it has returned there is one."""
    random_source = Random(seed)
    disk = FaultFileSystem(FOLDER)
    left: list[FaultFileSystem] = []
    disk.on_call = lambda _count, _name: left.extend(disk.power_cut(random_source) for _ in range(3))
    write_snapshot(PATH, ID, batches(), fs=disk)
    assert len(left) > 30
    found = [after.exists(PATH) for after in left]
    assert all(problem_of(PATH, ID.epoch, after) is None for after in left if after.exists(PATH))
    assert not all(found)
    disk.on_call = lambda _count, _name: None
    assert all(problem_of(PATH, ID.epoch, disk.power_cut(random_source)) is None for _ in range(10))
