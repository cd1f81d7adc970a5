"""The walk over a segment: torn and zero-filled tails, corrupt batches, and no damage under a checksum unnoticed."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from tests.support.batches import rewrite_offsets, with_valid_crc
from tests.support.wire.segments import FIRST, SECOND, SEGMENT, STARTS, THIRD, batch, only_damage, positions


def scan(data: bytes, base_offset: int | None = 100) -> list[ScannedBatch | Damage]:
    return list(scan_batches(data, base_offset=base_offset))


def test_a_sound_segment() -> None:
    found = scan(SEGMENT)
    assert positions(found) == list(STARTS)
    assert [item.data for item in found if isinstance(item, ScannedBatch)] == [FIRST, SECOND, THIRD]
    assert positions(list(scan_batches(memoryview(SEGMENT), STARTS[1]))) == list(STARTS[1:])
    assert scan(b"") == []


@pytest.mark.parametrize("length", [n for n in range(1, len(SEGMENT)) if n not in STARTS])
def test_every_cut_is_torn_at_the_cut_batch(length: int) -> None:
    found = scan(SEGMENT[:length])
    whole = [start for start, end in zip(STARTS, (*STARTS[1:], len(SEGMENT)), strict=True) if end <= length]
    damage = only_damage(found)
    assert positions(found) == whole
    assert found[-1] is damage
    assert damage.kind == "torn"
    assert (damage.position, damage.offset) == (STARTS[len(whole)], (100, 101, 104)[len(whole)])


@pytest.mark.parametrize("zeros", [1, 12, 60, 61, 62, 5000])
def test_a_zero_filled_tail_is_torn(zeros: int) -> None:
    damage = only_damage(scan(SEGMENT + bytes(zeros)))
    assert (damage.kind, damage.position, damage.offset) == ("torn", len(SEGMENT), 105)
    assert "zero bytes" in damage.reason


def test_zeros_with_something_behind_them_are_corrupt() -> None:
    damage = only_damage(scan(SEGMENT + bytes(100) + b"x"))
    assert (damage.kind, damage.position) == ("corrupt", len(SEGMENT))


def test_the_scan_goes_on_behind_a_corrupt_batch() -> None:
    at = STARTS[1] + 70
    found = scan(SEGMENT[:at] + b"?" + SEGMENT[at + 1 :])
    damage = only_damage(found)
    assert positions(found) == [STARTS[0], STARTS[2]]
    assert (damage.kind, damage.position, damage.offset) == ("corrupt", STARTS[1], 101)
    assert "CRC" in damage.reason


def test_the_scan_stops_at_an_unusable_header() -> None:
    found = scan(FIRST + b"\xff" * 200)
    assert positions(found) == [0]
    assert only_damage(found).kind == "corrupt"


@pytest.mark.parametrize("index", [0, 1, 2])
def test_no_flipped_bit_is_silently_accepted(index: int) -> None:
    start, end = STARTS[index], (*STARTS, len(SEGMENT))[index + 1]
    for at, bit in product(range(end - start), range(8)):
        changed = bytearray(SEGMENT)
        changed[start + at] ^= 1 << bit
        found = scan(bytes(changed))
        place = f"byte {at} of batch {index}, bit {bit}"
        if 12 <= at < 16:
            # The leader epoch is outside the checksum: all that can be seen is an epoch that goes back.
            assert positions(found) == list(STARTS), place
        elif at < 8:
            # So is the base offset, but it must continue the batch before.
            assert only_damage(found).offset == (100, 101, 104)[index], place
        else:
            assert any(isinstance(item, Damage) for item in found), place
            assert start not in positions(found), place


def test_a_gap_is_reported_and_the_batch_behind_it_still_given() -> None:
    found = scan(FIRST + THIRD)
    assert [type(item) for item in found] == [ScannedBatch, Damage, ScannedBatch]
    assert "base offset 104 instead of 101" in only_damage(found).reason


def test_an_epoch_that_goes_back_is_reported() -> None:
    found = scan(batch(100, epoch=4) + batch(101, epoch=3))
    assert "leader epoch 3 after epoch 4" in only_damage(found).reason


def test_without_an_expected_offset_the_first_batch_sets_it() -> None:
    assert positions(scan(SEGMENT, base_offset=None)) == list(STARTS)
    assert "instead of 7" in only_damage(scan(SEGMENT, base_offset=7)).reason
    assert "base offset -4" in only_damage(scan(rewrite_offsets(FIRST, -4, 1), base_offset=None)).reason


@settings(max_examples=200)
@given(data=st.binary(max_size=300), before=st.integers(0, 3))
def test_garbage_ends_the_scan_with_a_damage_and_never_with_an_exception(data: bytes, before: int) -> None:
    sound = b"".join((FIRST, SECOND, THIRD)[:before])
    found = scan(sound + data)
    assert positions(found)[:before] == list(STARTS[:before])
    assert not data or isinstance(found[before], Damage) or data[16:17] == b"\x02"


@given(st.lists(st.tuples(st.integers(0, len(SEGMENT) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_every_batch_given_is_one_that_was_written_or_has_a_valid_checksum(
    changes: list[tuple[int, int]],
) -> None:
    changed = bytearray(SEGMENT)
    for at, byte in changes:
        changed[at] = byte
    for item in scan(bytes(changed)):
        if isinstance(item, ScannedBatch):
            assert with_valid_crc(bytes(item.data)) == item.data
            assert bytes(item.data[21:]) in {FIRST[21:], SECOND[21:], THIRD[21:]}
