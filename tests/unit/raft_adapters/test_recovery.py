"""A torn end is cut, damage elsewhere stops the node: byte by byte."""

import logging
from pathlib import Path

import pytest

from raft.adapters.file_log import FileLog
from storage.errors import LogCorrupted
from storage.recovery_point import RecoveryPoint
from storage.segment import SegmentLimits
from wire.log_batch import LogBatch, build_batch

FIRST = "00000000000000000000.log"


def made_batches(count: int = 4, size: int = 30, epoch: int = 1) -> list[LogBatch]:
    return [build_batch(offset, epoch, 1000, [(None, bytes([offset + 1]) * size)]) for offset in range(count)]


def write_log(
    folder: Path, batches: list[LogBatch], limits: SegmentLimits | None = None, durable: int | None = 0
) -> bytes:
    """Write a log of which all below `durable` was flushed; None for one that says nothing of it, such as Kafka's."""
    log = FileLog(folder, limits)
    log.append(batches)
    log.close()
    set_recovery_point(folder, durable)
    return (folder / FIRST).read_bytes()


def set_recovery_point(folder: Path, offset: int | None) -> None:
    (folder / "recovery-point").unlink()
    if offset is not None:
        point = RecoveryPoint(folder)
        point.put(offset)
        point.close()


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
            log = FileLog(tmp_path)
        assert log.summary().log_end_offset == 3
        assert log.recovered_cut_bytes == length - last_start
        assert f"cut {length - last_start} bytes" in caplog.text
        assert f"at byte {last_start} (offset 3)" in caplog.text
        log.append([batches[-1]])
        log.close()
        assert (tmp_path / FIRST).read_bytes() == whole


def test_a_log_cut_between_batches_is_simply_shorter(tmp_path: Path) -> None:
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    (tmp_path / FIRST).write_bytes(whole[: -len(batches[-1].data)])
    set_recovery_point(tmp_path, 3)
    log = FileLog(tmp_path)
    assert log.recovered_cut_bytes == 0
    assert log.summary().log_end_offset == 3
    log.close()


def test_a_tail_of_zeros_is_cut(tmp_path: Path) -> None:
    whole = write_log(tmp_path, made_batches())
    for zeros in (1, 20, 61, 5000):
        (tmp_path / FIRST).write_bytes(whole + bytes(zeros))
        log = FileLog(tmp_path)
        assert log.recovered_cut_bytes == zeros
        log.close()
        assert (tmp_path / FIRST).read_bytes() == whole


def test_a_last_batch_with_a_disk_sector_never_written_is_cut(tmp_path: Path) -> None:
    """The file's length may reach the disk before all of the data does."""
    batches = made_batches(count=2, size=3000)
    whole = write_log(tmp_path, batches)
    torn = bytearray(whole)
    torn[4096:4608] = bytes(512)
    (tmp_path / FIRST).write_bytes(torn)
    log = FileLog(tmp_path)
    assert log.summary().log_end_offset == 1
    assert log.recovered_cut_bytes == len(batches[1].data)
    log.close()


def test_a_flipped_byte_anywhere_before_the_last_batch_refuses_to_start(tmp_path: Path) -> None:
    """Also in the length fields, where a batch in the middle then looks like a torn end."""
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    for position in range(len(whole) - len(batches[-1].data)):
        if is_epoch_byte(position, batches):
            continue
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        (tmp_path / FIRST).write_bytes(damaged)
        with pytest.raises(LogCorrupted) as caught:
            FileLog(tmp_path)
        start = start_of_batch_at(position, batches)
        assert caught.value.position in (start, start + len(batches[0].data)), position
        assert (tmp_path / FIRST).read_bytes() == damaged, "nothing may be changed"


def start_of_batch_at(position: int, batches: list[LogBatch]) -> int:
    return position - position % len(batches[0].data)


def is_epoch_byte(position: int, batches: list[LogBatch]) -> bool:
    """The epoch is outside the checksum; see the test of its own below."""
    return 12 <= position % len(batches[0].data) < 16


def test_an_epoch_that_goes_back_refuses_to_start(tmp_path: Path) -> None:
    batches = made_batches(epoch=5)
    whole = bytearray(write_log(tmp_path, batches, durable=None))
    whole[len(batches[0].data) + 15] = 9
    (tmp_path / FIRST).write_bytes(whole)
    with pytest.raises(LogCorrupted, match="leader epoch 5 after") as caught:
        FileLog(tmp_path)
    assert caught.value.offset == 2


def test_a_flipped_byte_in_a_whole_last_batch_refuses_to_start(tmp_path: Path) -> None:
    """It may have been committed: only what an interrupted write can leave is cut."""
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    for position in range(len(whole) - len(batches[-1].data) + 16, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        (tmp_path / FIRST).write_bytes(damaged)
        with pytest.raises(LogCorrupted):
            FileLog(tmp_path)


def test_the_refusal_names_file_place_reason_and_remedy(tmp_path: Path) -> None:
    batches = made_batches()
    damaged = bytearray(write_log(tmp_path, batches))
    start = len(batches[0].data)
    damaged[start + 80] ^= 1
    (tmp_path / FIRST).write_bytes(damaged)
    with pytest.raises(LogCorrupted) as caught:
        FileLog(tmp_path)
    message = str(caught.value)
    for part in (str(tmp_path / FIRST), f"byte {start}", "offset 1", "CRC", "keep a copy"):
        assert part in message


def test_a_torn_end_of_an_earlier_segment_refuses_to_start(tmp_path: Path) -> None:
    write_log(tmp_path, made_batches(8), SegmentLimits(segment_bytes=300))
    segments = sorted(tmp_path.glob("*.log"))
    assert len(segments) > 2
    content = segments[0].read_bytes()
    segments[0].write_bytes(content[:-3])
    with pytest.raises(LogCorrupted, match="another segment follows"):
        FileLog(tmp_path)


def test_a_missing_segment_refuses_to_start(tmp_path: Path) -> None:
    write_log(tmp_path, made_batches(12), SegmentLimits(segment_bytes=300))
    segments = sorted(tmp_path.glob("*.log"))
    segments[1].unlink()
    with pytest.raises(LogCorrupted, match="the one before it ends at"):
        FileLog(tmp_path)


def test_a_batch_at_the_wrong_offset_refuses_to_start(tmp_path: Path) -> None:
    batches = made_batches()
    whole = write_log(tmp_path, batches)
    (tmp_path / FIRST).write_bytes(whole + build_batch(9, 1, 0, [(None, bytes(900))]).data)
    with pytest.raises(LogCorrupted, match="base offset 9") as caught:
        FileLog(tmp_path)
    assert (caught.value.position, caught.value.offset) == (len(whole), 4)


def test_a_segment_begun_but_never_flushed_is_dropped(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=300))
    batches = made_batches(8)
    log.append(batches[:2])
    log.flush()
    log.append(batches[2:])
    assert list(tmp_path.glob("*.rolling")), "the crash comes before the flush"
    survivor = FileLog(tmp_path)
    assert survivor.summary().log_end_offset == 3
    assert not list(tmp_path.glob("*.rolling"))
    survivor.append(batches[3:])
    survivor.close()
