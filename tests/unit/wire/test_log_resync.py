"""With `resync`, a scan finds the sound batches behind any damage; each stretch of damage is reported once."""

import time
from itertools import product

import pytest

from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from tests.support.batches import rewrite_offsets
from tests.support.wire.segments import FIRST, SECOND, SEGMENT, STARTS, THIRD, batch, only_damage, positions

OFFSETS = range(100, 1000)


def scan(data: bytes) -> list[ScannedBatch | Damage]:
    return list(scan_batches(data, base_offset=100, resync=OFFSETS))


@pytest.mark.parametrize("index", [0, 1])
def test_one_flipped_bit_loses_no_other_batch(index: int) -> None:
    start, end = STARTS[index], STARTS[index + 1]
    for at, bit in product(range(8, end - start), range(8)):
        if 12 <= at < 16:
            continue
        changed = bytearray(SEGMENT)
        changed[start + at] ^= 1 << bit
        found, place = scan(bytes(changed)), f"byte {at} of batch {index}, bit {bit}"
        damage = only_damage(found)
        assert positions(found) == [each for each in STARTS if each != start], place
        assert (damage.position, damage.offset, damage.kind) == (start, (100, 101)[index], "corrupt"), place


def test_the_damage_says_how_much_is_skipped_and_what_comes_then() -> None:
    changed = bytearray(SEGMENT)
    changed[STARTS[1] + 16] = 3
    assert only_damage(scan(bytes(changed))).reason == (
        f"batch has magic 3 instead of 2; {len(SECOND)} bytes skipped up to the next sound batch, which begins at "
        "offset 104"
    )


def test_broken_batches_in_a_row_are_one_damage() -> None:
    changed = bytearray(SEGMENT)
    changed[STARTS[0] + 70] ^= 1
    changed[STARTS[1] + 70] ^= 1
    found = scan(bytes(changed))
    assert positions(found) == [STARTS[2]]
    assert (only_damage(found).position, only_damage(found).offset) == (0, 100)


@pytest.mark.parametrize("garbage", [b"\xff" * 200, bytes(200), b"\x02" * 7, b"?"])
def test_bytes_that_do_not_belong_there(garbage: bytes) -> None:
    found = scan(FIRST + garbage + SECOND + THIRD)
    assert positions(found) == [0, *(start + len(garbage) for start in STARTS[1:])]
    assert only_damage(found).kind == "corrupt"


def test_a_batch_inside_a_broken_one_is_not_read() -> None:
    outer = write_batch(base_offset=101, leader_epoch=1, timestamp_ms=1, records=[(None, batch(500))])
    broken = bytearray(FIRST + outer + batch(102))
    broken[-len(batch(102)) - 1] ^= 1
    found = scan(bytes(broken))
    assert [item.header.base_offset for item in found if isinstance(item, ScannedBatch)] == [100, 102]


@pytest.mark.parametrize("base_offset", [99, 1000])
def test_a_batch_of_an_impossible_offset_is_passed_over(base_offset: int) -> None:
    found = scan(FIRST + b"\xff" * 99 + rewrite_offsets(SECOND, base_offset, 1) + THIRD)
    assert [item.header.base_offset for item in found if isinstance(item, ScannedBatch)] == [100, 104]


@pytest.mark.parametrize("zeros", [0, 5000])
def test_a_torn_tail_stays_torn(zeros: int) -> None:
    data = SEGMENT + bytes(zeros) if zeros else SEGMENT[:-1]
    assert scan(data) == list(scan_batches(data, base_offset=100))
    assert only_damage(scan(data)).kind == "torn"


@pytest.mark.parametrize("filling", [b"\xff", b"\x02", b"\x00"])
def test_the_search_is_quick(filling: bytes) -> None:
    data = FIRST + filling * (4 << 20) + THIRD
    began = time.process_time()
    assert len(positions(scan(data))) == 2
    assert time.process_time() - began < 5


def test_many_broken_batches_take_no_more_than_many() -> None:
    value = encode_record(NoOpRecord())
    data = bytearray()
    for number in range(5000):
        start = len(data)
        data += write_batch(base_offset=100 + number, leader_epoch=1, timestamp_ms=1, records=[(None, value)])
        data[start + 16] ^= number % 2
    began = time.process_time()
    found = list(scan_batches(bytes(data), base_offset=100, resync=range(100, 9999)))
    assert len(found) == 5000
    assert time.process_time() - began < 5
