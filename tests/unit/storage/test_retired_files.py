"""Files that are no longer wanted are renamed at once, and removed when those who read them had their time."""

import errno
from pathlib import Path

import pytest

from kquorum.storage.errors import StorageFailed, StorageFull
from kquorum.storage.retired_files import DELETED_SUFFIX, RetiredFiles
from tests.support.fault_file_system import FaultFileSystem, refused

FOLDER = Path("/disk/topic-0")
FIRST, SECOND = FOLDER / "0.log", FOLDER / "5.log"


class Clock:
    now_ms = 1000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def fs() -> FaultFileSystem:
    disk = FaultFileSystem(FOLDER)
    disk.put(FIRST, b"first")
    disk.put(SECOND, b"second")
    return disk


def test_a_file_has_another_name_at_once_and_goes_after_the_delay(fs: FaultFileSystem) -> None:
    clock, closed = Clock(), []
    retired = RetiredFiles(100, clock, fs)
    retired.retire(FIRST, lambda: closed.append(FIRST))
    clock.now_ms += 60
    retired.retire(SECOND, lambda: closed.append(SECOND))
    assert fs.names(FOLDER) == [FIRST.name + DELETED_SUFFIX, SECOND.name + DELETED_SUFFIX]
    clock.now_ms += 39
    retired.remove_due()
    assert closed == []
    clock.now_ms += 1
    retired.remove_due()
    assert (closed, fs.names(FOLDER)) == ([FIRST], [SECOND.name + DELETED_SUFFIX])
    clock.now_ms += 60
    retired.remove_due()
    assert (closed, fs.names(FOLDER)) == ([FIRST, SECOND], [])


def test_where_space_is_short_they_go_at_once(fs: FaultFileSystem) -> None:
    retired = RetiredFiles(100, Clock(), fs)
    retired.retire(FIRST)
    retired.retire(FOLDER / "never there")
    retired.remove_all()
    assert fs.names(FOLDER) == [SECOND.name]


def test_closed_it_leaves_the_files_to_the_next_start(fs: FaultFileSystem) -> None:
    closed: list[Path] = []
    retired = RetiredFiles(100, Clock(), fs)
    retired.retire(FIRST, lambda: closed.append(FIRST))
    retired.close()
    assert (closed, fs.names(FOLDER)) == ([FIRST], [FIRST.name + DELETED_SUFFIX, SECOND.name])


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, StorageFull), (errno.EIO, StorageFailed)])
def test_a_file_that_cannot_be_renamed_is_named(
    fs: FaultFileSystem, number: int, kind: type[StorageFailed]
) -> None:
    def refuse(_count: int, name: str) -> None:
        if name == "rename":
            raise refused(number)

    fs.on_call = refuse
    with pytest.raises(kind, match=str(FIRST)):
        RetiredFiles(100, Clock(), fs).retire(FIRST)
