"""Where each leader epoch begins in a partition's log: what `leader-epoch-checkpoint` holds (KIP-101, KIP-279).

Both numbers grow from entry to entry. The last entry may stand at the end of the log without a batch behind it: a new
leader notes its epoch before it writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from kquorum.broker.log.partition_log import EpochEnd

UNKNOWN = EpochEnd(-1, -1)


class LeaderEpochs:
    """Entries are (epoch, start offset). Each change answers whether there was one, for the file to be written."""

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        for epoch, start in entries:
            self.assign(epoch, start)

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int | None:
        return self._entries[-1][0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that records of this epoch begin here, or did so before. Raises ValueError for negative numbers."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset}: both must be at least 0")
        entries = self._entries
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        return True

    def cut_end(self, end_offset: int) -> bool:
        """Drop the entries that begin at or behind the offset."""
        before = len(self._entries)
        while end_offset >= 0 and self._entries and self._entries[-1][1] >= end_offset:
            self._entries.pop()
        return len(self._entries) != before

    def cut_start(self, start_offset: int) -> bool:
        """Drop what lies before the offset; the epoch that holds it begins there from now on."""
        count = bisect_right(self._entries, start_offset, key=lambda entry: entry[1])
        if count == 0:
            return False
        first = (self._entries[count - 1][0], start_offset)
        if count == 1 and self._entries[0] == first:
            return False
        self._entries[:count] = [first]
        return True

    def clear(self) -> bool:
        had_any = bool(self._entries)
        self._entries.clear()
        return had_any

    def end_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The answer of OffsetForLeaderEpoch: the greatest epoch not above the one asked for, and where it ends."""
        entries = self._entries
        if epoch < 0 or not entries or epoch > entries[-1][0]:
            return UNKNOWN
        if epoch == entries[-1][0]:
            return EpochEnd(epoch, log_end_offset)
        following = bisect_right(entries, epoch, key=lambda entry: entry[0])
        if following == 0:
            return EpochEnd(epoch, entries[0][1])
        return EpochEnd(entries[following - 1][0], entries[following][1])

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of the record at the offset; None before the first entry."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[index - 1][0] if index else None
