"""Work that takes long, in slices: the node goes on between two of them.

Sans-IO: time is asked for, and a later turn of the loop is a port. A request names thousands of partitions in a few
bytes each, and each costs an append, a read or a look into a file.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

log = logging.getLogger("broker.data_plane")

SLICE_MS: Final = 8


class Slices:
    """`later` calls back in a later turn of the loop, when it is the work's turn."""

    def __init__(self, now_ms: Callable[[], int], later: Callable[[Callable[[], None]], object]) -> None:
        self._now_ms = now_ms
        self._later = later
        self._lines: dict[int, deque[_Work]] = {}
        # Counts the later turns that works took.
        self.turn = 0

    def run(
        self, steps: Iterator[object], done: Callable[[], None], give_up: Callable[[], None], line: int = -1
    ) -> None:
        """Take all `steps`, then call `done`; what takes longer than a slice goes on later. Works of one `line`, such
        as a connection, come one after the other, unless it is negative. `give_up` is called in the place of `done`
        after an error in a later turn; one in this turn is the caller's."""
        work = _Work(steps, done, give_up)
        waiting = self._lines.get(line)
        if waiting is not None:
            waiting.append(work)
        elif not self._advance(work):
            if line >= 0:
                self._lines[line] = deque((work,))
                self._later(lambda: self._go_on_with(line))
            else:
                self._later(lambda: self._go_on(work))

    def _advance(self, work: _Work) -> bool:
        began_ms = self._now_ms()
        for _ in work.steps:
            if self._now_ms() - began_ms >= SLICE_MS:
                return False
        work.done()
        return True

    def _advance_later(self, work: _Work) -> bool:
        self.turn += 1
        try:
            return self._advance(work)
        except Exception:
            log.exception("a request could not be answered")
            work.give_up()
            return True

    def _go_on(self, work: _Work) -> None:
        if not self._advance_later(work):
            self._later(lambda: self._go_on(work))

    def _go_on_with(self, line: int) -> None:
        works = self._lines[line]
        if self._advance_later(works[0]):
            works.popleft()
        if works:
            self._later(lambda: self._go_on_with(line))
        else:
            del self._lines[line]


class _Work:
    __slots__ = ("done", "give_up", "steps")

    def __init__(
        self, steps: Iterator[object], done: Callable[[], None], give_up: Callable[[], None]
    ) -> None:
        self.steps = steps
        self.done = done
        self.give_up = give_up
