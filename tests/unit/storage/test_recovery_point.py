from pathlib import Path

import pytest

from kquorum.storage import recovery_point
from kquorum.storage.recovery_point import RecoveryPoint, read_recovery_point
from tests.support.fault_file_system import FaultFileSystem


@pytest.fixture(autouse=True)
def always_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 0.0)


def opened(folder: Path, *offsets: int) -> RecoveryPoint:
    point = RecoveryPoint(folder)
    for offset in offsets:
        point.advance(offset)
    return point


def test_nothing_is_known_before_it_was_said(tmp_path: Path) -> None:
    assert RecoveryPoint(tmp_path).offset is None
    assert read_recovery_point(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_it_only_advances_unless_it_is_set_back(tmp_path: Path) -> None:
    point = opened(tmp_path, 5, 3, 9, 8)
    assert point.offset == read_recovery_point(tmp_path) == 9
    point.set_back(12)
    assert read_recovery_point(tmp_path) == 9
    point.set_back(4)
    assert read_recovery_point(tmp_path) == 4
    point.advance(6)
    point.close()
    again = RecoveryPoint(tmp_path)
    assert again.offset == 6
    again.advance(7)
    again.close()
    assert read_recovery_point(tmp_path) == 7


def test_a_torn_write_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point"
    opened(tmp_path, 5, 9).close()
    before = path.read_bytes()
    opened(tmp_path, 11).close()
    after = path.read_bytes()
    changed = [at for at in range(len(after)) if before[at : at + 1] != after[at : at + 1]]
    assert changed[-1] - changed[0] < 51, "one copy, within its sector"
    for position in range(changed[0], changed[-1] + 1):
        path.write_bytes(after[:position] + before[position:])
        assert read_recovery_point(tmp_path) in (9, 11)


def test_set_back_no_single_torn_sector_brings_the_higher_one_back(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point"
    point = opened(tmp_path, 50, 60)
    point.set_back(10)
    point.close()
    content = path.read_bytes()
    for start in (0, 512):
        path.write_bytes(content[:start] + bytes(min(51, len(content) - start)) + content[start + 51 :])
        assert read_recovery_point(tmp_path) == 10


def test_a_flipped_bit_leaves_one_of_the_two_that_were_said_last(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point"
    point = opened(tmp_path, 5, 9, 11)
    point.close()
    whole, disk = path.read_bytes(), FaultFileSystem(tmp_path)
    for bit in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        disk.put(path, bytes(flipped))
        assert read_recovery_point(tmp_path, disk) in (9, 11)


@pytest.mark.parametrize("position", range(0, 50, 7))
def test_a_damaged_copy_does_not_count(tmp_path: Path, position: int) -> None:
    path = tmp_path / "recovery-point"
    point = opened(tmp_path, 5)
    point.put(7)
    point.close()
    content = bytearray(path.read_bytes())
    content[position] ^= 0x11
    path.write_bytes(content)
    assert read_recovery_point(tmp_path) == 7
    content[512 + position] ^= 0x11
    path.write_bytes(content)
    assert read_recovery_point(tmp_path) is None


def test_it_is_not_written_after_every_flush_but_at_the_end_and_when_it_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = RecoveryPoint(tmp_path)
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 1000.0)
    point.advance(5)
    point.advance(6)
    assert read_recovery_point(tmp_path) == 5
    point.set_back(5)
    point.advance(7, durably=True)
    assert read_recovery_point(tmp_path) == 7
    point.set_back(4)
    assert read_recovery_point(tmp_path) == 4
    point.close()
