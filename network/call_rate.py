"""How much clients may ask for in a second, each and all together: who asks for more waits, and loses nothing.

Tokens come back with time. What all share goes to those who wait in turns, one step at a time: to one connection of
each client after the other. A client with many connections, or a connection with much to ask, takes no turn of another.
"""

from collections.abc import Callable
from typing import Final, Protocol

# How often those who wait get what has come back.
_TICK_S: Final = 0.01


class Bucket:
    """`burst` tokens at first and at most; times are of the caller's clock."""

    __slots__ = ("_burst", "_looked_at_s", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: float, now_s: float) -> None:
        self._per_second = per_second
        self._burst = self._tokens = burst
        self._looked_at_s = now_s

    def take(self, cost: float, now_s: float) -> bool:
        """Whether there was so much. What costs more than the burst is paid for afterwards: the next has to wait."""
        self.refill(now_s)
        if self._tokens < min(cost, self._burst):
            return False
        self._tokens -= cost
        return True

    def charge(self, cost: float) -> None:
        """Take it now, whether there is so much or not: what comes next has to wait."""
        self._tokens -= cost

    def give(self, tokens: float) -> None:
        self._tokens = min(self._burst, self._tokens + tokens)

    def refill(self, now_s: float) -> None:
        self.give((now_s - self._looked_at_s) * self._per_second)
        self._looked_at_s = now_s

    def wait_s(self, cost: float) -> float:
        """Until `take` gives so much, as of the last look."""
        return max(0.0, (min(cost, self._burst) - self._tokens) / self._per_second)


class Waiter(Protocol):
    """`client`: those of the same one share its turn."""

    client: object

    def go_on(self, granted: int) -> int:
        """How much of what is granted was not used. May ask to wait again."""
        ...


class SharedBucket:
    """`later` calls back after so many seconds; `step` is what one that waits gets at a time."""

    def __init__(
        self,
        per_second: float,
        burst: float,
        step: int,
        later: Callable[[float, Callable[[], None]], object],
        now_s: Callable[[], float],
    ) -> None:
        self._bucket = Bucket(per_second, burst, now_s())
        self._step = step
        self._later = later
        self._now_s = now_s
        # Clients, and of each its connections, in the order of their turns; dicts for their order.
        self._line: dict[object, dict[Waiter, None]] = {}
        self._is_serving = False
        self._is_armed = False

    def take(self, cost: int, now_s: float) -> bool:
        """Take `cost` if there is as much and no other connection waits for it; whether it was taken."""
        return not self._line and not self._is_serving and self._bucket.take(cost, now_s)

    def charge(self, cost: int) -> None:
        """For what costs more than a step: who had its turn with a step goes on, and all wait longer afterwards."""
        self._bucket.charge(cost)

    def wait(self, waiter: Waiter) -> None:
        self._line.setdefault(waiter.client, {})[waiter] = None
        self._arm()

    def leave(self, waiter: Waiter) -> None:
        of_client = self._line.get(waiter.client)
        if of_client is not None:
            of_client.pop(waiter, None)
            if not of_client:
                del self._line[waiter.client]

    def _arm(self) -> None:
        if not self._is_armed and self._line:
            self._is_armed = True
            self._later(_TICK_S, self._serve)

    def _serve(self) -> None:
        self._is_armed, self._is_serving = False, True
        now_s = self._now_s()
        try:
            while self._line and self._bucket.take(self._step, now_s):
                self._bucket.give(self._next().go_on(self._step))
        finally:
            self._is_serving = False
            self._arm()

    def _next(self) -> Waiter:
        client, of_client = next(iter(self._line.items()))
        del self._line[client]
        waiter = next(iter(of_client))
        del of_client[waiter]
        if of_client:
            self._line[client] = of_client
        return waiter
