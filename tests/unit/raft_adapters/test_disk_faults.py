"""A disk that fails: at every single call of a random history, once for each kind of fault, and for good ever after."""

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from raft.adapters import recovery_point
from raft.adapters.errors import FsyncFailed, StorageFailed, StorageFull
from raft.adapters.file_log import FileLog
from raft.adapters.segment import SegmentLimits
from raft.batches import LogBatch
from tests.unit.raft_adapters.log_folders import (
    batch,
    batches,
    read_all,
    segment_offsets,
    set_recovery_point,
    write_snapshot,
)
from tests.unit.raft_adapters.log_history import LIMITS, History, check_survivor
from tests.unit.raft_adapters.recorded_disk import RecordedDisk

STEPS = 30
CALLS = ("write", "pwrite", "ftruncate", "fsync", "fdatasync", "rename", "replace", "unlink", "open")


class FailingDisk:
    """Lets so many calls of one name pass, then refuses that one, and every later one, with an error."""

    def __init__(self, disk: RecordedDisk, call: str, passing: int, error: int) -> None:
        self.calls = 0
        self._call, self._passing, self._error = call, passing, error
        disk.on_call = self

    def __call__(self, call: str) -> None:
        if call == self._call:
            self.calls += 1
            if self.calls > self._passing:
                raise OSError(self._error, os.strerror(self._error))


@pytest.fixture(autouse=True)
def quiet_and_fast(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The real disk's flushes prove nothing here; those that fail are made to."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda _descriptor: None)
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 0.0)
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("seed", [1, 4])
def test_after_an_error_of_any_call_all_that_was_promised_is_there(
    tmp_path: Path, call: str, seed: int
) -> None:
    """EIO at every call of one kind in turn. After it the log does nothing more, and is opened anew."""
    passing, ended = 0, False
    while not ended:
        folder = tmp_path / f"{passing}"
        folder.mkdir()
        ended = run_with_fault(folder, seed, call, passing)
        # All of the first ones; then the step grows, or a history would take minutes.
        passing += 1 + passing // 8
    assert passing > 1, f"{call} is never made"


def run_with_fault(folder: Path, seed: int, call: str, passing: int) -> bool:
    """Whether the history came to its end without having met the fault."""
    disk, history = RecordedDisk(folder), History(folder, Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        disk.install(patch)
        history.open()
        before = (history.promised, list(history.possible))
        FailingDisk(disk, call, passing, errno.EIO)
        failure: StorageFailed | None = None
        try:
            for _ in range(STEPS):
                before = (history.promised, list(history.possible))
                history.step()
        except StorageFailed as error:
            failure = error
        disk.on_call = lambda _call: None
        survivor = FileLog(folder, LIMITS, 0, on_damage="report")
        assert survivor.damage is None, survivor.damage
        check_survivor(survivor, before[0], [*before[1], *history.made])
        survivor.close()
    if failure is None:
        return True
    assert isinstance(failure, FsyncFailed) == (call in ("fsync", "fdatasync"))
    assert not isinstance(failure, StorageFull)
    return False


class FullDisk:
    """Takes `passing` more writes, then half of one, and is full until `is_full` is taken back."""

    def __init__(self, patch: pytest.MonkeyPatch, passing: int) -> None:
        self.is_full = True
        self.was_met = False
        self._passing = passing
        for name in ("write", "pwrite"):
            patch.setattr(os, name, self._limited(getattr(os, name)))

    def _limited(self, real: Callable[..., int]) -> Callable[..., int]:
        def write(descriptor: int, data: bytes, *position: int) -> int:
            self._passing -= 1
            if not self.is_full or self._passing >= 0:
                return real(descriptor, data, *position)
            self.was_met = True
            if self._passing == -1 and len(data) > 1:
                return real(descriptor, data[: len(data) // 2], *position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return write


def append_or_refusal(log: FileLog, group: list[LogBatch]) -> StorageFull | None:
    try:
        log.append(group)
    except StorageFull as error:
        return error
    return None


def test_a_full_disk_leaves_the_log_as_it_was_and_space_lets_it_go_on(tmp_path: Path) -> None:
    """Full at every write of an append over three segments, in turn: all of the append is kept, or none."""
    for passing in range(100):
        folder = tmp_path / f"{passing}"
        log = FileLog(folder, SegmentLimits(segment_bytes=3 * len(batch(0).data)), 0)
        log.append(batches(0, 2))
        log.flush()
        with pytest.MonkeyPatch.context() as patch:
            disk = FullDisk(patch, passing)
            refusal = append_or_refusal(log, batches(2, 8))
            if refusal is not None:
                assert "No space left on device; nothing of it was kept" in str(refusal)
                assert read_all(log) == batches(0, 2)
                assert log.summary().log_end_offset == 2
                assert log.flush() == 2, "what was there before can be kept"
                disk.is_full = False
                log.append(batches(2, 8))
        assert log.flush() == 8
        log.close()
        reopened = FileLog(folder)
        assert read_all(reopened) == batches(0, 8)
        reopened.close()
        if not disk.was_met:
            break
    assert 4 < passing < 100


def test_a_full_disk_during_a_flush_keeps_what_is_durable_and_can_be_flushed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint of the epochs can wait; the recovery point must not say more than it."""
    log = FileLog(tmp_path)
    log.append([batch(0, epoch=1), batch(1, epoch=2)])
    disk = FullDisk(monkeypatch, 0)
    assert log.flush() == 2
    assert disk.was_met
    disk.is_full = False
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n0\n"
    crashed = FileLog(tmp_path, on_damage="report")
    assert (crashed.damage, read_all(crashed)) == (None, [batch(0, epoch=1), batch(1, epoch=2)])
    assert log.flush() == 2
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n1 0\n2 1\n"
    crashed.close()
    log.close()


def test_a_disk_that_does_not_take_back_half_a_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path)
    FullDisk(monkeypatch, 0)

    def refuse(_descriptor: int, _size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(StorageFailed, match="cannot truncate") as caught:
        log.append([batch(0)])
    assert not isinstance(caught.value, StorageFull)
    with pytest.raises(StorageFailed, match="cannot truncate"):
        log.append([batch(0)])
    monkeypatch.undo()
    log.close()


def test_a_retirement_that_found_no_space_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=200))
    log.append(batches(0, 6))
    log.flush()
    write_snapshot(tmp_path, 5)

    def refuse(_path: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "rename", refuse)
    log.advance_log_start(5)
    with pytest.raises(StorageFull):
        log.flush()
    monkeypatch.undo()
    log.flush()
    assert segment_offsets(tmp_path) == [5]
    assert read_all(log) == [batch(5)]
    log.close()


def test_a_recovery_point_that_cannot_be_read_is_as_good_as_none(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    log.append(batches(0, 3))
    log.close()
    set_recovery_point(tmp_path, None)
    (tmp_path / "recovery-point").write_bytes(b"nonsense")
    again = FileLog(tmp_path)
    assert read_all(again) == batches(0, 3)
    again.close()
