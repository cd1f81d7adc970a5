"""The links between nodes: messages are lost, late, doubled and out of order; links are cut one way or both."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from tests.simulation.events import Action

CALM_DELAY_MS = 10


@dataclass(slots=True)
class Weather:
    """Chances from 0 to 1; a message is under way for up to `delay_ms_max`."""

    delay_ms_max: int
    loss: float = 0.0
    duplicates: float = 0.0


class Queue(Protocol):
    """The world, as far as its links need it."""

    is_faulty: bool

    def at(self, delay_ms: int, action: Action, *arguments: Any) -> None: ...
    def note(self, line: str, *values: Any) -> None: ...


class Links:
    def __init__(self, queue: Queue, seed: int, delay_ms_max: int) -> None:
        self.weather = Weather(delay_ms_max)
        # How many cuts lie on a link, since they overlap and end on their own.
        self.cuts: dict[tuple[int, int], int] = {}
        self.messages = 0
        self._queue = queue
        self._delay_ms_max = delay_ms_max
        self._random = Random(seed).random

    def calm(self) -> None:
        """The faults are over."""
        self.cuts.clear()
        self.weather = Weather(min(CALM_DELAY_MS, self._delay_ms_max))

    # Cuts

    def cut(self, links: Iterable[tuple[int, int]], for_ms: int) -> None:
        """Cut these links, each from one node to another, for a while."""
        links = tuple(links)
        for link in links:
            self.cuts[link] = self.cuts.get(link, 0) + 1
        self._queue.at(for_ms, self._mend, links)

    def _mend(self, links: tuple[tuple[int, int], ...]) -> None:
        if not self._queue.is_faulty:
            return
        self._queue.note("%d links mended", len(links))
        for link in links:
            self.cuts[link] -= 1

    def is_cut(self, source_id: int, target_id: int) -> bool:
        return self.cuts.get((source_id, target_id), 0) > 0

    # Chance

    def copies(self, source_id: int, target_id: int) -> int:
        """How many of a message arrive."""
        self.messages += 1
        if self.cuts and self.is_cut(source_id, target_id):
            return 0
        if self.is_lost():
            return 0
        weather = self.weather
        return 2 if weather.duplicates and self._random() < weather.duplicates else 1

    def is_lost(self) -> bool:
        return self.weather.loss > 0 and self._random() < self.weather.loss

    def delay_ms(self) -> int:
        return 1 + int(self._random() * self.weather.delay_ms_max)
