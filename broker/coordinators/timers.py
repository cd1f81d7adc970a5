"""Deadlines by key: to set a key that is set replaces its deadline. The adapter asks for the next one and fires what
is due."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Final

Action = Callable[[int], None]
MOST_AT_ONCE: Final = 100
"""So many actions at most are fired in one call: those of ten thousand members may be due in one millisecond."""


class Earliest:
    """Not above the deadline of any timer that shares it; `ms` is None without one."""

    __slots__ = ("ms",)

    def __init__(self) -> None:
        self.ms: int | None = None


class Timers:
    def __init__(self, earliest: Earliest | None = None) -> None:
        self._earliest = Earliest() if earliest is None else earliest
        self._actions: dict[Hashable, tuple[int, int, Action]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._actions)

    def set(self, key: Hashable, deadline_ms: int, action: Action) -> None:
        """`action` is called with the time then."""
        earliest = self._earliest
        if earliest.ms is None or deadline_ms < earliest.ms:
            earliest.ms = deadline_ms
        self._count += 1
        self._actions[key] = (deadline_ms, self._count, action)
        heapq.heappush(self._heap, (deadline_ms, self._count, key))
        if len(self._heap) > 2 * len(self._actions) + 64:
            # Heartbeats replace their deadlines over and over.
            self._heap = [(deadline, number, key) for key, (deadline, number, _) in self._actions.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: Hashable) -> None:
        self._actions.pop(key, None)

    def clear(self) -> None:
        self._actions.clear()
        self._heap.clear()

    def is_set(self, key: Hashable) -> bool:
        return key in self._actions

    def next_deadline_ms(self) -> int | None:
        while self._heap:
            deadline_ms, number, key = self._heap[0]
            known = self._actions.get(key)
            if known is not None and known[1] == number:
                return deadline_ms
            heapq.heappop(self._heap)
        return None

    def fire(self, now_ms: int) -> None:
        """What is due now, the earliest first, up to MOST_AT_ONCE; the rest stays due. What an action sets is fired in
        the next call at the earliest."""
        due: list[tuple[Hashable, int]] = []
        while (
            len(due) < MOST_AT_ONCE
            and (deadline_ms := self.next_deadline_ms()) is not None
            and deadline_ms <= now_ms
        ):
            _, number, key = heapq.heappop(self._heap)
            due.append((key, number))
        for key, number in due:
            known = self._actions.get(key)
            # An action before may have cancelled or replaced it.
            if known is not None and known[1] == number:
                del self._actions[key]
                known[2](now_ms)
