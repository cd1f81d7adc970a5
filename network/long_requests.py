"""Long requests of a role wait for each other, so that few elements are under way at the same time.

A full collection of garbage goes through all objects that are alive, some 0.2 microseconds for each element of a
request: eight Metadata requests of 199,000 topics each, all of them read and none of them answered, made it hold the
loop for 380 ms. So one long request is read at a time, and the next one only while those that were read and have no
answer yet have few elements together.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

# Of those that have no answer yet; the last one may exceed it.
MOST_ELEMENTS: Final = 100_000


class Place:
    """A long request's, from when it asks to be read until it is answered."""

    __slots__ = ("_requests", "begin", "elements", "is_begun")

    def __init__(self, requests: "LongRequests", begin: Callable[["Place"], None]) -> None:
        self._requests = requests
        self.begin = begin
        self.elements = 0
        self.is_begun = False

    def has(self, elements: int) -> None:
        """The request was read: so many elements it has."""
        self._requests.note_read(self, elements)

    def leave(self) -> None:
        """The request was answered, or given up."""
        self._requests.note_end(self)


class LongRequests:
    """First come, first served."""

    def __init__(self) -> None:
        self._waiting: deque[Place] = deque()
        self._elements = 0
        self._being_read: Place | None = None
        self._is_serving = False

    def ask(self, begin: Callable[[Place], None]) -> Place:
        """`begin` is called when the request may be read: now, or within a call of another place."""
        place = Place(self, begin)
        self._waiting.append(place)
        self._serve()
        return place

    def note_read(self, place: Place, elements: int) -> None:
        place.elements = elements
        self._elements += elements
        self._end_reading(place)

    def note_end(self, place: Place) -> None:
        self._elements -= place.elements
        place.elements = 0
        if not place.is_begun and place in self._waiting:
            self._waiting.remove(place)
        self._end_reading(place)

    def _end_reading(self, place: Place) -> None:
        if self._being_read is place:
            self._being_read = None
        self._serve()

    def _serve(self) -> None:
        if self._is_serving:
            return
        self._is_serving = True
        try:
            while self._waiting and self._being_read is None and self._elements < MOST_ELEMENTS:
                place = self._being_read = self._waiting.popleft()
                place.is_begun = True
                place.begin(place)
        finally:
            self._is_serving = False
