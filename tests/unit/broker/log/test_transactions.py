"""The index of aborted transactions, and the offsets that open ones hold back, by the behaviours of Kafka's tests."""

import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.broker.log.partition_log import AbortedTransaction
from kquorum.broker.log.transactions import (
    ENTRY_BYTES,
    AbortedEntry,
    CompletedTransaction,
    OpenTransactions,
    aborted_between,
    bytes_below,
    check_entries,
    check_follows,
    decode_entries,
    encode_entry,
)
from kquorum.wire.errors import DecodeError

# TransactionIndexTest.testCollectAbortedTransactions: first, last, last stable.
ENTRIES = [
    AbortedEntry(0, 0, 10, 11),
    AbortedEntry(1, 5, 15, 13),
    AbortedEntry(2, 18, 35, 25),
    AbortedEntry(3, 32, 50, 40),
]
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(INT64, INT64, INT64, INT64)
def test_an_entry_is_34_bytes(producer_id: int, first: int, last: int, stable: int) -> None:
    """testAbortedTxnSerde."""
    entry = AbortedEntry(producer_id, first, last, stable)
    assert len(encode_entry(entry)) == ENTRY_BYTES
    assert decode_entries(encode_entry(entry)) == [entry]


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="version 1"):
        decode_entries(encode_entry(ENTRIES[0]) + struct.pack(">hqqqq", 1, 0, 0, 0, 0))


def test_half_an_entry_is_left_out() -> None:
    data = b"".join(map(encode_entry, ENTRIES))
    for cut in range(1, ENTRY_BYTES):
        assert decode_entries(data[:-cut]) == ENTRIES[:3]
    assert decode_entries(memoryview(data)) == ENTRIES


@pytest.mark.parametrize(
    ("start", "upper", "found", "complete"),
    [
        (0, 100, [0, 1, 2, 3], False),
        (0, 32, [0, 1, 2], True),
        (0, 35, [0, 1, 2, 3], True),
        (10, 35, [0, 1, 2, 3], True),
        (11, 35, [1, 2, 3], True),
        (20, 41, [2, 3], False),
        (26, 42, [2, 3], False),
        (26, 40, [2, 3], True),
        (51, 100, [], False),
        (0, 0, [], True),
    ],
)
def test_collect_aborted_transactions(start: int, upper: int, found: list[int], complete: bool) -> None:
    """testCollectAbortedTransactions."""
    expected = [AbortedTransaction(number, ENTRIES[number].first_offset) for number in found]
    index = b"".join(map(encode_entry, ENTRIES))
    assert aborted_between(index, start, upper) == (expected, complete)


@pytest.mark.parametrize("first_stable", [0, 5])
def test_a_long_index_costs_a_read_little(first_stable: int) -> None:
    """Of a million entries those count that overlap the read, though a transaction that is open since the first of them
    keeps the last stable offset of all down; each of the entries by itself takes a second."""
    count = 1_000_000
    entries = np.zeros(count, np.dtype([("v", ">i2"), *((name, ">i8") for name in "pfls")]))
    entries["f"] = entries["l"] = np.arange(count)
    entries["s"] = first_stable
    began_s = time.process_time()
    found, is_complete = aborted_between(entries.tobytes(), count // 2, count // 2 + 3)
    taken_s = time.process_time() - began_s
    assert (found, is_complete) == ([AbortedTransaction(0, count // 2 + n) for n in range(3)], False)
    assert taken_s < 0.2


def test_truncate() -> None:
    """testTruncate: what ends below stays."""
    for offset, kept in ((51, 4), (50, 3), (36, 3), (35, 2), (16, 2), (15, 1), (11, 1), (10, 0), (0, 0)):
        assert bytes_below(ENTRIES, offset) == kept * ENTRY_BYTES
    assert bytes_below([], 5) == 0


def test_last_offset_must_increase() -> None:
    """testLastOffsetMustIncrease, testLastOffsetCannotDecrease, testPositionSetCorrectlyWhenOpened."""
    check_follows(ENTRIES[0], None)
    check_follows(ENTRIES[1], ENTRIES[0])
    for last in (10, 9):
        with pytest.raises(ValueError, match=f"{last} cannot follow 10"):
            check_follows(AbortedEntry(9, 0, last, 0), ENTRIES[0])


def test_sanity_check() -> None:
    """testSanityCheck: no transaction ends before its segment begins."""
    check_entries(ENTRIES, 10)
    with pytest.raises(DecodeError, match="ends at 10"):
        check_entries(ENTRIES, 11)


def test_a_transaction_that_is_not_open_cannot_be_completed() -> None:
    with pytest.raises(ValueError, match="offset 3"):
        OpenTransactions().complete(CompletedTransaction(1, 3, 9, is_aborted=True))


def test_transactions_are_kept_by_their_first_offset() -> None:
    """A snapshot's entries come in any order."""
    transactions = OpenTransactions()
    for first_offset in (30, 10, 20):
        transactions.begin(first_offset, first_offset + 1)
    assert transactions.first_undecided_offset == 10
    assert transactions.oldest_producer_id == 11
    assert transactions.last_stable_offset_after(CompletedTransaction(11, 10, 40, is_aborted=True)) == 20
