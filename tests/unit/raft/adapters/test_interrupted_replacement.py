"""A start that empties the log for a newer snapshot is broken off by a power cut, at every change it makes to the disk;
and the process before it had ended in the middle as well, so that not all that this one reads is on the disk."""

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

import pytest

from kquorum.node.metadata_folder import has_lost_its_state
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.snapshot_files import SnapshotStore, snapshot_path
from kquorum.raft.ready import QuorumState, SnapshotChunk
from kquorum.storage.errors import FsyncFailed
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.fault_file_system import FaultFileSystem, refused
from tests.support.raft.disk_checks import PowerGone, cut_within_start, going_after
from tests.support.raft.log_folders import batches, snapshot_content
from tests.support.raft.log_history import FOLDER

LIMITS = SegmentLimits(segment_bytes=400)
END = 12
AHEAD = OffsetAndEpoch(20, 2)
CHANGES_MAX, CUTS, ROTTEN_CUTS = 60, 10, 3


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def disk_with_log() -> FaultFileSystem:
    """Of several segments; all below END is durable."""
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, LIMITS, 0, fs=fs)
    log.append(batches(0, END))
    log.close()
    return fs


def opened(fs: FaultFileSystem) -> FileLog:
    return FileLog(FOLDER, LIMITS, 0, on_damage="report", fs=fs)


def broken_off(fs: FaultFileSystem, cuts: int = CUTS) -> Iterator[FaultFileSystem]:
    """What the next start leaves, cut off before each of its changes, some disks for each."""
    for passing in range(CHANGES_MAX):
        for seed in range(cuts):
            yield cut_within_start(fs.killed(), Random(seed), passing)


@pytest.mark.parametrize("is_refused", [False, True], ids=["killed", "fsync-failed"])
def test_a_snapshot_whose_name_is_not_durable_yet(*, is_refused: bool) -> None:
    """Emptied for a name that goes away again, the log would be gone without a word."""
    fs = disk_with_log()
    store, content = SnapshotStore(FOLDER, fs), snapshot_content(AHEAD.epoch)
    store.write_chunk(SnapshotChunk(AHEAD, 0, content, True, len(content)))
    was_renamed = False

    def end_after_rename(_count: int, name: str) -> None:
        nonlocal was_renamed
        if was_renamed and name == "fsync":
            raise refused(errno.EIO) if is_refused else PowerGone
        was_renamed = was_renamed or name == "rename"

    fs.on_call = end_after_rename
    with pytest.raises(FsyncFailed if is_refused else PowerGone):
        store.finish(AHEAD)
    fs.on_call = lambda _count, _name: None
    assert opened(fs.killed()).log_start_offset == AHEAD.offset, "the start starts over there"
    for left in broken_off(fs):
        log = opened(left)
        missing_until = 0 if log.damage is None else log.damage.end_offset
        assert max(log.end_offset, missing_until) >= END


def test_a_recovery_point_that_was_set_back_and_not_flushed() -> None:
    """It is read as 0; what is on the disk is unknown. A whole log must not look like one that lost its end."""
    fs = disk_with_log()
    QuorumStateFile(FOLDER, (1, 2, 3), fs=fs).write(QuorumState(leader_epoch=1))
    fs.put(snapshot_path(FOLDER, AHEAD), snapshot_content(AHEAD.epoch))
    writes = 0

    def end_before_flush(_count: int, name: str) -> None:
        nonlocal writes
        writes += name == "pwrite"
        if writes >= 2 and name == "fdatasync":
            raise PowerGone

    fs.on_call = end_before_flush
    with pytest.raises(PowerGone):
        opened(fs)
    fs.on_call = lambda _count, _name: None
    for left in broken_off(fs):
        assert not has_lost_its_state(FOLDER.parent, left)
        assert opened(left).damage is None


def test_damage_that_a_snapshot_stands_for() -> None:
    """Whole without it, the log must not be called damaged because half of it is removed: a sole voter has no node to
    fetch it from."""
    fs = disk_with_log()
    own = OffsetAndEpoch(END, 1)
    fs.put(snapshot_path(FOLDER, own), snapshot_content(own.epoch))
    second = [name for name in fs.names(FOLDER) if name.endswith(".log")][1]
    fs.flip(FOLDER / second, len(fs.inode(FOLDER / second).data) - 1)
    assert opened(fs.killed()).damage is None
    for left in broken_off(fs):
        log = opened(left)
        assert (log.damage, log.log_start_offset, log.end_offset) == (None, END, END)


# The snapshot turns bad before the next start


def rotten(fs: FaultFileSystem, random_source: Random, snapshot: OffsetAndEpoch = AHEAD) -> FaultFileSystem:
    """The disk with a bit of that snapshot turned."""
    path = snapshot_path(FOLDER, snapshot)
    fs.flip(path, random_source.randrange(fs.inode(path).size), 1 << random_source.randrange(8))
    return fs


def broken_off_in_start(fs: FaultFileSystem) -> Iterator[FaultFileSystem]:
    fs.put(snapshot_path(FOLDER, AHEAD), snapshot_content(AHEAD.epoch))
    yield from broken_off(fs, ROTTEN_CUTS)


def broken_off_while_it_runs(fs: FaultFileSystem) -> Iterator[FaultFileSystem]:
    """What a node leaves that drops its log for a snapshot that it fetched, cut off before each of its changes."""
    for passing in range(CHANGES_MAX):
        running = fs.killed()
        log = opened(running)
        running.put(snapshot_path(FOLDER, AHEAD), snapshot_content(AHEAD.epoch))
        running.on_call = going_after(passing)
        with suppress(PowerGone):
            log.truncate_fully_to(AHEAD.offset)
        running.on_call = lambda _count, _name: None
        for seed in range(ROTTEN_CUTS):
            yield running.power_cut(Random(seed))


def check_nothing_is_forgotten(left: FaultFileSystem, end: int) -> None:
    """What cannot be read any more is called damage, at this start and at the next, until it was fetched again."""
    assert not has_lost_its_state(FOLDER.parent, left), "the votes are there"
    for _ in range(2):
        log = opened(left)
        found = log.read(log.log_start_offset, 100_000)
        assert found == b"" or found.startswith(batches(log.log_start_offset, END)[0].data)
        if log.end_offset >= end:
            assert log.damage is None, "nothing was removed yet"
        else:
            assert log.damage is not None, f"the log ends at {log.end_offset}, and {end} was acknowledged"
            assert log.damage.end_offset >= end
        log.close()
    if log.damage is not None:
        check_it_can_be_repaired(left)


def check_it_can_be_repaired(left: FaultFileSystem) -> None:
    log = opened(left)
    log.set_damage_aside()
    assert opened(left.killed()).damage is not None, "it is not repaired yet"
    log.append(batches(log.end_offset, AHEAD.offset + 2, epoch=AHEAD.epoch))
    log.mark_repaired()
    log.close()
    log = opened(left)
    assert (log.damage, log.end_offset) == (None, AHEAD.offset + 2)
    log.close()


@pytest.mark.parametrize("broken_off", [broken_off_in_start, broken_off_while_it_runs])
def test_a_snapshot_that_turns_bad_while_the_log_is_emptied_for_it(
    broken_off: Callable[[FaultFileSystem], Iterator[FaultFileSystem]],
) -> None:
    fs = disk_with_log()
    QuorumStateFile(FOLDER, (1, 2, 3), fs=fs).write(QuorumState(leader_epoch=1))
    random_source = Random(5)
    for left in broken_off(fs):
        check_nothing_is_forgotten(rotten(left, random_source), END)
