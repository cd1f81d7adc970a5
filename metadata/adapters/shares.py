"""Bounds the requests that are on their way at a time, in all and of each name, and gives the free places in turns."""

import asyncio
from collections import Counter, deque


class Shares:
    """`most` in all, and `most_of_one` of one name. Those beyond wait: of each name the oldest first, and the names in
    turns, so that one with a thousand requests does not keep the single one of another waiting."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._taken: Counter[str] = Counter()
        # By name; the order of the names is that of their turns.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def take(self, name: str) -> None:
        """`give_back` has to follow, unless this was cancelled."""
        if self._has_room(name) and name not in self._waiting:
            self._taken[name] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(name, turn)
            else:
                self.give_back(name)
            raise

    def give_back(self, name: str) -> None:
        self._taken[name] -= 1
        if not self._taken[name]:
            del self._taken[name]
        self._call_next()

    def _has_room(self, name: str) -> bool:
        return self._taken.total() < self._most and self._taken[name] < self._most_of_one

    def _call_next(self) -> None:
        for name in self._waiting:
            if self._has_room(name):
                turn = self._waiting[name][0]
                self._leave(name, turn)
                self._taken[name] += 1
                turn.set_result(None)
                return

    def _leave(self, name: str, turn: "asyncio.Future[None]") -> None:
        """The name's next turn is after those of the others."""
        line = self._waiting.pop(name)
        line.remove(turn)
        if line:
            self._waiting[name] = line
