import errno
import os
import threading
from collections import namedtuple
from pathlib import Path

import pytest

from kquorum.storage.errors import StorageFailed, StorageFull
from kquorum.storage.reserved_space import FILE_NAME, ReservedSpace

MIB = 1024 * 1024
Free = namedtuple("Free", "f_bavail f_frsize")  # noqa: PYI024 - what statvfs answers, as far as it is read


def full(path: Path) -> StorageFull:
    return StorageFull("write", path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


class Writer:
    """Finds no space while the reserve is there, and so many times more."""

    def __init__(self, folder: Path, failures: int = 0) -> None:
        self._folder, self._failures = folder, failures

    def __call__(self) -> str:
        if (self._folder / FILE_NAME).exists():
            raise full(self._folder)
        self._failures -= 1
        if self._failures >= 0:
            raise full(self._folder)
        return "written"


def test_the_space_is_really_taken(tmp_path: Path) -> None:
    space = ReservedSpace(tmp_path, MIB)
    found = (tmp_path / FILE_NAME).stat()
    assert space.is_held
    assert found.st_size == MIB
    assert found.st_blocks * 512 >= MIB, "a file with a hole would reserve nothing"


def test_a_write_that_finds_the_disk_full_is_given_the_reserve(tmp_path: Path) -> None:
    space = ReservedSpace(tmp_path, MIB)
    assert space.with_space(Writer(tmp_path)) == "written"
    assert not space.is_held
    assert not (tmp_path / FILE_NAME).exists()
    with pytest.raises(StorageFull):
        space.with_space(Writer(tmp_path, failures=1))


def test_a_write_that_needs_no_space_leaves_the_reserve_alone(tmp_path: Path) -> None:
    space = ReservedSpace(tmp_path, MIB)
    assert space.with_space(lambda: 7) == 7
    assert space.is_held


def test_other_failures_are_not_tried_again(tmp_path: Path) -> None:
    space = ReservedSpace(tmp_path, MIB)
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise StorageFailed("write", tmp_path, OSError(errno.EIO, os.strerror(errno.EIO)))

    with pytest.raises(StorageFailed):
        space.with_space(broken)
    assert (len(calls), space.is_held) == (1, True)


def test_it_is_taken_back_only_when_there_is_space_to_spare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = ReservedSpace(tmp_path, MIB)
    space.release()
    monkeypatch.setattr(os, "statvfs", lambda _path: Free(2 * MIB - 1, 1))
    assert not space.maybe_take_back()
    monkeypatch.setattr(os, "statvfs", lambda _path: Free(2 * MIB, 1))
    assert space.maybe_take_back()
    assert (tmp_path / FILE_NAME).stat().st_size == MIB


def test_on_a_disk_that_is_full_already_nothing_is_held_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _offset: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    space = ReservedSpace(tmp_path, MIB)
    assert not space.is_held
    assert list(tmp_path.iterdir()) == []
    assert not space.maybe_take_back()
    monkeypatch.undo()
    assert space.maybe_take_back()


def test_the_file_of_an_earlier_run_is_taken_over_with_the_size_of_today(tmp_path: Path) -> None:
    ReservedSpace(tmp_path, 2 * MIB)
    assert ReservedSpace(tmp_path, MIB).is_held
    assert (tmp_path / FILE_NAME).stat().st_size == MIB


def test_no_reserve_is_always_held(tmp_path: Path) -> None:
    space = ReservedSpace(tmp_path, 0)
    assert space.is_held
    assert list(tmp_path.iterdir()) == []


def test_of_two_threads_that_find_the_disk_full_both_go_on_with_what_one_gave_away(tmp_path: Path) -> None:
    """Both have met the full disk before either is given the reserve."""
    space = ReservedSpace(tmp_path, MIB)
    both_are_refused = threading.Barrier(2, timeout=20)
    written: list[str] = []

    def write_in_thread() -> None:
        tries: list[int] = []

        def write() -> str:
            tries.append(1)
            if len(tries) == 1:
                both_are_refused.wait()
                raise full(tmp_path)
            return "written"

        written.append(space.with_space(write))

    threads = [threading.Thread(target=write_in_thread) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert written == ["written", "written"]
    assert not space.is_held
    with pytest.raises(StorageFull):
        space.with_space(lambda: (_ for _ in ()).throw(full(tmp_path)))
