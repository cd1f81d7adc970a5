"""Groups are found by Java's hash of their id."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.broker.coordinators.partitioning import java_hash, partition_of

TraceFunction = Callable[[FrameType, str, Any], Any]


@pytest.mark.parametrize(
    ("text", "expected", "partition"),
    [
        ("", 0, 0),
        ("foo", 101574, 24),
        ("my-group", -1906497762, 12),
        ("test-txn", -1147936081, 31),
        # Its hash is the least number, which has no positive counterpart in 32 bits.
        ("polygenelubricants", -2147483648, 0),
        # Two UTF-16 units.
        ("😀", 1772899, 49),
    ],
)
def test_groups_are_where_kafka_looks_for_them(text: str, expected: int, partition: int) -> None:
    assert java_hash(text) == expected
    assert partition_of(text, 50) == partition


def plain_hash(text: str) -> int:
    data = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        found = (31 * found + 256 * high + low) % 2**32
    return found - 2**32 if found >= 2**31 else found


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=70), st.integers(1, 200))
def test_a_hash_of_any_length_is_that_of_its_characters_one_by_one(text: str, times: int) -> None:
    assert java_hash(text * times) == plain_hash(text * times)


def test_a_long_id_costs_no_step_for_each_character() -> None:
    """480 ids of 32 KB in one request took 1.4 s of the event loop."""
    steps = 0

    def count_lines(frame: FrameType, _event: str, _argument: object) -> TraceFunction | None:
        nonlocal steps
        steps += frame.f_code is java_hash.__code__
        return count_lines

    sys.settrace(count_lines)
    try:
        java_hash("x" * 32_767)
    finally:
        sys.settrace(None)
    assert 0 < steps < 100
