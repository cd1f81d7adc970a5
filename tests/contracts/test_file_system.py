"""What every FileSystem promises (storage.file_system), asked of the operating system and of the fake alike."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kquorum.storage.file_system import POSIX, FileSystem
from tests.support.fault_file_system import FaultFileSystem

NEW = os.O_RDWR | os.O_CREAT
CLOSED = 1_000_000


@dataclass
class Disk:
    fs: FileSystem
    folder: Path

    def write(self, name: str, data: bytes) -> Path:
        descriptor = self.fs.open(self.folder / name, NEW | os.O_TRUNC)
        assert self.fs.write(descriptor, data) == len(data)
        self.fs.close(descriptor)
        return self.folder / name


@pytest.fixture(params=["posix", "fault"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return (
        Disk(POSIX, tmp_path)
        if request.param == "posix"
        else Disk(FaultFileSystem(Path("/disk")), Path("/disk"))
    )


def test_what_is_written_is_read_by_every_way(disk: Disk) -> None:
    path = disk.write("file", b"0123456789")
    assert disk.fs.read(path) == b"0123456789"
    assert bytes(disk.fs.map(path)) == b"0123456789"
    descriptor = disk.fs.open(path, os.O_RDONLY)
    assert (disk.fs.size(descriptor), disk.fs.pread(descriptor, 3, 8)) == (10, b"89")
    assert disk.fs.pread(descriptor, 3, 10) == b""
    disk.fs.close(descriptor)


def test_an_empty_file_is_mapped_as_nothing(disk: Disk) -> None:
    assert len(disk.fs.map(disk.write("file", b""))) == 0


def test_writes_go_on_where_the_last_one_ended_or_at_the_end(disk: Disk) -> None:
    path = disk.write("file", b"abc")
    appending = disk.fs.open(path, os.O_RDWR | os.O_APPEND)
    overwriting = disk.fs.open(path, os.O_WRONLY)
    disk.fs.write(appending, b"def")
    disk.fs.write(overwriting, b"A")
    disk.fs.write(overwriting, memoryview(b"B"))
    disk.fs.pwrite(overwriting, b"!", 7)
    assert disk.fs.read(path) == b"ABcdef\x00!"
    disk.fs.truncate(appending, 2)
    disk.fs.write(appending, b"z")
    assert disk.fs.read(path) == b"ABz"


def test_allocated_space_reads_as_zeros_and_shortens_nothing(disk: Disk) -> None:
    path = disk.write("file", b"abc")
    descriptor = disk.fs.open(path, os.O_RDWR)
    disk.fs.allocate(descriptor, 5)
    disk.fs.allocate(descriptor, 2)
    assert disk.fs.read(path) == b"abc\x00\x00"
    disk.fs.truncate(descriptor, 7)
    assert disk.fs.size(descriptor) == 7


def test_files_and_folders_can_be_flushed(disk: Disk) -> None:
    descriptor = disk.fs.open(disk.write("file", b"abc"), os.O_RDONLY)
    folder = disk.fs.open(disk.folder, os.O_RDONLY | os.O_DIRECTORY)
    for each in (descriptor, folder):
        disk.fs.fsync(each)
        disk.fs.fdatasync(each)
        disk.fs.close(each)


def test_a_rename_replaces_and_what_is_open_stays_readable(disk: Disk) -> None:
    path, target = disk.write("one", b"1"), disk.write("two", b"2")
    replaced = disk.fs.open(target, os.O_RDONLY)
    disk.fs.rename(path, target)
    assert disk.fs.names(disk.folder) == ["two"]
    assert (disk.fs.read(target), disk.fs.pread(replaced, 9, 0)) == (b"1", b"2")
    removed = disk.fs.open(target, os.O_RDONLY)
    disk.fs.unlink(target)
    assert (disk.fs.names(disk.folder), disk.fs.pread(removed, 9, 0)) == ([], b"1")


def test_folders_are_made_with_their_parents_and_names_are_sorted(disk: Disk) -> None:
    inner = disk.folder / "a" / "b"
    disk.fs.make_folder(inner)
    disk.fs.make_folder(inner)
    for name in ("c", "a", "b"):
        disk.write(f"a/b/{name}", b"")
    assert disk.fs.names(inner) == ["a", "b", "c"]
    assert disk.fs.exists(inner)
    assert disk.fs.exists(inner / "c")
    assert not disk.fs.exists(inner / "d")
    assert not disk.fs.exists(inner / "d" / "e")
    assert disk.fs.free_bytes(inner) > 0


def refused(call: Callable[[], Any]) -> int | None:
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_what_is_not_there_is_refused_as_the_kernel_does(disk: Disk) -> None:
    fs, missing, path = disk.fs, disk.folder / "missing", disk.write("file", b"")
    read_only = fs.open(path, os.O_RDONLY)
    calls: list[Callable[[], Any]] = [
        lambda: fs.open(missing, os.O_RDONLY),
        lambda: fs.open(missing / "file", NEW),
        lambda: fs.open(missing, os.O_RDONLY | os.O_DIRECTORY),
        lambda: fs.rename(missing, path),
        lambda: fs.unlink(missing),
        lambda: fs.names(missing),
        lambda: fs.read(missing),
        lambda: fs.map(missing),
    ]
    assert [refused(call) for call in calls] == [errno.ENOENT] * len(calls)
    assert refused(lambda: fs.open(path, NEW | os.O_EXCL)) == errno.EEXIST
    assert refused(lambda: fs.open(disk.folder, os.O_RDWR)) == errno.EISDIR
    assert refused(lambda: fs.read(disk.folder)) == errno.EISDIR
    assert refused(lambda: fs.write(read_only, b"x")) == errno.EBADF
    fs.close(read_only)
    for call in (fs.close, fs.size, fs.fsync, lambda each: fs.pread(each, 1, 0)):
        assert refused(lambda call=call: call(CLOSED)) == errno.EBADF  # type: ignore[misc]


def random_call(fs: FileSystem, folder: Path, opened: list[int], random_source: Random) -> Any:
    """One call and its answer; both disks are given the same random seed."""
    path, target = (folder / random_source.choice("abc") for _ in range(2))
    flags = random_source.choice((os.O_RDWR, NEW, NEW | os.O_APPEND, NEW | os.O_TRUNC, NEW | os.O_EXCL))
    size, data = random_source.randint(0, 900), random_source.randbytes(random_source.randint(0, 900))
    descriptor = random_source.choice(opened) if opened else CLOSED
    calls: dict[str, Callable[[], Any]] = {
        "open": lambda: opened.append(fs.open(path, flags)),
        "write": lambda: fs.write(descriptor, data),
        "truncate": lambda: fs.truncate(descriptor, size),
        "allocate": lambda: fs.allocate(descriptor, size + 1),
        "fsync": lambda: fs.fsync(descriptor),
        "rename": lambda: fs.rename(path, target),
        "unlink": lambda: fs.unlink(path),
        "close": lambda: (fs.close(descriptor), opened.remove(descriptor)),
        "size": lambda: fs.size(descriptor),
    }
    weights = [3, 6, 2, 1, 1, 2, 1, 1, 1]
    name = random_source.choices(list(calls), weights)[0]
    try:
        return name, calls[name]()
    except OSError as error:
        return name, error.errno


@pytest.mark.parametrize("seed", range(5))
def test_the_fake_answers_a_random_history_as_the_operating_system_does(tmp_path: Path, seed: int) -> None:
    real, fake = Disk(POSIX, tmp_path), Disk(FaultFileSystem(Path("/disk")), Path("/disk"))
    real_random, fake_random = Random(seed), Random(seed)
    real_opened: list[int] = []
    fake_opened: list[int] = []
    for step in range(300):
        answer = random_call(POSIX, tmp_path, real_opened, real_random)
        assert random_call(fake.fs, fake.folder, fake_opened, fake_random) == answer, step
        assert fake.fs.names(fake.folder) == real.fs.names(tmp_path)
        for name in real.fs.names(tmp_path):
            assert fake.fs.read(fake.folder / name) == POSIX.read(tmp_path / name), (step, name)
    for descriptor in real_opened:
        os.close(descriptor)
