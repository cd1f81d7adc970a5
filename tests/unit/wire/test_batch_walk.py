"""Batches behind damage are found again, each stretch of damage is reported once."""

import pytest

from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.metadata_records.features import NoOpRecord
from tests.support.sample_logs import LogBuilder


def batches(count: int) -> list[bytes]:
    log = LogBuilder()
    for number in range(count):
        log.records(1000 + number, NoOpRecord())
    return [bytes(found.data) for found in scan_batches(bytes(log.data)) if isinstance(found, ScannedBatch)]


def walked(data: bytes) -> list[int | str]:
    """Base offsets, and the kind of each damage."""
    return [
        found.kind if isinstance(found, Damage) else found.header.base_offset
        for found in walk_batches(memoryview(data))
    ]


@pytest.mark.parametrize("position", [8, 9, 10, 11, 16, 17, 21, 57, -1])
@pytest.mark.parametrize("bit", [0, 3, 7])
def test_only_the_broken_batch_is_lost(position: int, bit: int) -> None:
    whole = batches(6)
    broken = bytearray(whole[2])
    broken[position] ^= 1 << bit
    assert walked(b"".join([*whole[:2], broken, *whole[3:]])) == [0, 1, "corrupt", 3, 4, 5]


def test_a_stretch_of_garbage_longer_than_what_is_read_at_a_time() -> None:
    whole = batches(4)
    garbage = b"\xff" * (3 << 20)
    assert walked(b"".join([*whole[:2], garbage, *whole[2:]])) == [0, 1, "corrupt", 2, 3]


def test_an_end_that_is_torn() -> None:
    whole = batches(3)
    assert walked(b"".join(whole)[:-1]) == [0, 1, "torn"]
    assert walked(b"".join(whole) + bytes(500)) == [0, 1, 2, "torn"]


def test_offsets_and_epochs_that_do_not_continue_are_no_damage() -> None:
    whole = batches(4)
    assert walked(b"".join([whole[3], whole[0], whole[1]])) == [3, 0, 1]
