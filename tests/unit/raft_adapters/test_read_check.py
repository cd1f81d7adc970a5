"""What is read from the disk, and not from the cache, is what was written, or the node stops."""

import pytest

from raft.adapters.file_log import FileLog
from storage.errors import LogCorrupted
from tests.support.fault_file_system import FaultFileSystem
from tests.unit.raft_adapters.log_folders import batch, batches, read_all
from tests.unit.raft_adapters.log_history import FOLDER

WRITTEN = [*batches(0, 2, size=20), *batches(2, 5, epoch=3, size=20)]
SIZE = len(WRITTEN[0].data)
FIRST = FOLDER / f"{0:020}.log"


def opened(fs: FaultFileSystem) -> FileLog:
    log = FileLog(FOLDER, cache_bytes=0, fs=fs)
    log.append(WRITTEN)
    log.flush()
    return log


def damage_met(log: FileLog) -> LogCorrupted | None:
    try:
        for start in range(5):
            assert log.read(start, 1) == WRITTEN[start].data
            assert log.read(start, 10_000) == b"".join(each.data for each in WRITTEN[start:])
    except LogCorrupted as error:
        return error
    return None


def test_a_flipped_bit_anywhere_in_the_file_is_never_handed_out() -> None:
    """Offset, length and epoch, which no checksum covers, among them."""
    for position in range(5 * SIZE):
        fs = FaultFileSystem(FOLDER.parent)
        log = opened(fs)
        assert damage_met(log) is None
        fs.flip(FIRST, position, 1 << position % 8)
        error = damage_met(log)
        assert error is not None, position
        assert error.path == FIRST
        log.close()


@pytest.mark.parametrize("left", [0, 30, SIZE, 2 * SIZE + 100])
def test_a_file_that_became_shorter_is_noticed(left: int) -> None:
    fs = FaultFileSystem(FOLDER.parent)
    log = opened(fs)
    fs.put(FIRST, fs.read(FIRST)[:left])
    assert damage_met(log) is not None
    log.close()


def test_after_it_nothing_more_is_taken_and_the_next_start_says_what_is_lost() -> None:
    fs = FaultFileSystem(FOLDER.parent)
    log = opened(fs)
    fs.flip(FIRST, 2 * SIZE + 70)
    with pytest.raises(LogCorrupted, match=r"offset 2.*CRC"):
        log.read(2, 1000)
    with pytest.raises(LogCorrupted, match="if the other voters are healthy"):
        log.append([batch(5, epoch=3)])
    log.close()
    again = FileLog(FOLDER, on_damage="report", fs=fs)
    assert again.damage is not None
    assert (again.damage.start_offset, again.damage.end_offset) == (2, 5)
    assert read_all(again) == WRITTEN[:2]
    again.close()
