"""Which connection is served next, and for how long: one turn for all connections of an event loop.

An event loop calls every socket that is ready before it looks at its timers again. Were each connection served for some
milliseconds when its bytes come, a hundred of them would keep the node's own timers waiting for a second: elections,
heartbeats, sessions. So all connections of a loop, whichever listener they came by, share a turn in each iteration.
Those that find it used up wait in line, and go on one after the other in the next iterations.

What keeps the quorum and the sessions of brokers alive goes first. Those requests are short, and a peer without the
permission is refused at once; so they go first from every peer, with half of the turn at most while others wait.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from kquorum.wire.protocol.api_keys import ApiKey

# Of all connections together, in one iteration of the loop. The last request may exceed it. What an iteration leaves
# is left to the next ones: only a turn that is used up is renewed, so that a quiet node needs no callback for it.
TURN_S: Final = 0.01
# Of one connection, while others wait: many short requests, or one that takes long.
_PART_S: Final = 0.002
# What is longer than this is not served before others, whatever it asks.
_LONGEST_FIRST_BYTES: Final = 4_096
_API_KEY_BYTES: Final = 2
_FIRST: Final = frozenset(
    api_key.to_bytes(_API_KEY_BYTES, "big")
    for api_key in (
        ApiKey.API_VERSIONS,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.VOTE,
    )
)


def goes_first(frame: bytes) -> bool:
    """Whether the request is one of those that keep the quorum and its brokers together."""
    return frame[:_API_KEY_BYTES] in _FIRST and len(frame) < _LONGEST_FIRST_BYTES


def api_key_of(frame: bytes) -> int:
    return int.from_bytes(frame[:_API_KEY_BYTES], "big", signed=True)


class Served(Protocol):
    """A connection that has something to be served."""

    def goes_first(self) -> bool: ...

    def take_turn(self, ends_s: float) -> bool:
        """Serve one request at least, and no more once it is `ends_s`; whether there is more to serve."""
        ...


class Work:
    """A single piece of work that takes its turn as a connection does."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def goes_first(self) -> bool:
        return False

    def take_turn(self, _ends_s: float) -> bool:
        self._work()
        return False


class Turns:
    """`soon` calls back in the next iteration of the loop; times are of `now_s`."""

    def __init__(
        self, soon: Callable[[Callable[[], None]], object], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._soon = soon
        self.now_s = now_s
        # The connections that wait for their turn; dicts for their order.
        self._first: dict[Served, None] = {}
        self._others: dict[Served, None] = {}
        self._left_s = TURN_S
        self._is_serving = False
        self._is_renewing = False

    @property
    def waiting(self) -> int:
        return len(self._first) + len(self._others)

    def ask(self, connection: Served) -> bool:
        """Serve the connection now, if there is time left in this iteration, or else when its turn comes; whether it
        waits for that."""
        if self._is_serving or self._left_s <= 0 or self._first or self._others:
            self._queue(connection)
            if not self._is_serving:
                self._serve()
            return connection in self._first or connection in self._others
        # No other connection waits, as nearly always.
        self._is_serving, has_more = True, False
        began_s = self.now_s()
        try:
            has_more = connection.take_turn(began_s + self._left_s)
        finally:
            self._is_serving = False
            self._left_s -= self.now_s() - began_s
            if has_more:
                self._queue(connection)
            if has_more or self._first or self._others or self._left_s <= 0:
                self._serve()
        return has_more

    def _queue(self, connection: Served) -> None:
        if connection.goes_first():
            self._others.pop(connection, None)
            self._first[connection] = None
        elif connection not in self._first:
            self._others[connection] = None

    def _serve(self) -> None:
        if self._left_s > 0 and self.waiting:
            self._is_serving = True
            began_s = now_s = self.now_s()
            ends_s = began_s + self._left_s
            try:
                while self.waiting and now_s < ends_s:
                    connection = self._next(is_late=now_s - began_s > self._left_s / 2)
                    most_s = ends_s - now_s if not self.waiting else _PART_S
                    if connection.take_turn(min(ends_s, now_s + most_s)):
                        self._queue(connection)
                    now_s = self.now_s()
            finally:
                self._is_serving = False
                self._left_s = ends_s - now_s
                self._renew_soon()
        else:
            self._renew_soon()

    def _next(self, *, is_late: bool) -> Served:
        line = self._others if self._others and (is_late or not self._first) else self._first
        connection = next(iter(line))
        del line[connection]
        return connection

    def _renew_soon(self) -> None:
        if (self._left_s <= 0 or self.waiting) and not self._is_renewing:
            self._is_renewing = True
            self._soon(self._renew)

    def _renew(self) -> None:
        """Once in an iteration at most, so that timers and sockets have theirs between two turns."""
        self._is_renewing = False
        self._left_s = TURN_S
        self._serve()


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """The same for all listeners of a loop, of both roles of a node."""
    turns = _of_loops.get(loop)
    if turns is None:
        turns = _of_loops[loop] = Turns(_soon)
    return turns


def _soon(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(call)
