"""A torn end is cut, and damage elsewhere is reported and left alone, byte by byte, in any log."""

import logging
from pathlib import Path

import pytest

from kquorum.storage.errors import BatchUnreadable, DamagedRange
from kquorum.storage.recovery import RecoveredLog
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch, build_batch, log_batch
from kquorum.wire.log_scan import ScannedBatch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.storage.log_parts import (
    FIRST,
    batch,
    flush,
    new_log,
    recover,
    set_recovery_point,
    write_log,
)


def made_batches(count: int = 4, size: int = 30, epoch: int = 1) -> list[LogBatch]:
    return [batch(offset, epoch, size) for offset in range(count)]


def found_in(folder: Path) -> RecoveredLog:
    recovered = recover(folder)
    recovered.close()
    return recovered


def damage_in(folder: Path) -> DamagedRange:
    damage = found_in(folder).damage
    assert damage is not None
    return damage


def test_a_last_batch_cut_at_any_byte_is_dropped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    last_start = len(whole) - len(batches[-1].data)
    for length in range(last_start + 1, len(whole)):
        (tmp_path / FIRST).write_bytes(whole[:length])
        set_recovery_point(tmp_path, 3)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            recovered = recover(tmp_path)
        assert (recovered.end_offset, recovered.damage) == (3, None)
        assert recovered.cut_bytes == length - last_start
        assert f"cut {length - last_start} bytes" in caplog.text
        assert f"at byte {last_start} (offset 3)" in caplog.text
        recovered.segments[-1].append([batches[-1]])
        recovered.close()
        assert (tmp_path / FIRST).read_bytes() == whole


def test_a_log_cut_between_batches_is_simply_shorter(tmp_path: Path) -> None:
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    (tmp_path / FIRST).write_bytes(whole[: -len(batches[-1].data)])
    set_recovery_point(tmp_path, 3)
    recovered = found_in(tmp_path)
    assert (recovered.cut_bytes, recovered.end_offset, recovered.damage) == (0, 3, None)


def test_a_tail_of_zeros_is_cut(tmp_path: Path) -> None:
    whole = write_log(tmp_path, made_batches())
    for zeros in (1, 20, 61, 5000):
        (tmp_path / FIRST).write_bytes(whole + bytes(zeros))
        assert found_in(tmp_path).cut_bytes == zeros
        assert (tmp_path / FIRST).read_bytes() == whole


def test_a_last_batch_with_a_disk_sector_never_written_is_cut(tmp_path: Path) -> None:
    """The file's length may reach the disk before all of the data does."""
    batches = made_batches(count=2, size=3000)
    whole = write_log(tmp_path, batches)
    torn = bytearray(whole)
    torn[4096:4608] = bytes(512)
    (tmp_path / FIRST).write_bytes(torn)
    recovered = found_in(tmp_path)
    assert (recovered.end_offset, recovered.cut_bytes) == (1, len(batches[1].data))


def test_a_flipped_byte_anywhere_before_the_last_batch_is_damage(tmp_path: Path) -> None:
    """Also in the length fields, where a batch in the middle then looks like a torn end."""
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    for position in range(len(whole) - len(batches[-1].data)):
        if is_epoch_byte(position, batches):
            continue
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        (tmp_path / FIRST).write_bytes(damaged)
        start = start_of_batch_at(position, batches)
        assert damage_in(tmp_path).position in (start, start + len(batches[0].data)), position
        assert (tmp_path / FIRST).read_bytes() == damaged, "nothing may be changed"


def start_of_batch_at(position: int, batches: list[LogBatch]) -> int:
    return position - position % len(batches[0].data)


def is_epoch_byte(position: int, batches: list[LogBatch]) -> bool:
    """The epoch is outside the checksum; see the test of its own below."""
    return 12 <= position % len(batches[0].data) < 16


def test_an_epoch_that_goes_back_is_damage(tmp_path: Path) -> None:
    batches = made_batches(epoch=5)
    whole = bytearray(write_log(tmp_path, batches, durable=None))
    whole[len(batches[0].data) + 15] = 9
    (tmp_path / FIRST).write_bytes(whole)
    damage = damage_in(tmp_path)
    assert damage.start_offset == 2
    assert "leader epoch 5 after" in damage.reason


def test_a_flipped_byte_in_a_whole_last_batch_is_damage(tmp_path: Path) -> None:
    """It may have been committed: only what an interrupted write can leave is cut."""
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    for position in range(len(whole) - len(batches[-1].data) + 16, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        (tmp_path / FIRST).write_bytes(damaged)
        assert damage_in(tmp_path).start_offset == 3


def test_damage_is_reported_with_file_place_and_reason(tmp_path: Path) -> None:
    batches = made_batches()
    damaged = bytearray(write_log(tmp_path, batches))
    start = len(batches[0].data)
    damaged[start + 80] ^= 1
    (tmp_path / FIRST).write_bytes(damaged)
    message = str(damage_in(tmp_path))
    for part in (str(tmp_path / FIRST), f"byte {start}", "offset 1", "CRC"):
        assert part in message


def test_a_torn_end_of_an_earlier_segment_is_damage(tmp_path: Path) -> None:
    write_log(tmp_path, made_batches(8), segment_bytes=300)
    segments = sorted(tmp_path.glob("*.log"))
    assert len(segments) > 2
    content = segments[0].read_bytes()
    segments[0].write_bytes(content[:-3])
    assert "another segment follows" in damage_in(tmp_path).reason


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    write_log(tmp_path, made_batches(12), segment_bytes=300)
    segments = sorted(tmp_path.glob("*.log"))
    segments[1].unlink()
    assert "the one before it ends at" in damage_in(tmp_path).reason


def test_a_batch_at_the_wrong_offset_is_damage(tmp_path: Path) -> None:
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    (tmp_path / FIRST).write_bytes(whole + build_batch(9, 1, 0, [(None, bytes(900))]).data)
    damage = damage_in(tmp_path)
    assert (damage.position, damage.start_offset) == (len(whole), 4)
    assert "base offset 9" in damage.reason


def test_a_segment_begun_but_never_flushed_is_dropped(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=300)
    batches = made_batches(8)
    log.append(batches[:2])
    flush(log)
    log.append(batches[2:])
    assert list(tmp_path.glob("*.rolling")), "the crash comes before the flush"
    recovered = recover(tmp_path)
    assert recovered.end_offset == 3
    assert not list(tmp_path.glob("*.rolling"))
    recovered.segments[-1].append(batches[3:])
    recovered.close()
    assert found_in(tmp_path).end_offset == 8


# What the caller reads


def test_the_reader_gets_every_sound_batch_in_order_whatever_its_kind(tmp_path: Path) -> None:
    control = build_batch(4, 2, 1000, [(b"\0\0\0\1", b"\0\0")], control=True)
    written = [*made_batches(), control, batch(5, 2), batch(6, 2)]
    write_log(tmp_path, written, segment_bytes=300, durable=None)
    last = max(tmp_path.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])
    found: list[LogBatch] = []
    recovered = recover(tmp_path, lambda each: found.append(log_batch(bytes(each.data))))
    recovered.close()
    assert found == written[:-1]
    assert (recovered.end_offset, recovered.epochs) == (6, [(1, 0), (2, 4)])


@pytest.mark.parametrize("is_control", [False, True])
def test_what_the_reader_cannot_read_is_no_damage_and_nothing_is_changed(is_control: bool) -> None:
    """A sound batch that the caller must understand and does not: cutting it would lose what was acknowledged."""
    fs, folder = FaultFileSystem(), Path("/log")
    fs.make_folder(folder)
    odd = build_batch(4, 1, 1000, [(b"\0\0\0\1", b"\0\0")], control=is_control)
    log = new_log(folder, fs=fs)
    log.append([*made_batches(), odd, batch(5)])
    flush(log)
    log.close()
    whole = fs.read(folder / FIRST)

    def read_batch(found: ScannedBatch) -> None:
        if found.header.base_offset == 4:
            raise DecodeError("its marker is of version 9")

    with pytest.raises(BatchUnreadable) as caught:
        recover(folder, read_batch, fs)
    damage = caught.value.damage
    position = len(whole) - len(batch(5).data) - len(odd.data)
    assert (damage.start_offset, damage.end_offset, damage.position) == (4, 5, position)
    kind = "control batch" if is_control else "batch"
    assert damage.reason == f"the {kind} has a valid checksum, but its marker is of version 9"
    assert fs.open_descriptors == 0
    assert fs.read(folder / FIRST) == whole


def test_nothing_is_read_at_or_behind_damage(tmp_path: Path) -> None:
    written = made_batches()
    damaged = bytearray(write_log(tmp_path, written))
    damaged[len(written[0].data) + 80] ^= 1
    (tmp_path / FIRST).write_bytes(damaged)
    offsets: list[int] = []
    recover(tmp_path, lambda found: offsets.append(found.header.base_offset)).close()
    assert offsets == [0]
