"""The index files of a segment against the batches they point to (Kafka's OffsetIndex and TimeIndex).

An entry of the offset index: the last offset of what was appended at once, and where that begins. An entry of the
time index: the largest timestamp so far, and the last offset of the batch that has it. Both ascend; zeros at the end
of the file are space that was reserved and not used.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kquorum.wire.record_batch import BatchHeader

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class IndexFault:
    """`position` is that of the entry in the index file."""

    position: int
    offset: int | None
    reason: str


class IndexWalk:
    """Entries of one index, met one by one while the batches of its segment pass; memory does not grow."""

    entry: struct.Struct

    def __init__(self, data: memoryview, base_offset: int, report: Callable[[IndexFault], None]) -> None:
        self._data = data
        self._base_offset = base_offset
        self._report = report
        self.entry_count = 0
        self._is_unsure = False
        self._entries = self._ascending()
        self._current = next(self._entries, None)

    def observe(self, position: int, header: BatchHeader) -> None:
        """Take the next batch of the segment, which begins at byte `position`."""
        while self._current is not None and self._is_settled(position, header):
            self._current = next(self._entries, None)
        self._is_unsure = False

    def pass_over(self) -> None:
        """Batches are unreadable here: entries up to the next readable one are not judged."""
        self._is_unsure = True

    def finish(self) -> None:
        """All batches have passed: what is left points behind the last."""
        while self._current is not None:
            at, first, second = self._current
            self._entry_fault(at, f"the entry {self._text(first, second)} points behind the last batch", None)
            self._current = next(self._entries, None)

    def _is_settled(self, position: int, header: BatchHeader) -> bool:
        """Whether the batch decides about the current entry; faults are reported here."""
        raise NotImplementedError

    def _is_later(self, entry: tuple[int, int], previous: tuple[int, int]) -> bool:
        raise NotImplementedError

    def _text(self, first: int, second: int) -> str:
        raise NotImplementedError

    def _ascending(self) -> Iterator[tuple[int, int, int]]:
        """(position, two numbers) of each entry; one that does not ascend is reported and passed over."""
        size = self.entry.size
        whole = len(self._data) - len(self._data) % size
        if whole != len(self._data):
            self._fault(whole, f"the file has {len(self._data)} bytes, which is no multiple of {size}")
        previous: tuple[int, int] | None = None
        unused_from = self._unused_from()
        for position in range(0, whole, size):
            entry = self.entry.unpack_from(self._data, position)
            if previous is not None and not self._is_later(entry, previous):
                if position >= unused_from:
                    return
                text = f"the entry {self._text(*entry)} does not ascend from {self._text(*previous)}"
                self._fault(position, text)
                continue
            if previous is None and position >= unused_from:
                return
            previous = entry
            self.entry_count += 1
            yield position, *entry

    def _unused_from(self) -> int:
        """Where the zeros at the end begin; a megabyte at a time, as Kafka reserves ten."""
        end = len(self._data)
        while end > 0:
            start = max(0, end - (1 << 20))
            used = len(bytes(self._data[start:end]).rstrip(b"\x00"))
            if used:
                return start + used
            end = start
        return 0

    def _entry_fault(self, position: int, reason: str, offset: int | None) -> None:
        if not self._is_unsure:
            self._fault(position, reason, offset)

    def _fault(self, position: int, reason: str, offset: int | None = None) -> None:
        self._report(IndexFault(position, offset, reason))


class OffsetIndexWalk(IndexWalk):
    """Between the batch at an entry's position and the one that ends at its offset lies what was appended at once."""

    entry = _OFFSET_ENTRY
    _has_begun = False
    _ended_at = -1

    def _is_settled(self, position: int, header: BatchHeader) -> bool:
        assert self._current is not None, "asked of a current entry only"
        at, relative, target = self._current
        offset = self._base_offset + relative
        if not self._has_begun:
            if position < target:
                return False
            if position > target:
                self._entry_fault(at, f"byte {target} is not where a batch begins", offset)
                return True
            if position == self._ended_at:
                self._entry_fault(at, f"byte {target} belongs to the entry before", offset)
                return True
            self._has_begun = True
        if header.last_offset < offset:
            return False
        self._has_begun, self._ended_at = False, position
        if header.last_offset > offset:
            self._entry_fault(at, f"offset {offset} is not the last of a batch from byte {target} on", offset)
        return True

    def _is_later(self, entry: tuple[int, int], previous: tuple[int, int]) -> bool:
        return entry[0] > previous[0] and entry[1] > previous[1]

    def _text(self, first: int, second: int) -> str:
        return f"offset {self._base_offset + first} at byte {second}"


class TimeIndexWalk(IndexWalk):
    """The batch that ends at an entry's offset has its timestamp, and none before it a larger one."""

    entry = _TIME_ENTRY
    _largest_ms = -1

    def observe(self, position: int, header: BatchHeader) -> None:
        super().observe(position, header)
        self._largest_ms = max(self._largest_ms, header.max_timestamp_ms)

    def _is_settled(self, position: int, header: BatchHeader) -> bool:  # noqa: ARG002 - the offset index's
        assert self._current is not None, "asked of a current entry only"
        at, timestamp_ms, relative = self._current
        offset = self._base_offset + relative
        if header.last_offset < offset:
            return False
        if header.last_offset > offset:
            self._entry_fault(at, f"offset {offset} is not the last of a batch", offset)
        elif header.max_timestamp_ms != timestamp_ms:
            reason = f"the batch that ends at offset {offset} has timestamp {header.max_timestamp_ms}, "
            self._entry_fault(at, f"{reason}the entry says {timestamp_ms}", offset)
        elif self._largest_ms > timestamp_ms:
            self._entry_fault(
                at, f"timestamp {timestamp_ms} is not the largest up to offset {offset}", offset
            )
        return True

    def _is_later(self, entry: tuple[int, int], previous: tuple[int, int]) -> bool:
        return entry[0] > previous[0] and entry[1] >= previous[1]

    def _text(self, first: int, second: int) -> str:
        return f"timestamp {first} at offset {self._base_offset + second}"
