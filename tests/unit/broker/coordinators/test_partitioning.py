"""Groups are found by Java's hash of their id."""

import pytest

from kquorum.broker.coordinators.partitioning import java_hash, partition_of


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
