"""A voter that stops while its log is dropped or repaired starts as what it is, with its votes: whole if it is, and
damaged until a repair is requested. At every operation on the disk, through all that a start looks at.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from kquorum.node.log_repair import LogRepair, look_at_folder
from kquorum.node.metadata_folder import MARK, has_lost_its_state
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.storage import recovery_point
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.storage.retired_files import RetiredFiles
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.fault_file_system import CHANGES, FaultFileSystem
from tests.support.raft.log_folders import batches, read_all, snapshot_content
from tests.support.storage.log_parts import batch

DATA = Path("/disk")
FOLDER = DATA / FOLDER_NAME
VOTERS = (1, 2, 3)
THREE = VoterSet.of(*(Voter(ReplicaKey(node_id)) for node_id in VOTERS))
STATE = QuorumState(leader_epoch=1, leader_id=2)
LIMITS = SegmentLimits(segment_bytes=3 * len(batch(0).data))
END = 12
CONFIG = cast(
    Any,
    SimpleNamespace(
        is_controller=True,
        metadata_log_dir=DATA,
        controller_quorum_voters=tuple(SimpleNamespace(id=node_id) for node_id in VOTERS),
    ),
)


class Stopped(BaseException):
    """Nothing may handle it."""


@dataclass
class Started:
    log: FileLog
    repair: LogRepair


def disk() -> FaultFileSystem:
    """A voter with 12 records in segments of 3, stopped in good order."""
    fs = FaultFileSystem(FOLDER)
    fs.put(DATA / MARK, b"")
    QuorumStateFile(FOLDER, VOTERS, fs=fs).write(STATE)
    log = FileLog(FOLDER, LIMITS, fs=fs)
    log.append(batches(0, END))
    log.close()
    return fs


def damage(fs: FaultFileSystem, offset: int) -> FaultFileSystem:
    fs.flip(FOLDER / f"{offset // 3 * 3:020}.log", offset % 3 * len(batch(0).data) + 80)
    return fs


def put_snapshot(fs: FaultFileSystem, offset: int) -> FaultFileSystem:
    fs.put(snapshot_path(FOLDER, OffsetAndEpoch(offset, 1)), snapshot_content(1))
    return fs


def start(fs: FaultFileSystem) -> Started:
    is_lost = look_at_folder(CONFIG, fs)
    log = FileLog(FOLDER, LIMITS, 0, on_damage="report", retired=RetiredFiles(0, fs=fs), fs=fs)
    return Started(log, LogRepair(log, THREE, CONFIG, ReplicaKey(1, UUID(int=1)), is_lost=is_lost, fs=fs))


def install_snapshot(fs: FaultFileSystem) -> None:
    log = start(fs).log
    put_snapshot(fs, 20)
    log.truncate_fully_to(20)
    log.append(batches(20, 22))
    log.close()


def begin_at_snapshot(fs: FaultFileSystem) -> None:
    """The same, when the node stopped before it dropped the log."""
    put_snapshot(fs, 20)
    start(fs).log.close()


def begin_a_repair(fs: FaultFileSystem) -> None:
    log = start(fs).log
    while log.end_offset < END:
        log.append([batch(log.end_offset)])
        log.flush()
    log.close()


def stop_before(fs: FaultFileSystem, change: int, run: Callable[[FaultFileSystem], None]) -> bool:
    """Whether it ran to its end."""
    seen = 0

    def hear(_count: int, name: str) -> None:
        nonlocal seen
        seen += name in CHANGES
        if seen > change:
            raise Stopped

    fs.on_call = hear
    try:
        run(fs)
    except Stopped:
        return False
    finally:
        fs.on_call = lambda _count, _name: None
    return True


def check_at_every_change(
    make: Callable[[], FaultFileSystem],
    run: Callable[[FaultFileSystem], None],
    check: Callable[[Started], None],
) -> int:
    """Stop before each change in turn, by a kill and by a power cut, and start; and stop that start somewhere too."""
    random_source = Random(1)
    for change in range(1000):
        fs = make()
        is_done = stop_before(fs, change, run)
        again = fs.power_cut(random_source)
        stop_before(again, random_source.randint(0, 40), lambda fs: start(fs).log.close())
        for left in (fs.killed(), fs.power_cut(random_source), again.power_cut(random_source)):
            assert not has_lost_its_state(DATA, left), f"stopped before change {change}: {left.names(FOLDER)}"
            started = start(left)
            assert not started.repair.has_lost_its_state
            assert QuorumStateFile(FOLDER, VOTERS, fs=left).read() == STATE
            check(started)
            started.log.close()
        if is_done:
            return change
    raise AssertionError("it never ends")


def check_whole(started: Started) -> None:
    assert started.log.damage is None
    assert started.repair.damaged_until is None
    place = started.log.log_start_offset, started.log.end_offset
    assert place == (0, END) or (place[0] == 20 and 20 <= place[1] <= 22)


def check_damaged(started: Started) -> None:
    """Until a repair is requested, which `begin_a_repair` never does."""
    assert started.repair.damaged_until is not None
    assert started.log.damage is not None
    found = read_all(started.log)
    assert found == batches(started.log.log_start_offset, END)[: len(found)]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("interval_s", [0.0, 1000.0])
@pytest.mark.parametrize("run", [install_snapshot, begin_at_snapshot])
def test_a_voter_that_drops_its_log_for_a_snapshot_keeps_its_votes(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[FaultFileSystem], None], interval_s: float
) -> None:
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", interval_s)
    assert check_at_every_change(disk, run, check_whole) > 20


def damaged_disk(damaged_at: tuple[int, ...], snapshot_at: int | None) -> FaultFileSystem:
    fs = disk()
    for offset in damaged_at:
        damage(fs, offset)
    return fs if snapshot_at is None else put_snapshot(fs, snapshot_at)


@pytest.mark.parametrize(
    ("damaged_at", "snapshot_at"),
    [((offset,), None) for offset in (0, 1, 7, 11)]
    + [((7,), 2), ((11,), 2), ((11,), 9)]
    # Below the snapshot and behind it as well.
    + [((offset, 10), 9) for offset in (0, 1, 7)]
    + [((offset, 3), 2) for offset in (0, 1)],
)
def test_a_voter_that_repairs_its_log_keeps_its_votes_and_stays_damaged(
    damaged_at: tuple[int, ...], snapshot_at: int | None
) -> None:
    """Damaged at 0, all segments go aside before there is a new one."""

    def make() -> FaultFileSystem:
        return damaged_disk(damaged_at, snapshot_at)

    assert check_at_every_change(make, begin_a_repair, check_damaged) > 20


@pytest.mark.parametrize(("damaged_at", "snapshot_at"), [(0, 2), (1, 2), (0, 9), (1, 9), (7, 9)])
def test_a_voter_that_is_damaged_below_its_snapshot_alone_is_whole(damaged_at: int, snapshot_at: int) -> None:
    def check(started: Started) -> None:
        assert (started.log.damage, started.repair.damaged_until) == (None, None)
        assert (started.log.log_start_offset, started.log.end_offset) == (snapshot_at, END)
        found = read_all(started.log)
        assert found == batches(found[0].base_offset, END)
        assert found[0].base_offset <= snapshot_at

    assert check_at_every_change(lambda: damaged_disk((damaged_at,), snapshot_at), begin_a_repair, check) > 5


# What still counts as lost


def without_segments(fs: FaultFileSystem) -> FaultFileSystem:
    for name in fs.names(FOLDER):
        if name.endswith(".log"):
            fs.unlink(FOLDER / name)
    return fs


def set_point(fs: FaultFileSystem, offset: int) -> FaultFileSystem:
    point = RecoveryPoint(FOLDER, fs)
    point.put(offset)
    point.close()
    return fs


def test_segments_that_went_by_themselves_are_lost() -> None:
    assert has_lost_its_state(DATA, without_segments(disk()))
    assert has_lost_its_state(DATA, without_segments(put_snapshot(disk(), 9)))
    assert has_lost_its_state(DATA, without_segments(put_snapshot(disk(), 20))), "it did not drop them"


def test_without_a_sound_snapshot_nothing_stands_for_the_segments() -> None:
    fs = set_point(without_segments(disk()), 0)
    assert has_lost_its_state(DATA, fs)
    fs = put_snapshot(fs, 20)
    assert not has_lost_its_state(DATA, fs)
    fs.flip(snapshot_path(FOLDER, OffsetAndEpoch(20, 1)), 70)
    assert has_lost_its_state(DATA, fs)


def test_a_log_that_was_dropped_and_then_lost_its_segments_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recovery point is durable as soon as there is a segment again."""
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 1000.0)
    fs = disk()
    log = start(fs).log
    log.append(batches(END, END + 1))
    log.flush()
    put_snapshot(fs, 20)
    log.truncate_fully_to(20)
    for seed in range(10):
        assert has_lost_its_state(DATA, without_segments(fs.power_cut(Random(seed))))
    log.close()
