"""Records that come many at a time are written in batches that the log takes."""

from kquorum.broker.coordinators import batches
from kquorum.broker.coordinators.batches import in_batches, record_bytes


def test_batches_are_full_and_in_order() -> None:
    found = list(in_batches(range(2 * batches._RECORDS + 1), lambda _each: 1))
    assert [len(each) for each in found] == [batches._RECORDS, batches._RECORDS, 1]
    assert [item for each in found for item in each] == list(range(2 * batches._RECORDS + 1))


def test_long_records_are_in_smaller_batches() -> None:
    long = (b"x" * (batches._BYTES - 10), None)
    short = (b"12345", b"12345")
    assert list(in_batches([long, short, short], record_bytes)) == [[long, short], [short]]


def test_a_record_that_is_too_long_by_itself_is_a_batch() -> None:
    long = (b"x" * (batches._BYTES + 1), None)
    assert list(in_batches([long, long], record_bytes)) == [[long], [long]]


def test_of_nothing_there_is_no_batch() -> None:
    assert list(in_batches([], record_bytes)) == []
