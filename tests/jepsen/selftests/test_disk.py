"""The disk forgets what was not flushed and nothing else."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.jepsen.disk import contents
from tests.jepsen.disk.journals import OF_FILE, Journal, read_journals
from tests.jepsen.disk.rig import APPEND, OLD, Rig, rig, shim

__all__ = ["rig", "shim"]


# Power cuts: contents


def test_what_was_not_flushed_is_gone_after_a_power_cut(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "more")
    assert rig.read("old") == OLD + "more"
    lost = rig.cut()
    assert rig.read("old") == OLD
    assert lost["pending-changes"] == 1
    assert lost["files"]["old"]["bytes-cut"] == 4


@pytest.mark.parametrize("flush", ["fsync", "fdatasync"])
def test_what_was_flushed_is_still_there(rig: Rig, flush: str) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "more")
    rig.call(flush, descriptor)
    rig.call("write", descriptor, "lost")
    lost = rig.cut()
    assert rig.read("old") == OLD + "more"
    assert list(lost["files"]) == ["old"]


def test_a_killed_process_loses_nothing_while_the_power_is_on(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "more")
    rig.puppet.kill()
    assert rig.read("old") == OLD + "more"


def test_what_one_process_did_not_flush_is_lost_in_the_life_of_the_next(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "first")
    rig.restart()
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "second")
    rig.cut()
    assert rig.read("old") == OLD


def test_the_next_process_flushes_for_the_one_before(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "first")
    rig.restart()
    rig.call("fsync", rig.call("open", "old", os.O_RDONLY))
    rig.cut()
    assert rig.read("old") == OLD + "first"


@pytest.mark.parametrize(
    "calls",
    [
        [("pwrite", "new", 3)],
        [("write", "new")],
        [("pwrite", "x" * 3000, 600), ("pwrite", "y" * 100, 700)],
        [("ftruncate", 7)],
        [("ftruncate", 7), ("write", "new"), ("ftruncate", 5000), ("pwrite", "z", 4000)],
        [("posix_fallocate", 0, 100_000), ("ftruncate", 0)],
        [("pwrite", "gap", 9_000)],
    ],
    ids=["over", "at-0", "twice", "cut", "cut-and-grow", "allocate", "gap"],
)
@pytest.mark.parametrize("access", [os.O_RDWR, os.O_WRONLY])
def test_every_change_of_content_is_undone(rig: Rig, calls: list[tuple[Any, ...]], access: int) -> None:
    descriptor = rig.call("open", "old", access)
    for name, *arguments in calls:
        rig.call(name, descriptor, *arguments)
    assert rig.read("old") != OLD
    rig.cut()
    assert rig.read("old") == OLD


@pytest.mark.parametrize(
    "change",
    [
        "os.writev(os.open('old', os.O_WRONLY), [b'a', b'bc'])",
        "os.pwritev(os.open('old', os.O_WRONLY), [b'a', b'bc'], 5)",
        "os.truncate('old', 5)",
        "os.close(os.open('old', os.O_WRONLY | os.O_TRUNC))",
        "open('old', 'w').close()",
        "open('old', 'r+b', 0).write(b'abc')",
        "os.sendfile(os.open('old', os.O_WRONLY), os.open('old', os.O_RDONLY), 100, 50)",
        "os.copy_file_range(os.open('old', os.O_RDONLY), os.open('old', os.O_WRONLY), 50, 100, 501)",
        "os.write(os.dup(os.open('old', os.O_WRONLY)), b'abc')",
        "os.write(os.dup2(os.open('old', os.O_WRONLY), 50), b'abc')",
        "os.write(__import__('fcntl').fcntl(os.open('old', os.O_WRONLY), 0, 60), b'abc')",
        "os.write(os.open('old', os.O_WRONLY, dir_fd=os.open('.', os.O_RDONLY)), b'abc')",
        "os.waitpid(os.fork() or os._exit(os.write(os.open('old', os.O_WRONLY), b'a') * 0), 0)",
        "os.system('printf abc > old') and None",
    ],
)
def test_whatever_call_made_the_change(rig: Rig, change: str) -> None:
    rig.call("evaluate", f"({change}, None)[1]")
    assert rig.read("old") != OLD
    rig.cut()
    assert rig.read("old") == OLD


def test_a_descriptor_that_was_another_file_before_is_known_again(rig: Rig, tmp_path: Path) -> None:
    elsewhere = rig.call("open", str(tmp_path / "elsewhere"), APPEND)
    rig.call("write", elsewhere, "known")
    rig.call("dup2", rig.call("open", "old", APPEND), elsewhere)
    rig.call("write", elsewhere, "more")
    rig.cut()
    assert rig.read("old") == OLD


def test_what_was_written_while_a_flush_was_under_way_is_not_flushed_by_it(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "before")
    rig.disk.slow_fsync(300)
    rig.call("begin_fsync", descriptor)
    assert wait_for(lambda: rig.disk.counters()["delayed_fsyncs"] == 1)
    rig.call("write", descriptor, "meanwhile")
    rig.call("end_fsync")
    rig.cut()
    assert rig.read("old") == OLD + "before"


def wait_for(condition: Callable[[], bool], patience_s: float = 10.0) -> bool:
    deadline = time.monotonic() + patience_s
    while not condition() and time.monotonic() < deadline:
        os.sched_yield()
    return condition()


def test_a_journal_is_empty_after_a_flush(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("write", descriptor, "x")
    pending = rig.disk.journal_bytes()
    for _ in range(50):
        rig.call("write", descriptor, "x" * 100)
        rig.call("pwrite", rig.call("open", "old", os.O_WRONLY), "y" * 50, 0)
        rig.call("fdatasync", descriptor)
    assert rig.disk.journal_bytes() < pending


def test_appends_to_a_file_that_is_never_flushed_do_not_fill_the_journal(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.call("evaluate", f"[os.write({descriptor}, b'x') for _ in range(5_000)] and None")
    before = rig.disk.journal_bytes()
    rig.call("evaluate", f"[os.write({descriptor}, b'x') for _ in range(5_000)] and None")
    assert rig.disk.journal_bytes() == before
    rig.cut()
    assert rig.read("old") == OLD


# Power cuts: names


@pytest.mark.parametrize(
    "changes",
    [
        [("rename", "old", "new")],
        [("replace", "tmp", "old")],
        [("unlink", "old")],
        [("link", "old", "twin")],
        [("symlink", "old", "alias")],
        [("mkdir", "inner")],
        [("rename", "tmp", "old"), ("rename", "old", "third"), ("unlink", "third")],
        [("rename", "old", "sub/old"), ("unlink", "sub/old")],
        [("unlink", "sub/x"), ("rmdir", "sub")],
        [("rename", "sub", "bus")],
    ],
    ids=str,
)
def test_names_need_their_folder_to_be_flushed(rig: Rig, changes: list[tuple[str, ...]]) -> None:
    (rig.folder / "tmp").write_text("temporary")
    (rig.folder / "sub").mkdir()
    (rig.folder / "sub" / "x").write_text("x")
    for name, *arguments in changes:
        rig.call(name, *arguments)
    lost = rig.cut()
    assert rig.names() == {"old", "tmp", "sub"}
    assert (rig.read("old"), rig.read("tmp"), rig.read("sub/x")) == (OLD, "temporary", "x")
    assert [path.name for path in (rig.folder / "sub").iterdir()] == ["x"]
    assert lost["names"]


def test_names_are_there_once_their_folder_was_flushed(rig: Rig) -> None:
    rig.puppet.put("tmp", "new", flush=True)
    rig.call("rename", "tmp", "old")
    rig.call("mkdir", "inner")
    rig.call("sync_folder")
    rig.call("unlink", "old")
    rig.cut()
    assert rig.names() == {"old", "inner"}
    assert rig.read("old") == "new"


def test_a_name_without_its_content_is_an_empty_file(rig: Rig) -> None:
    rig.puppet.put("new", "never flushed")
    rig.call("sync_folder")
    rig.cut()
    assert rig.read("new") == ""


def test_removed_files_take_no_space_once_their_folder_was_flushed(rig: Rig, tmp_path: Path) -> None:
    rig.call("unlink", "old")
    assert list((tmp_path / "state" / "grave").iterdir())
    rig.call("sync_folder")
    assert not list((tmp_path / "state" / "grave").iterdir())


# Power cuts: torn


def test_a_write_is_torn_at_a_sector(shim: Path, rig: Rig) -> None:
    """Appended with one write: any number of whole sectors may be left, or all."""
    rig.call("write", rig.call("open", "new", APPEND), "n", 1300)
    rig.call("sync_folder")
    rig.puppet.kill()
    content, journal = (rig.folder / "new").read_bytes(), journal_of(rig, "new")
    history = contents.history_of(journal, content)
    sizes = {len(history.after_power_cut(Random(seed))) for seed in range(200)}
    assert sizes == {0, 512, 1024, 1300}


def journal_of(rig: Rig, name: str) -> Journal:
    inode = (rig.folder / name).stat().st_ino
    journals = read_journals(rig.folder.parent / "state" / "journal", OF_FILE)
    return next(journal for journal in journals if journal.inode == inode)


def test_writes_are_left_in_order_or_as_any_of_their_sectors(rig: Rig) -> None:
    for letter in "abc":
        rig.call("pwrite", rig.call("open", "old", os.O_RDWR), letter * 600, 0)
    rig.puppet.kill()
    content, journal = (rig.folder / "old").read_bytes(), journal_of(rig, "old")
    history = contents.history_of(journal, content)
    left = {history.after_power_cut(Random(seed)).decode() for seed in range(300)}
    # Within the first sector, at its end and behind the second one's changed part.
    told = {(text[0] + text[511], text[512] + text[599], text[600:] == OLD[600:]) for text in left}
    old = (OLD[0] + OLD[511], OLD[512] + OLD[599])
    whole = {(*old, True), ("aa", "aa", True), ("bb", "bb", True), ("cc", "cc", True)}
    torn = {("aa", old[1], True), ("bb", "aa", True), ("cc", "bb", True)}
    any_order = {("cc", old[1], True), (old[0], "cc", True)}
    assert told == whole | torn | any_order


def test_the_same_dice_leave_the_same(rig: Rig) -> None:
    rig.call("write", rig.call("open", "old", APPEND), "n", 5000)
    rig.puppet.kill()
    content, journal = (rig.folder / "old").read_bytes(), journal_of(rig, "old")
    twice = [contents.history_of(journal, content).after_power_cut(Random(7)) for _ in range(2)]
    assert twice[0] == twice[1]
