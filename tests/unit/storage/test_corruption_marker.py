"""The file that says what a log has lost: read back as it was written, and never silent for being damaged."""

from contextlib import suppress
from pathlib import Path
from random import Random

from kquorum.storage.corruption_marker import (
    FILE_NAME,
    CorruptionMarker,
    decode_corruption_marker,
    encode_corruption_marker,
    read_corruption_marker,
    remove_corruption_marker,
    write_corruption_marker,
)
from kquorum.storage.errors import DamagedRange
from tests.support.fault_file_system import FaultFileSystem
from tests.support.storage.disk_stops import Stopped, stopping_before

FOLDER = Path("/disk/log")
LOSS = DamagedRange(7, 12, Path("/disk/a.log"), 70, "its CRC is\nanother")


def test_what_was_written_is_read_back() -> None:
    marker = CorruptionMarker(3, 2**40, "it lacks “7”")
    assert decode_corruption_marker(encode_corruption_marker(marker)) == marker
    assert decode_corruption_marker(encode_corruption_marker(CorruptionMarker(0, 1, ""))) == CorruptionMarker(
        0, 1, ""
    )


def test_one_loss_after_the_other_is_one_range() -> None:
    fs = FaultFileSystem(FOLDER)
    assert read_corruption_marker(FOLDER, fs) is None
    write_corruption_marker(FOLDER, LOSS, fs)
    assert read_corruption_marker(FOLDER, fs) == CorruptionMarker(7, 12, "its CRC is another")
    write_corruption_marker(FOLDER, DamagedRange(9, 20, FOLDER, 0, "more"), fs)
    write_corruption_marker(FOLDER, DamagedRange(5, 6, FOLDER, 0, "less"), fs)
    assert read_corruption_marker(FOLDER, fs) == CorruptionMarker(5, 20, "its CRC is another")
    remove_corruption_marker(FOLDER, fs)
    remove_corruption_marker(FOLDER, fs)
    assert read_corruption_marker(FOLDER, fs) is None


def test_every_flipped_byte_of_it_still_says_that_something_was_lost() -> None:
    fs = FaultFileSystem(FOLDER)
    write_corruption_marker(FOLDER, LOSS, fs)
    marker = read_corruption_marker(FOLDER, fs)
    whole = fs.read(FOLDER / FILE_NAME)
    for position in range(len(whole)):
        for mask in (0x01, 0x20, 0x80):
            fs.flip(FOLDER / FILE_NAME, position, mask)
            found = read_corruption_marker(FOLDER, fs)
            assert found is not None
            is_the_end = position == len(whole) - 1
            assert is_the_end or (found.end_offset == 0 and "cannot be read" in found.reason), position
            write_corruption_marker(FOLDER, LOSS, fs)
            again = read_corruption_marker(FOLDER, fs)
            assert is_the_end or again == marker, "and it is replaced by what is known"
            fs.put(FOLDER / FILE_NAME, whole)


def test_it_is_durable_also_where_a_process_died_while_it_wrote_it() -> None:
    for change in range(5):
        fs = FaultFileSystem(FOLDER)
        fs.on_call = stopping_before(change)
        with suppress(Stopped):
            write_corruption_marker(FOLDER, LOSS, fs)
        left = fs.killed()
        write_corruption_marker(FOLDER, LOSS, left)
        for seed in range(20):
            assert read_corruption_marker(FOLDER, left.power_cut(Random(seed))) is not None
