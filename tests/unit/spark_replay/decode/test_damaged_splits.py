"""What is read of a damaged segment does not depend on where it is split, nor on its index."""

import struct
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.spark_replay.decode.records import Origin, possible_base_offsets, scan
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import FileKind
from kquorum.spark_replay.decode.splits import scan_runs, split_ranges
from kquorum.wire.batch_runs import BatchRun
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from tests.support.batches import rewrite_offsets

ORIGIN = Origin(file="00000000000000000100.log", kind=FileKind.LOG, segment_base_offset=100)
Rows = tuple[list[tuple[int, int]], list[DamageRow]]


def segment(sizes: list[int]) -> tuple[bytes, list[int]]:
    """Batches with names of so many bytes, and where each begins."""
    data, begins = bytearray(), []
    for number, size in enumerate(sizes):
        begins.append(len(data))
        value = encode_record(TopicRecord(name="x" * size, topic_id=UUID(int=1)))
        records = [(None, value)] * (1 + size % 3)
        data += write_batch(base_offset=100 + 3 * number, leader_epoch=1, timestamp_ms=1, records=records)
    return renumbered(bytes(data), begins), begins


def renumbered(data: bytes, begins: list[int]) -> bytes:
    offset, parts = 100, []
    for begin, end in zip(begins, [*begins[1:], len(data)], strict=True):
        parts.append(rewrite_offsets(data[begin:end], offset, 1))
        offset += struct.unpack_from(">i", data, begin + 23)[0] + 1
    return b"".join(parts)


@st.composite
def damaged_segments(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A segment, and its index as it was before the damage."""
    data, begins = segment(draw(st.lists(st.integers(1, 200), min_size=5, max_size=40)))
    indexed = draw(st.lists(st.sampled_from(begins[1:]), unique=True).map(sorted))
    index = b"".join(struct.pack(">ii", position, position) for position in indexed)
    broken = bytearray(data)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.one_of(st.sampled_from(begins).flatmap(near), st.integers(0, len(data) - 1)))
        match draw(st.sampled_from(["flip", "flip", "cut", "insert", "zero"])):
            case "flip" if at < len(broken):
                broken[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del broken[at : at + draw(st.integers(1, 200))]
            case "insert":
                broken[at:at] = draw(st.binary(min_size=1, max_size=80))
            case _:
                broken[at : at + 300] = bytes(len(broken[at : at + 300]))
    return bytes(broken), index


def near(begin: int) -> st.SearchStrategy[int]:
    return st.integers(begin, begin + 60)


def rows(data: bytes, ranges: list[tuple[int, int]]) -> Rows:
    batches: list[tuple[int, int]] = []
    damage: list[DamageRow] = []
    for start, end in ranges:
        for item in scan_runs(memoryview(data), ORIGIN, start, end):
            match item:
                case DamageRow():
                    damage.append(item)
                case BatchRun():
                    offsets = item.headers["base_offset"].tolist()
                    batches += zip(item.positions.tolist(), offsets, strict=True)
                case _:
                    batches.append((item.position, item.header.base_offset))
    return batches, damage


def rows_of_whole(data: bytes) -> Rows:
    found = list(scan(data, ORIGIN))
    batches = [(item.position, item.header.base_offset) for item in found if isinstance(item, ScannedBatch)]
    return batches, [item for item in found if isinstance(item, DamageRow)]


@settings(max_examples=300, deadline=None)
@given(damaged_segments(), st.sampled_from([64, 200, 700, 3000]))
def test_every_batch_and_every_damage_once_whatever_the_splits(
    damaged: tuple[bytes, bytes], split_bytes: int
) -> None:
    data, index = damaged
    whole = rows_of_whole(data)
    for hints in (index, b""):
        ranges = split_ranges(
            memoryview(data), hints, split_bytes, base_offsets=possible_base_offsets(ORIGIN)
        )
        assert rows(data, ranges) == whole


def test_no_piece_begins_with_a_negative_leader_epoch() -> None:
    """The pieces on both sides of the boundary would report it: found by the test above with a flipped sign bit."""
    data, begins = segment([1] * 6)
    broken = bytearray(data)
    broken[begins[1] + 12] ^= 0x80
    split = split_ranges(memoryview(broken), b"", 64)
    assert rows(bytes(broken), split) == rows_of_whole(bytes(broken))
    assert len(rows_of_whole(bytes(broken))[1]) == 1


def test_no_piece_begins_with_an_offset_that_the_file_cannot_hold() -> None:
    """A reader that comes from damage skips such a batch; a piece that began with it would accept it."""
    data, begins = segment([1] * 6)
    broken = bytearray(data)
    broken[begins[4] : begins[4] + 61] = bytes(61)
    broken[begins[5] :] = rewrite_offsets(data[begins[5] :], 0, 1)
    whole = rows_of_whole(bytes(broken))
    assert len(whole[0]) == 4
    ranges = split_ranges(memoryview(broken), b"", 64, base_offsets=possible_base_offsets(ORIGIN))
    assert rows(bytes(broken), ranges) == whole
    hinted = split_ranges(
        memoryview(broken), struct.pack(">ii", 1, begins[5]), 64, base_offsets=possible_base_offsets(ORIGIN)
    )
    assert rows(bytes(broken), hinted) == whole


def test_a_flipped_bit_in_a_magic_costs_one_batch_and_runs_come_again() -> None:
    data, begins = segment([5] * 4000)
    broken = bytearray(data)
    broken[begins[7] + 16] ^= 1
    found = list(scan_runs(memoryview(broken), ORIGIN, 0, len(broken)))
    batches, (damage,) = rows(bytes(broken), [(0, len(broken))])
    assert [position for position, _ in batches] == begins[:7] + begins[8:]
    assert (damage.position, damage.offset) == (begins[7], batches[6][1] + 3)
    assert isinstance(found[-1], BatchRun)
