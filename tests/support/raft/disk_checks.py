"""What must hold of a folder that a power cut, a killed process or a failing disk left behind."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.snapshot_files import FIRST_VOTERS, list_snapshots, problem_of, snapshot_path
from kquorum.raft.ports import LogSummary
from kquorum.storage.errors import DamagedRange
from kquorum.wire.log_batch import LogBatch
from tests.support.fault_file_system import CHANGES, FaultFileSystem
from tests.support.raft.log_folders import read_all
from tests.support.raft.log_history import FOLDER, LIMITS, Expected, History, check_survivor


class PowerGone(BaseException):
    """Nothing may handle it."""


def check_left(fs: FaultFileSystem, expected: Expected) -> None:
    """The next start finds it all and mends what there is to mend; the one after it has nothing left to do."""
    if FOLDER not in fs.folders:
        assert not expected.promised.batches
        return
    for snapshot in list_snapshots(FOLDER, fs):
        problem = problem_of(snapshot_path(FOLDER, snapshot), snapshot.epoch, fs)
        assert problem is None or snapshot == FIRST_VOTERS, f"{snapshot} under its final name: {problem}"
    election = QuorumStateFile(FOLDER, (1, 2, 3), fs=fs).read()
    assert election in expected.elections, f"{election} instead of one of {expected.elections}"
    first = _opened(fs, expected)
    second = _opened(fs, expected)
    assert second[1:] == first[1:], "the second start finds something else"
    assert second[0] == 0, "the second start still has something to cut"
    assert fs.open_descriptors == 0, "a file stays open"
    if second[3] is not None:
        return  # what was on its way out stays as long as the log may need it
    leftovers = [name for name in fs.names(FOLDER) if name.endswith((".part", ".rolling", ".deleted"))]
    assert not leftovers


def check_rotten(fs: FaultFileSystem, expected: Expected, random_source: Random) -> None:
    """The next start may be broken off; before it or behind it a bit of a snapshot turns. Nothing that was promised is
    forgotten: what cannot be read is called damage, also by the start after that, until it is fetched again."""
    left = cut_within_start(fs, random_source) if random_source.random() < 0.7 else fs
    if FOLDER not in left.folders or not rot_a_snapshot(left, random_source):
        return
    if random_source.random() < 0.3:
        left = cut_within_start(left, random_source)
    *first, damage = _opened(left, expected, is_rotten=True)
    *second, still = _opened(left, expected, is_rotten=True)
    assert second[1:] == first[1:], "the second start finds something else"
    assert (damage is None) is (still is None), "the second start does not say the same"
    if damage is not None and still is not None:
        # In other words, perhaps: the first may have emptied the log for another snapshot.
        assert (damage.start_offset, damage.end_offset) == (still.start_offset, still.end_offset)
    assert left.open_descriptors == 0, "a file stays open"


def rot_a_snapshot(fs: FaultFileSystem, random_source: Random) -> bool:
    """Turn a bit in one of the snapshots; answers whether there is any."""
    found = [each for each in list_snapshots(FOLDER, fs) if each != FIRST_VOTERS]
    if not found:
        return False
    path = snapshot_path(FOLDER, random_source.choice(found))
    fs.flip(path, random_source.randrange(fs.inode(path).size), 1 << random_source.randrange(8))
    return True


def _opened(
    fs: FaultFileSystem, expected: Expected, *, is_rotten: bool = False
) -> tuple[int, LogSummary, list[LogBatch], DamagedRange | None]:
    log = FileLog(FOLDER, LIMITS, 0, on_damage="report", fs=fs)
    check_survivor(log, expected, is_rotten=is_rotten)
    found = log.recovered_cut_bytes, log.summary(), read_all(log), log.damage
    log.close()
    return found


def going_after(changes: int) -> Callable[[int, str], None]:
    """For `FaultFileSystem.on_call`: the power goes before the change that follows so many."""
    left = changes

    def go(_count: int, name: str) -> None:
        nonlocal left
        left -= name in CHANGES
        if left < 0:
            raise PowerGone

    return go


def cut_within_start(
    fs: FaultFileSystem, random_source: Random, passing: int | None = None
) -> FaultFileSystem:
    """What is left when the power goes again in the middle of the next start, after so many of its changes."""
    fs.on_call = going_after(random_source.randint(0, 30) if passing is None else passing)
    with suppress(PowerGone):
        log = FileLog(FOLDER, LIMITS, 0, on_damage="report", fs=fs)
        log.close()
    fs.on_call = lambda _count, _name: None
    return fs.power_cut(random_source)


def run_with_cuts(
    script: tuple[str, ...], seed: int, cuts: int, is_chosen: Callable[[int], bool] = lambda _change: True
) -> int:
    """Cut the power, as often as `cuts` says, before every change of a history that is chosen by its number, and at the
    end. Answers how many changes there were."""
    fs = FaultFileSystem(FOLDER.parent)
    history, random_source, changes = History(fs, Random(seed)), Random(seed), 0

    def cut() -> None:
        for _ in range(cuts):
            left = fs.power_cut(random_source)
            if random_source.random() < 0.2:
                left = cut_within_start(left, random_source)
            check_left(left, history.expected)
        if random_source.random() < 0.5:
            check_rotten(fs.power_cut(random_source), history.expected, random_source)
        if random_source.random() < 0.25:
            check_left(fs.killed(), history.expected)
        if random_source.random() < 0.25:
            check_left(cut_within_start(fs.killed(), random_source), history.expected)

    def hear(_count: int, name: str) -> None:
        nonlocal changes
        changes += name in CHANGES
        if name in CHANGES and is_chosen(changes):
            cut()

    fs.on_call = hear
    history.run(script)
    cut()
    return changes
