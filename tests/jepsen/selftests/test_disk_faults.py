"""A disk that is slow, fails, is full, or stands beside a clock that jumps; and is as good as any when healed."""

import errno
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.jepsen.disk import build
from tests.jepsen.disk.build import Shim, ShimUnavailable
from tests.jepsen.disk.damage import LOG_FOLDER, NothingToFlip, flip_bit, wipe
from tests.jepsen.disk.rig import APPEND, OLD, Rig, rig, shim

__all__ = ["rig", "shim"]


def test_a_slow_flush_takes_so_much_longer(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.disk.slow_fsync(150)
    assert rig.call("timed_fsync", descriptor) >= 0.15
    rig.disk.heal()
    rig.call("timed_fsync", descriptor)
    assert (rig.disk.counters()["fsyncs"], rig.disk.counters()["delayed_fsyncs"]) == (2, 1)


def test_the_delay_of_a_flush_is_random_by_a_seed_and_below_the_most(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.disk.slow_fsync(60, seed=3)
    delays = [rig.call("timed_fsync", descriptor) for _ in range(6)]
    assert max(delays) - min(delays) > 0.01
    assert sum(delays) < 6 * 0.06 + 5


def test_flushes_fail_as_often_as_they_should(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.disk.fail_fsync(2)
    errors = [rig.error_of(name, descriptor) for name in ("fsync", "fdatasync", "fsync")]
    assert errors == [errno.EIO, errno.EIO, None]
    rig.disk.fail_fsync()
    assert [rig.error_of("fsync", descriptor) for _ in range(3)] == [errno.EIO] * 3
    rig.disk.heal()
    assert rig.error_of("fsync", descriptor) is None
    assert rig.disk.counters()["failed_fsyncs"] == 5


def test_what_a_failed_flush_should_have_kept_is_read_but_never_durable(rig: Rig) -> None:
    descriptor = rig.call("open", "old", os.O_RDWR)
    rig.call("pwrite", descriptor, "gone", 0)
    rig.disk.fail_fsync(1)
    assert rig.error_of("fsync", descriptor) == errno.EIO
    rig.call("pwrite", descriptor, "kept", 10)
    rig.call("fsync", descriptor)
    rig.restart()
    rig.call("fsync", rig.call("open", "old", os.O_RDWR))
    assert rig.read("old")[:4] == "gone"
    rig.cut()
    assert rig.read("old") == OLD[:10] + "kept" + OLD[14:]


def test_what_is_written_again_after_a_failed_flush_is_durable_once_flushed(rig: Rig) -> None:
    descriptor = rig.call("open", "old", os.O_RDWR)
    rig.call("pwrite", descriptor, "new", 0)
    rig.disk.fail_fsync(1)
    rig.error_of("fsync", descriptor)
    rig.call("pwrite", descriptor, "new", 0)
    rig.call("fsync", descriptor)
    rig.cut()
    assert rig.read("old") == "new" + OLD[3:]


def test_names_of_a_failed_flush_are_never_durable(rig: Rig) -> None:
    rig.puppet.put("new", "x", flush=True)
    rig.call("rename", "old", "moved")
    rig.disk.fail_fsync(1)
    assert rig.error_of("sync_folder") == errno.EIO
    rig.call("sync_folder")
    assert rig.names() == {"moved", "new"}
    rig.cut(seed=1)
    assert rig.names() == {"old"}
    assert rig.read("old") == OLD


def test_writes_fail_as_often_as_they_should_and_change_nothing(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.disk.fail_writes(2)
    assert [rig.error_of("write", descriptor, "x") for _ in range(3)] == [errno.EIO, errno.EIO, None]
    rig.disk.fail_writes()
    assert rig.error_of("pwrite", rig.call("open", "old", os.O_RDWR), "x", 0) == errno.EIO
    assert rig.read("old") == OLD + "x"
    assert rig.disk.counters()["failed_writes"] == 3


def test_a_full_disk_takes_what_fits_and_then_nothing_that_grows(rig: Rig) -> None:
    descriptor = rig.call("open", "old", APPEND)
    rig.disk.fill(10)
    assert rig.call("write", descriptor, "x", 4) == 4
    assert rig.call("write", descriptor, "y", 100) == 6
    assert rig.error_of("write", descriptor, "z") == errno.ENOSPC
    assert rig.error_of("posix_fallocate", descriptor, 0, 5000) == errno.ENOSPC
    assert rig.call("pwrite", rig.call("open", "old", os.O_RDWR), "in place", 0) == 8
    assert rig.disk.counters()["full_writes"] == 3
    rig.disk.heal()
    assert rig.call("write", descriptor, "z", 100) == 100


def test_appending_needs_space_wherever_the_descriptor_stands(rig: Rig) -> None:
    rig.disk.fill()
    assert rig.error_of("write", rig.call("open", "old", APPEND), "x") == errno.ENOSPC


@pytest.mark.parametrize("giving", [("unlink", "old"), ("truncate", "old", 0), ("rename", "new", "old")])
def test_what_is_removed_makes_room(rig: Rig, giving: tuple[Any, ...]) -> None:
    descriptor = rig.call("open", "new", APPEND)
    rig.disk.fill()
    assert rig.error_of("write", descriptor, "x") == errno.ENOSPC
    rig.call(*giving)
    assert rig.call("write", descriptor, "x", 5000) == len(OLD)


def test_a_full_disk_says_so_when_it_is_asked(rig: Rig) -> None:
    assert rig.call("space") > 1 << 20
    rig.disk.fill(1 << 20)
    assert rig.call("space") == 1 << 20
    rig.call("write", rig.call("open", "new", APPEND), "x", 1 << 19)
    assert rig.call("space") == 1 << 19


def test_other_folders_are_not_touched(rig: Rig, tmp_path: Path) -> None:
    rig.disk.fill()
    rig.disk.fail_writes()
    rig.disk.fail_fsync()
    other = tmp_path / "data-of-another"
    rig.puppet.put(str(other), "fine", flush=True)
    rig.call("rename", str(other), str(tmp_path / "renamed"))
    rig.puppet.kill()
    counters = rig.disk.counters()
    assert (counters["writes"], counters["fsyncs"], counters["name_changes"]) == (0, 0, 0)
    rig.disk.cut_power(Random(0), tear=False)
    assert (tmp_path / "renamed").read_text() == "fine"


@pytest.mark.parametrize(
    "clock", ["time.time()", "time.clock_gettime(0)", "__import__('datetime').datetime.now().timestamp()"]
)
@pytest.mark.parametrize("offset_ms", [90_000_123, -90_000_123])
def test_the_wall_clock_jumps_and_the_monotonic_clock_does_not(rig: Rig, clock: str, offset_ms: int) -> None:
    rig.disk.jump_clock(offset_ms)
    before_s = time.time()
    told_s = rig.call("evaluate", clock)
    assert 0 <= told_s - offset_ms / 1000 - before_s < 5
    assert 0 <= rig.call("evaluate", "time.monotonic()") <= time.monotonic()
    rig.disk.heal()
    assert before_s <= rig.call("evaluate", clock) <= time.time()
    assert rig.disk.counters()["shifted_clocks"] > 0


def test_changes_that_no_journal_undoes_are_reported_rather_than_guessed(rig: Rig) -> None:
    rig.call("evaluate", "[__import__('mmap').mmap(os.open('old', os.O_RDWR), 10)] and None")
    rig.puppet.kill()
    with pytest.raises(AssertionError, match="unseen_changes"):
        rig.disk.cut_power(Random(0), tear=False)


# Without a shim


def test_without_a_compiler_the_shim_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ShimUnavailable, match="compiler"):
        Shim.build(tmp_path / "cache")


def test_a_shim_is_compiled_once(shim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    assert Shim.build(shim.parent) == shim


def batch(records: bytes) -> bytes:
    """A header's length is all that is looked at."""
    return bytes(8) + (49 + len(records)).to_bytes(4, "big") + bytes(49) + records


def test_one_bit_of_the_records_is_flipped(tmp_path: Path) -> None:
    log = tmp_path / "node" / LOG_FOLDER
    log.mkdir(parents=True)
    whole = batch(b"a" * 20) + batch(b"b" * 30)
    (log / "0.log").write_bytes(whole + batch(b"torn")[:-1])
    for seed in range(30):
        (log / "0.log").write_bytes(whole + batch(b"torn")[:-1])
        flip = flip_bit(tmp_path, Random(seed))
        after = (tmp_path / flip.file).read_bytes()
        changed = [at for at, byte in enumerate(after[: len(whole)]) if byte != whole[at]]
        assert changed == [flip.position]
        assert after[flip.position] ^ whole[flip.position] == 1 << flip.bit
        assert whole[flip.position : flip.position + 1] in (b"a", b"b")


def test_a_log_without_records_has_nothing_to_flip(tmp_path: Path) -> None:
    (tmp_path / LOG_FOLDER).mkdir()
    (tmp_path / LOG_FOLDER / "0.log").write_bytes(b"")
    with pytest.raises(NothingToFlip):
        flip_bit(tmp_path, Random(0))


def test_wiping_leaves_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("x")
    (tmp_path / "c").symlink_to(tmp_path / "a")
    wipe(tmp_path)
    assert list(tmp_path.iterdir()) == []
