"""Damage that no crash explains: found, told exactly, and mended without losing sight of what is missing."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.storage.errors import DamagedRange, LogCorrupted
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import LogBatch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.log_folders import (
    FIRST,
    batches,
    flip,
    read_all,
    segment_offsets,
    set_recovery_point,
    write_log,
    write_snapshot,
)
from tests.support.raft.log_history import FOLDER
from tests.support.storage.log_parts import batch

SIZE = len(batch(0).data)


def damage_of(folder: Path) -> DamagedRange:
    log = FileLog(folder, on_damage="report")
    log.close()
    assert log.damage is not None
    return log.damage


# Below the recovery point nothing is ever cut


@pytest.mark.parametrize("lost", ["the last byte", "the last batch", "a sector", "all"])
def test_a_torn_end_below_the_recovery_point_is_damage(tmp_path: Path, lost: str) -> None:
    whole = write_log(tmp_path, batches(0, 20))
    if lost == "a sector":
        left = whole[:1024] + bytes(512) + whole[1536:]
    else:
        left = whole[: {"the last byte": -1, "the last batch": -SIZE, "all": -len(whole)}[lost]]
    (tmp_path / FIRST).write_bytes(left)
    with pytest.raises(LogCorrupted, match="all below offset 20 was durable"):
        FileLog(tmp_path)
    damage = damage_of(tmp_path)
    assert damage.end_offset == 20
    assert damage.start_offset == {"a sector": 1024 // SIZE, "all": 0}.get(lost, 19)
    assert (tmp_path / FIRST).read_bytes() == left


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_no_flipped_byte_is_accepted_or_cut(tmp_path: Path, mask: int) -> None:
    """Also in the epoch and the offset, which no checksum covers, and in the length of the last batch."""
    written = [*batches(0, 2, size=20), *batches(2, 4, epoch=3, size=20)]
    whole = write_log(tmp_path, written)
    for position in range(len(whole)):
        content = flip(tmp_path / FIRST, position, mask)
        log = FileLog(tmp_path, on_damage="report")
        log.close()
        assert log.damage is not None, position
        assert log.damage.end_offset == 4, position
        assert log.damage.start_offset <= position // len(written[0].data), position
        assert log.recovered_cut_bytes == 0
        assert (tmp_path / FIRST).read_bytes() == content, "nothing may be changed"
        (tmp_path / FIRST).write_bytes(whole)


def test_no_flipped_byte_of_a_folder_that_says_nothing_of_durability_is_cut(tmp_path: Path) -> None:
    """As Kafka writes it; only a higher epoch in the last batch cannot be told there."""
    written = batches(0, 4, epoch=3, size=20)
    whole = write_log(tmp_path, written)
    size = len(written[0].data)
    set_recovery_point(tmp_path, None)
    for position in range(len(whole)):
        if 3 * size + 12 <= position < 3 * size + 16:
            continue
        flip(tmp_path / FIRST, position)
        damage = damage_of(tmp_path)
        assert damage.start_offset <= position // size + 1
        (tmp_path / FIRST).write_bytes(whole)


# At and above it, only what an interrupted write explains is cut


def test_a_hole_with_whole_batches_behind_is_what_a_power_cut_leaves(tmp_path: Path) -> None:
    whole = write_log(tmp_path, batches(0, 40), durable=8)
    for start in range(1536, len(whole) - 512, 512):
        (tmp_path / FIRST).write_bytes(whole[:start] + bytes(512) + whole[start + 512 :])
        set_recovery_point(tmp_path, 8)
        log = FileLog(tmp_path)
        assert log.end_offset == start // SIZE
        assert log.recovered_cut_bytes == len(whole) - start // SIZE * SIZE
        assert read_all(log) == batches(0, start // SIZE)
        log.close()


def test_a_flipped_byte_above_the_recovery_point_is_still_no_torn_write(tmp_path: Path) -> None:
    whole = write_log(tmp_path, batches(0, 10), durable=2)
    for position in (4 * SIZE + 9, 4 * SIZE + 30, 9 * SIZE + 9, 9 * SIZE + 70, 9 * SIZE + 2):
        flip(tmp_path / FIRST, position)
        damage = damage_of(tmp_path)
        assert (damage.start_offset, damage.end_offset) == (position // SIZE, 10)
        (tmp_path / FIRST).write_bytes(whole)


def test_without_a_recovery_point_a_hole_before_whole_batches_may_be_anything(tmp_path: Path) -> None:
    whole = write_log(tmp_path, batches(0, 20))
    set_recovery_point(tmp_path, None)
    (tmp_path / FIRST).write_bytes(whole[:1024] + bytes(512) + whole[1536:])
    with pytest.raises(LogCorrupted, match="a valid batch follows"):
        FileLog(tmp_path)


def test_the_refusal_names_file_byte_range_reason_and_remedy(tmp_path: Path) -> None:
    write_log(tmp_path, batches(0, 10))
    flip(tmp_path / FIRST, 4 * SIZE + 80)
    with pytest.raises(LogCorrupted) as caught:
        FileLog(tmp_path)
    parts = (str(tmp_path / FIRST), f"byte {4 * SIZE}", "offset 4", "offsets 4 to 9", "CRC")
    assert [part for part in parts if part not in str(caught.value)] == []
    assert str(caught.value).endswith(
        "; nothing was changed in it. This is no torn end of an interrupted write, so the log is not cut by itself: "
        "keep a copy of the folder, and if the other voters are healthy, empty this node's __cluster_metadata-0 "
        "folder and let it catch up from them"
    )


# Going on with damage


def damaged(folder: Path) -> list[LogBatch]:
    """A log of 20 offsets in segments of 3, with a flipped bit at offset 7."""
    written = [*batches(0, 5), *batches(5, 20, epoch=2)]
    write_log(folder, written, segment_bytes=3 * SIZE)
    flip(folder / f"{6:020}.log", SIZE + 80)
    return written


def test_what_is_sound_before_the_damage_can_be_read(tmp_path: Path) -> None:
    written = damaged(tmp_path)
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset, log.damage.position) == (7, 20, SIZE)
    assert log.damage.segment == tmp_path / f"{6:020}.log"
    assert read_all(log) == written[:7]
    assert log.summary().epochs == ((1, 0), (2, 5))
    with pytest.raises(AssertionError, match="set aside"):
        log.append([batch(7, epoch=2)])
    assert log.flush() == 7
    log.close()


def test_a_repair_is_remembered_as_unfinished_until_it_is_said_to_be_done(tmp_path: Path) -> None:
    written = damaged(tmp_path)
    bad = (tmp_path / f"{6:020}.log").read_bytes()
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=3 * SIZE), on_damage="report")
    log.set_damage_aside()
    assert segment_offsets(tmp_path) == [0, 3, 6]
    assert (tmp_path / f"{6:020}.log.damaged").read_bytes() == bad[SIZE:]
    assert sorted(path.name[:20] for path in tmp_path.glob("*.damaged")) == [
        f"{offset:020}" for offset in (6, 9, 12, 15, 18)
    ]
    log.append(written[7:12])
    log.flush()
    log.truncate_to(10)
    log.close()
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (10, 20)
    assert "a repair was begun and is not finished" in log.damage.reason
    assert "from offset 7 on" in log.damage.reason
    log.set_damage_aside()
    log.append(written[10:16])
    log.mark_repaired()
    log.close()
    log = FileLog(tmp_path)
    assert read_all(log) == written[:16]
    log.close()


def test_a_repair_that_reached_what_is_known_of_the_end_is_not_done_for_that(tmp_path: Path) -> None:
    """More may have been acknowledged: only the core can tell."""
    written = damaged(tmp_path)
    log = FileLog(tmp_path, on_damage="report")
    log.set_damage_aside()
    log.append(written[7:])
    log.close()
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (20, 21)
    log.set_damage_aside()
    log.mark_repaired()
    log.close()
    log = FileLog(tmp_path)
    assert read_all(log) == written
    log.close()


def test_a_snapshot_beyond_the_damage_repairs_it(tmp_path: Path) -> None:
    damaged(tmp_path)
    log = FileLog(tmp_path, on_damage="report")
    write_snapshot(tmp_path, 25, epoch=3)
    log.truncate_fully_to(25)
    log.mark_repaired()
    assert (log.log_start_offset, log.end_offset) == (25, 25)
    log.close()
    log = FileLog(tmp_path)
    assert (log.log_start_offset, log.end_offset) == (25, 25)
    log.close()


def test_a_missing_segment_is_damage_up_to_the_end_of_the_log(tmp_path: Path) -> None:
    written = batches(0, 12)
    write_log(tmp_path, written, segment_bytes=3 * SIZE)
    (tmp_path / f"{3:020}.log").unlink()
    set_recovery_point(tmp_path, None)
    log = FileLog(tmp_path, on_damage="report")
    assert log.damage is not None
    assert (log.damage.start_offset, log.damage.end_offset) == (3, 12)
    log.set_damage_aside()
    log.append(written[3:])
    log.mark_repaired()
    log.close()
    log = FileLog(tmp_path)
    assert read_all(log) == written
    log.close()


def test_after_damage_is_read_nothing_more_is_taken_and_the_next_start_says_what_is_lost() -> None:
    """Read from the disk, and not from the cache."""
    fs = FaultFileSystem(FOLDER.parent)
    log, written = FileLog(FOLDER, cache_bytes=0, fs=fs), [*batches(0, 2), *batches(2, 5, epoch=3)]
    log.append(written)
    log.flush()
    fs.flip(FOLDER / FIRST, 2 * SIZE + 70)
    with pytest.raises(LogCorrupted, match=r"offset 2.*CRC"):
        log.read(2, 1000)
    with pytest.raises(LogCorrupted, match="if the other voters are healthy"):
        log.append([batch(5, epoch=3)])
    log.close()
    again = FileLog(FOLDER, on_damage="report", fs=fs)
    assert again.damage is not None
    assert (again.damage.start_offset, again.damage.end_offset) == (2, 5)
    assert read_all(again) == written[:2]
    again.close()
