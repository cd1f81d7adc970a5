"""A disk that fails or is full: at any call of a history of all that a node keeps, and for good ever after."""

import errno
import logging
from pathlib import Path
from random import Random

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.raft.ready import QuorumState
from kquorum.storage import recovery_point
from kquorum.storage.errors import EnvironmentFault, FsyncFailed, StorageFailed, StorageFull
from kquorum.storage.reserved_space import ReservedSpace
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from tests.support.fault_file_system import SYNCS, FaultFileSystem, refused
from tests.support.raft.disk_checks import check_left
from tests.support.raft.log_folders import batches, read_all, snapshot_content
from tests.support.raft.log_history import FOLDER, SCRIPT, History
from tests.support.storage.log_parts import batch

SIZE = len(batch(0).data)
THREE_A_SEGMENT = SegmentLimits(segment_bytes=3 * SIZE)


@pytest.fixture(autouse=True)
def quiet_and_exact(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 0.0)
    caplog.set_level(logging.ERROR)


MIB = 1024 * 1024


def run_with_fault(seed: int, call: int) -> str | None:
    """EIO at that call, and at every later one of its kind; answers its name, or None if the history had ended."""
    fs = FaultFileSystem(FOLDER.parent)
    history, failing = History(fs, Random(seed)), ""

    def fail(count: int, name: str) -> None:
        nonlocal failing
        # What the kernel says at close(2) was said at the flush before; nothing follows from it.
        if count >= call and not failing and name != "close":
            failing = name
        if name == failing:
            raise refused(errno.EIO)

    fs.on_call = fail
    failure: EnvironmentFault | None = None
    try:
        history.run(SCRIPT)
    except EnvironmentFault as error:
        failure = error
    fs.on_call = lambda _count, _name: None
    if not failing:
        return None
    if failure is not None:
        assert not isinstance(failure, StorageFull)
        assert isinstance(failure, FsyncFailed) == (failing in SYNCS), (failing, failure)
    random_source = Random(call)
    for left in (fs.killed(), fs.power_cut(random_source), fs.power_cut(random_source)):
        check_left(left, history.expected)
    return failing


def calls_of(seed: int) -> list[str]:
    """The names of all calls of an undisturbed history."""
    fs, names = FaultFileSystem(FOLDER.parent), list[str]()
    history = History(fs, Random(seed))
    fs.on_call = lambda _count, name: names.append(name)
    history.run(SCRIPT)
    return names


def test_after_an_error_of_any_call_all_that_was_promised_is_there() -> None:
    """Of each kind of call, some from all over the history. After it the log does nothing more, and is opened again."""
    names = calls_of(1)
    for name in sorted(set(names) - {"close"}):
        places = [number for number, each in enumerate(names, 1) if each == name]
        for number in places[:: 1 + len(places) // 5]:
            assert run_with_fault(1, number) == name


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_after_an_error_of_every_call_all_that_was_promised_is_there(part: int) -> None:
    call = part + 1
    while run_with_fault(2, call) is not None:
        call += 8


def test_what_a_failed_flush_left_in_memory_alone_is_not_taken_for_durable() -> None:
    """The process ends, as it must. The next one reads it all, flushes, and acknowledges: then the power goes."""
    for seed in range(40):
        fs, random_source = FaultFileSystem(FOLDER.parent), Random(seed)
        log = FileLog(FOLDER, THREE_A_SEGMENT, fs=fs)
        log.append(batches(0, 2))
        log.flush()
        log.append(batches(2, 2 + random_source.randint(1, 7)))

        def fail(_count: int, name: str) -> None:
            if name in SYNCS:
                raise refused(errno.EIO)

        fs.on_call = fail
        with pytest.raises(FsyncFailed):
            log.flush()
        fs.on_call = lambda _count, _name: None
        next_fs = fs.killed()
        acknowledged = FileLog(FOLDER, THREE_A_SEGMENT, fs=next_fs)
        end = acknowledged.flush()
        survivor = FileLog(FOLDER, THREE_A_SEGMENT, on_damage="report", fs=next_fs.power_cut(random_source))
        assert (survivor.damage, read_all(survivor)) == (None, batches(0, end)), seed
        survivor.close()
        acknowledged.close()


def append_or_refusal(log: FileLog, group: list[LogBatch]) -> StorageFull | None:
    try:
        log.append(group)
    except StorageFull as error:
        return error
    return None


def test_a_full_disk_leaves_the_log_as_it_was_and_space_lets_it_go_on() -> None:
    """Full after every byte of an append over three segments, in turn: all of the append is kept, or none."""
    outcomes = set()
    for left in range(0, 7 * SIZE, 7):
        fs = FaultFileSystem(FOLDER.parent)
        log = FileLog(FOLDER, THREE_A_SEGMENT, 0, fs=fs)
        log.append(batches(0, 2))
        log.flush()
        fs.capacity -= fs.free_bytes(FOLDER) - left
        refusal = append_or_refusal(log, batches(2, 8))
        outcomes.add(refusal is None)
        if refusal is not None:
            assert "No space left on device; nothing of it was kept" in str(refusal)
            assert read_all(log) == batches(0, 2)
            assert log.summary().log_end_offset == 2
            assert log.flush() == 2, "what was there before can be kept"
            fs.capacity += 10_000
            log.append(batches(2, 8))
        fs.capacity += 10_000
        assert log.flush() == 8
        log.close()
        reopened = FileLog(FOLDER, fs=fs)
        assert read_all(reopened) == batches(0, 8)
        reopened.close()
    assert outcomes == {True, False}


def test_what_was_taken_back_on_a_full_disk_never_gets_in_the_way_of_what_comes_after() -> None:
    """The power goes after the next append: of the half-written one before, the disk may hold any sector."""
    for seed in range(150):
        fs, random_source = FaultFileSystem(FOLDER.parent), Random(seed)
        log = FileLog(FOLDER, fs=fs)
        log.append(batches(0, 2))
        log.flush()
        fs.capacity -= fs.free_bytes(FOLDER) - random_source.randint(600, 1900)
        assert append_or_refusal(log, batches(2, 4, size=1000)) is not None
        fs.capacity += 100_000
        log.append(batches(2, 4, epoch=2, size=900))
        left = FileLog(FOLDER, on_damage="report", fs=fs.power_cut(random_source))
        assert left.damage is None, (seed, left.damage)
        assert read_all(left)[:2] == batches(0, 2)
        left.close()


def test_a_full_disk_during_a_flush_keeps_what_is_durable_and_can_be_flushed_again() -> None:
    """The checkpoint of the epochs can wait; the recovery point must not say more than it."""
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, fs=fs)
    log.append([batch(0, epoch=1), batch(1, epoch=2)])
    capacity, fs.capacity = fs.capacity, 0
    assert log.flush() == 2
    assert fs.read(FOLDER / "leader-epoch-checkpoint") == b"0\n0\n"
    crashed = FileLog(FOLDER, on_damage="report", fs=fs.killed())
    assert (crashed.damage, read_all(crashed)) == (None, [batch(0, epoch=1), batch(1, epoch=2)])
    fs.capacity = capacity
    assert log.flush() == 2
    assert fs.read(FOLDER / "leader-epoch-checkpoint") == b"0\n2\n1 0\n2 1\n"
    crashed.close()
    log.close()


def test_a_disk_that_does_not_take_back_half_a_write_is_not_trusted() -> None:
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, fs=fs)
    fs.capacity -= fs.free_bytes(FOLDER) - 10

    def refuse(_count: int, name: str) -> None:
        if name == "truncate":
            raise refused(errno.EIO)

    fs.on_call = refuse
    for _ in range(2):
        with pytest.raises(StorageFailed, match="cannot truncate") as caught:
            log.append([batch(0)])
        assert not isinstance(caught.value, StorageFull)
    log.close()


def test_a_retirement_that_found_no_space_is_made_up_for() -> None:
    fs = FaultFileSystem(FOLDER.parent)
    log = FileLog(FOLDER, SegmentLimits(segment_bytes=SIZE), fs=fs)
    log.append(batches(0, 6))
    log.flush()
    fs.put(snapshot_path(FOLDER, OffsetAndEpoch(5, 1)), snapshot_content())

    def refuse(_count: int, name: str) -> None:
        if name == "rename":
            raise refused(errno.ENOSPC)

    fs.on_call = refuse
    log.advance_log_start(5)
    with pytest.raises(StorageFull):
        log.flush()
    fs.on_call = lambda _count, _name: None
    log.flush()
    assert [name for name in fs.names(FOLDER) if name.endswith(".log")] == [f"{5:020}.log"]
    assert read_all(log) == [batch(5)]
    log.close()


def test_a_recovery_point_that_cannot_be_read_is_as_good_as_none(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    log.append(batches(0, 3))
    log.close()
    (tmp_path / "recovery-point").write_bytes(b"nonsense")
    again = FileLog(tmp_path)
    assert read_all(again) == batches(0, 3)
    again.close()


def test_a_node_lives_on_a_full_disk_by_its_reserve() -> None:
    """On a disk with a capacity: votes are still written, appends are refused, and space lets all go on."""
    folder = Path("/disk")
    fs = FaultFileSystem(folder, capacity=MIB + 400)
    space, log = ReservedSpace(folder, MIB, fs), FileLog(folder / "log", fs=fs)
    with pytest.raises(StorageFull):
        log.append(batches(0, 2, size=MIB))
    fs.capacity -= fs.free_bytes(folder)
    elections = QuorumStateFile(folder / "log", (), 1, fs)
    space.with_space(lambda: elections.write(QuorumState(leader_epoch=3)))
    assert (space.is_held, space.maybe_take_back()) == (False, False)
    assert elections.read() == QuorumState(leader_epoch=3)
    fs.capacity += 3 * MIB
    assert space.maybe_take_back()
    log.append(batches(0, 2))
    assert log.flush() == 2
    log.close()
