"""Cutting a segment at batch boundaries, with and without the help of its offset index."""

import itertools
import struct

import pytest

from kquorum.spark_replay.decode.splits import split_ranges
from kquorum.wire.metadata_records.features import NoOpRecord
from tests.support.sample_logs import LogBuilder

BATCH = 72
BATCHES = 20


@pytest.fixture
def segment() -> memoryview:
    log = LogBuilder()
    for at in range(BATCHES):
        log.records(at, NoOpRecord())
    assert len(log.data) == BATCH * BATCHES
    return memoryview(bytes(log.data))


def index_of(*positions: int) -> bytes:
    return b"".join(struct.pack(">ii", position // BATCH, position) for position in positions)


def check_cover(segment: memoryview, ranges: list[tuple[int, int]]) -> None:
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(segment)
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(ranges))


def test_a_small_segment_is_one_piece(segment: memoryview) -> None:
    assert split_ranges(segment, b"", len(segment)) == [(0, len(segment))]


def test_without_an_index_the_batches_are_counted_off(segment: memoryview) -> None:
    ranges = split_ranges(segment, b"", 500)
    check_cover(segment, ranges)
    assert ranges == [(0, 504), (504, 1008), (1008, 1440)]


def test_the_index_gives_the_boundaries(segment: memoryview) -> None:
    ranges = split_ranges(segment, index_of(4 * BATCH, 9 * BATCH, 15 * BATCH) + bytes(80), 300)
    check_cover(segment, ranges)
    assert [start for start, _ in ranges][:3] == [0, 9 * BATCH, 15 * BATCH]


@pytest.mark.parametrize("wrong", [9 * BATCH + 1, 9 * BATCH - 8])
def test_an_index_which_points_between_batches_is_not_trusted(segment: memoryview, wrong: int) -> None:
    assert split_ranges(segment, index_of(wrong), 500) == split_ranges(segment, b"", 500)


def test_an_index_that_points_behind_the_end_is_ignored(segment: memoryview) -> None:
    assert split_ranges(segment, index_of(100 * BATCH), 500) == split_ranges(segment, b"", 500)


def test_behind_the_last_entry_of_the_index_the_batches_are_counted_off(segment: memoryview) -> None:
    ranges = split_ranges(segment, index_of(3 * BATCH), 500)
    check_cover(segment, ranges)
    assert len(ranges) == 3


def test_what_follows_an_unusable_header_stays_in_one_piece(segment: memoryview) -> None:
    broken = bytearray(segment)
    broken[9 * BATCH + 8 : 9 * BATCH + 12] = struct.pack(">i", -5)
    ranges = split_ranges(memoryview(bytes(broken)), b"", 500)
    check_cover(segment, ranges)
    assert ranges == [(0, 504), (504, 1440)]


@pytest.mark.parametrize("index", [b"", index_of(7 * BATCH, 14 * BATCH)])
@pytest.mark.parametrize("broken_at", [7, 8])
def test_no_piece_begins_where_damage_does_or_right_before_it(
    segment: memoryview, index: bytes, broken_at: int
) -> None:
    broken = bytearray(segment)
    broken[broken_at * BATCH + 70] ^= 1
    ranges = split_ranges(memoryview(bytes(broken)), index, 500)
    check_cover(segment, ranges)
    assert {start for start, _ in ranges}.isdisjoint({(broken_at - 1) * BATCH, broken_at * BATCH})
    assert len(ranges) > 1
