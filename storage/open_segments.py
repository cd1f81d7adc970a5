"""Which segments of partitions have their file open: so many at a time, whatever the number of segments.

Records choose their timestamps, and with them when a segment ends: a producer can make a segment of each record. With a
descriptor for each, a broker would have none left for its connections and its other logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from kquorum.storage.spare_descriptors import is_out_of_descriptors

# Some thousands of partitions are written at a time. A node gives a number that fits its limit of open files.
DEFAULT_MOST: Final = 4_096


class OpenSegment(Protocol):
    def close_files(self) -> None:
        """Close the descriptor; the next use opens the file again. Calls `closed`."""
        ...


class OpenSegments:
    """The one that was used longest ago is closed first. For one thread at a time: a descriptor is used only in the
    turn that asked for it, so none is closed that is in use."""

    def __init__(self, most: int = DEFAULT_MOST) -> None:
        self._most = max(most, 1)
        # The one that was used longest ago comes first.
        self._open: dict[OpenSegment, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, segment: OpenSegment, opening: Callable[[], int], last_resort: Callable[[], int]) -> int:
        """The descriptor. Where the process has none left, those of other segments are closed for it; without such,
        `last_resort` opens the file. Raises OSError."""
        while len(self._open) >= self._most:
            self._close_one()
        descriptor = self._opened(opening, last_resort)
        self._open[segment] = None
        return descriptor

    def _opened(self, opening: Callable[[], int], last_resort: Callable[[], int]) -> int:
        while True:
            try:
                return opening()
            except OSError as error:
                if not is_out_of_descriptors(error):
                    raise
                if not self._open:
                    return last_resort()
                self._close_one()

    def used(self, segment: OpenSegment) -> None:
        if segment in self._open:
            del self._open[segment]
            self._open[segment] = None

    def closed(self, segment: OpenSegment) -> None:
        self._open.pop(segment, None)

    def _close_one(self) -> None:
        next(iter(self._open)).close_files()
