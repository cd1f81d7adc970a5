"""The files of the two indexes while the segment grows: behind it for a while, but never ahead, and whole."""

import errno
import struct
from pathlib import Path

import pytest

from kquorum.storage.errors import StorageFailed
from kquorum.storage.indexes import WRITE_BYTES, SegmentIndexes
from kquorum.storage.segment import Segment
from tests.support.fault_file_system import FaultFileSystem, refused
from tests.support.storage.log_parts import batch

FOLDER = Path("/disk/log")
LOG = FOLDER / "00000000000000000000.log"
INDEX, TIME_INDEX = LOG.with_suffix(".index"), LOG.with_suffix(".timeindex")
BATCH_BYTES = 5000


def observe(indexes: SegmentIndexes, first: int, end: int) -> None:
    """An offset each batch, a millisecond each, and an entry each but for the first."""
    for number in range(first, end):
        indexes.observe(number * BATCH_BYTES, BATCH_BYTES, number, 1_000_000 + number)


@pytest.fixture
def fs() -> FaultFileSystem:
    return FaultFileSystem(FOLDER)


def test_the_files_follow_in_whole_entries_and_have_them_all_at_the_end(fs: FaultFileSystem) -> None:
    indexes = SegmentIndexes(0, fs)
    indexes.create_files(LOG)
    lengths = set()
    for number in range(400):
        observe(indexes, number, number + 1)
        for path, whole, size in zip((INDEX, TIME_INDEX), indexes.encoded(), (8, 12), strict=True):
            found = fs.read(path)
            assert whole.startswith(found)
            assert len(found) % size == 0
            assert len(whole) - len(found) < WRITE_BYTES
            lengths.add(len(found))
    assert len(lengths) < 10, "not an entry at a time"
    assert (fs.read(INDEX), fs.read(TIME_INDEX)) != indexes.encoded()
    indexes.close_files()
    assert (fs.read(INDEX), fs.read(TIME_INDEX)) == indexes.encoded()
    assert len(fs.read(INDEX)) == 399 * 8
    assert fs.open_descriptors == 0


def test_what_waited_when_the_files_are_made_again_is_not_written_twice(fs: FaultFileSystem) -> None:
    indexes = SegmentIndexes(0, fs)
    indexes.create_files(LOG)
    observe(indexes, 0, 50)
    position = indexes.truncate(20)
    observe(indexes, position // BATCH_BYTES, 20)
    indexes.create_files(LOG)
    assert (fs.read(INDEX), fs.read(TIME_INDEX)) == indexes.encoded()
    observe(indexes, 20, 30)
    indexes.close_files()
    assert (fs.read(INDEX), fs.read(TIME_INDEX)) == indexes.encoded()
    assert [offset for offset, _ in struct.iter_unpack(">ii", fs.read(INDEX))] == list(range(1, 30))


@pytest.mark.parametrize("left_bytes", [0, 5, 1000, 1023])
def test_a_full_disk_leaves_no_half_entry_and_stops_nothing(fs: FaultFileSystem, left_bytes: int) -> None:
    indexes = SegmentIndexes(0, fs)
    indexes.create_files(LOG)
    fs.capacity -= fs.free_bytes(FOLDER) - left_bytes
    observe(indexes, 0, 400)
    indexes.close_files()
    assert len(fs.read(TIME_INDEX)) == left_bytes - left_bytes % 12
    assert len(fs.read(INDEX)) % 8 == 0
    assert len(indexes.last_offsets) == 399
    assert fs.open_descriptors == 0


def test_a_segment_whose_indexes_cannot_be_written_closes_them_all_the_same(fs: FaultFileSystem) -> None:
    segment = Segment(LOG, 0, fs)
    segment.open_indexes()
    segment.append([batch(offset, size=BATCH_BYTES) for offset in range(10)])

    def refuse(_count: int, name: str) -> None:
        if name == "write":
            raise refused(errno.EIO)

    fs.on_call = refuse
    with pytest.raises(StorageFailed, match="cannot write the index"):
        segment.retire()
    assert fs.open_descriptors == 1, "the log file itself"
