"""Transactions in a partition's log: which are open, how far readers of committed records may read, and the index of
aborted ones (`.txnindex`).

An entry of the index has 34 bytes: version int16 (0), producer id, first offset, last offset (that of the marker) and
last stable offset, each int64. Entries lie in the segment that holds the marker, ordered by their last offset (KIP-98).
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kquorum.broker.log.partition_log import AbortedTransaction
from kquorum.wire.errors import DecodeError

ENTRY_BYTES: Final = 34
_VERSION: Final = 0
_ENTRY: Final = struct.Struct(">hqqqq")
_COLUMNS: Final = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)
_BLOCK: Final = 8_192


@dataclass(frozen=True, slots=True)
class AbortedEntry:
    """An entry of the index. Offsets are inclusive but the last stable one, below which all was decided by then."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class CompletedTransaction:
    """A transaction that a marker at `last_offset` ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


def encode_entry(entry: AbortedEntry) -> bytes:
    return _ENTRY.pack(
        _VERSION, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
    )


def decode_entries(data: bytes | memoryview) -> list[AbortedEntry]:
    """The entries of an index; half an entry at the end is left out. Raises DecodeError for a newer version."""
    entries = []
    for position in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
        version, producer_id, first_offset, last_offset, stable = _ENTRY.unpack_from(data, position)
        if version > _VERSION:
            raise DecodeError(f"an entry of the transaction index has version {version}", position)
        entries.append(AbortedEntry(producer_id, first_offset, last_offset, stable))
    return entries


def check_entries(entries: Iterable[AbortedEntry], base_offset: int) -> None:
    """Raises DecodeError where the index cannot belong to the segment that begins at `base_offset`."""
    for entry in entries:
        if entry.last_offset < base_offset:
            raise DecodeError(
                f"an aborted transaction ends at {entry.last_offset}, before its segment begins at {base_offset}"
            )


def check_follows(entry: AbortedEntry, last: AbortedEntry | None) -> None:
    """Raises ValueError unless `entry` may stand behind `last` in the index."""
    if last is not None and entry.last_offset <= last.last_offset:
        raise ValueError(
            f"the index's entries increase: {entry.last_offset} cannot follow {last.last_offset}"
        )


def bytes_below(entries: Sequence[AbortedEntry], offset: int) -> int:
    """How long the index is after the log was truncated to `offset`: it ends before the first entry that ends there."""
    for index, entry in enumerate(entries):
        if entry.last_offset >= offset:
            return index * ENTRY_BYTES
    return len(entries) * ENTRY_BYTES


def aborted_between(
    index: bytes | bytearray, start_offset: int, upper_bound: int
) -> tuple[list[AbortedTransaction], bool]:
    """The aborted transactions of a segment's index that overlap a read of [start_offset, upper_bound), and whether the
    list is complete; where it is not, the next segment's index has more.

    By columns, block by block: each read of committed records asks, and a segment may have millions of entries, of
    which a transaction that stays open for long makes many count.
    """
    entries = np.frombuffer(index, _COLUMNS)
    last = entries["last_offset"]
    begin = bisect_left(range(len(entries)), start_offset, key=lambda number: int(last[number]))
    found: list[AbortedTransaction] = []
    for position in range(begin, len(entries), _BLOCK):
        block = entries[position : position + _BLOCK]
        ends = np.flatnonzero(block["last_stable_offset"] >= upper_bound)
        if len(ends):
            block = block[: ends[0] + 1]
        overlapping = block[block["first_offset"] < upper_bound]
        found += [
            AbortedTransaction(producer_id, first_offset)
            for producer_id, first_offset in zip(
                overlapping["producer_id"].tolist(), overlapping["first_offset"].tolist(), strict=True
            )
        ]
        if len(ends):
            return found, True
    return found, False


class OpenTransactions:
    """The transactions that hold the last stable offset back: open ones, and ended ones with an unreplicated marker.

    Both are kept by first offset, which is unique: one batch opens one transaction.
    """

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}
        self._first_unreplicated: int | None = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open), None)

    @property
    def oldest_producer_id(self) -> int | None:
        """The producer of the oldest open transaction."""
        return next(iter(self._open.values()), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not below the high watermark."""
        undecided, unreplicated = self.first_undecided_offset, self._first_unreplicated
        if undecided is None or unreplicated is None:
            return unreplicated if undecided is None else undecided
        return min(undecided, unreplicated)

    def is_empty(self) -> bool:
        return not self._open and not self._unreplicated

    def has_unreplicated(self) -> bool:
        return bool(self._unreplicated)

    def begin(self, first_offset: int, producer_id: int) -> None:
        """A batch at `first_offset` opened a transaction."""
        is_in_order = not self._open or first_offset > next(reversed(self._open))
        self._open[first_offset] = producer_id
        if not is_in_order:
            self._open = dict(sorted(self._open.items()))

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset that the index notes for a transaction which is about to be completed."""
        for first_offset, producer_id in self._open.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """A marker ended the transaction. Raises ValueError where it is not open."""
        if self._open.pop(completed.first_offset, None) is None:
            raise ValueError(f"no transaction is open at offset {completed.first_offset}")
        self._unreplicated[completed.first_offset] = completed.last_offset
        if self._first_unreplicated is None or completed.first_offset < self._first_unreplicated:
            self._first_unreplicated = completed.first_offset

    def forget_replicated(self, offset: int) -> None:
        """All below `offset` is replicated (the high watermark), or was deleted (the log's start)."""
        if not self._unreplicated:
            return
        self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= offset}
        self._first_unreplicated = min(self._unreplicated, default=None)

    def clear(self) -> None:
        self._open.clear()
        self._unreplicated.clear()
        self._first_unreplicated = None


def last_stable_offset(first_unstable_offset: int | None, log_start_offset: int, high_watermark: int) -> int:
    """How far a reader of committed records may read (KIP-98)."""
    if first_unstable_offset is None:
        return high_watermark
    return min(max(first_unstable_offset, log_start_offset), high_watermark)
