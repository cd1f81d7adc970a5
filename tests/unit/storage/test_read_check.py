"""What is read from the disk is what was written, or an error."""

from pathlib import Path

import pytest

from kquorum.storage.errors import LogCorrupted
from kquorum.storage.segment_list import SegmentList
from tests.support.fault_file_system import FaultFileSystem
from tests.support.storage.log_parts import batch, flush, new_log

FOLDER = Path("/disk/log")
EPOCHS = [(1, 0), (3, 2)]
WRITTEN = [batch(offset, 1 if offset < 2 else 3, size=20) for offset in range(5)]
SIZE = len(WRITTEN[0].data)
FIRST = FOLDER / f"{0:020}.log"


def opened(fs: FaultFileSystem) -> SegmentList:
    log = new_log(FOLDER, fs=fs)
    log.append(WRITTEN)
    flush(log)
    return log


def damage_met(log: SegmentList) -> LogCorrupted | None:
    try:
        for start in range(5):
            assert log.read(start, 1, 5, EPOCHS) == WRITTEN[start].data
            assert log.read(start, 10_000, 5, EPOCHS) == b"".join(each.data for each in WRITTEN[start:])
    except LogCorrupted as error:
        return error
    return None


def test_a_flipped_bit_anywhere_in_the_file_is_never_handed_out() -> None:
    """Offset, length and epoch, which no checksum covers, among them."""
    for position in range(5 * SIZE):
        fs = FaultFileSystem(FOLDER)
        log = opened(fs)
        assert damage_met(log) is None
        fs.flip(FIRST, position, 1 << position % 8)
        error = damage_met(log)
        assert error is not None, position
        assert error.path == FIRST
        log.close()


@pytest.mark.parametrize("left", [0, 30, SIZE, 2 * SIZE + 100])
def test_a_file_that_became_shorter_is_noticed(left: int) -> None:
    fs = FaultFileSystem(FOLDER)
    log = opened(fs)
    fs.put(FIRST, fs.read(FIRST)[:left])
    assert damage_met(log) is not None
    log.close()
