"""How much memory the connections of a node may hold together before it stops reading from them.

While there is room, every connection is read from. Without room, only connections that hold no more than each is
guaranteed; the others wait, first come, first served. Beyond twice the budget (many connections with little each,
or with large answers that they do not take) all wait. What was read is always served: only that gives room back.
Only half-read frames might wait for each other for good. So where there would be room without them, one connection is
favoured and read from until its frame is complete: a frame larger than the budget gets through, and frames that fill
the budget together get through one by one.

A request that is served may hold many times the bytes of its frame. So beyond twice the requests of the budget no other
is served, and beyond twice its bytes one after the other, whatever each connection is guaranteed. What keeps the quorum
and its brokers together (`network.turns.goes_first`) neither waits for that nor counts: it is short, and thousands of
followers may each wait for the log to grow.

Kafka reserves the announced size of a frame before reading it. Here only bytes that came count, or a peer could take
the whole budget with the four bytes that announce a frame.
"""

from collections.abc import Callable
from typing import Protocol

from kquorum.network.limits import BudgetLimits
from kquorum.network.turns import goes_first

# About what one connection can bring in one turn of the loop.
_CHUNK_BYTES = 262_144


class Holder(Protocol):
    """A connection; the numbers are the budget's to set."""

    held_bytes: int
    half_read_bytes: int
    held_requests: int
    # Of the requests, those that go first.
    held_first: int

    def room_may_be_back(self) -> None:
        """Go on if there is room, else ask to wait again."""
        ...


class RequestBudget:
    """Shared by the listeners of a node. `soon` calls back in the next turn of the loop."""

    def __init__(self, limits: BudgetLimits, soon: Callable[[Callable[[], None]], object]) -> None:
        self._limits = limits
        self._soon = soon
        self._favoured: Holder | None = None
        self._is_waking = False
        # The waiting connections, by what they wait for; dicts for their order.
        self._for_bytes: dict[Holder, None] = {}
        self._for_twice: dict[Holder, None] = {}
        self._for_requests: dict[Holder, None] = {}
        self._for_twice_requests: dict[Holder, None] = {}
        self.held_bytes = 0
        self.half_read_bytes = 0
        self.held_requests = 0
        self.held_first = 0

    @property
    def waiting(self) -> int:
        lines = (self._for_bytes, self._for_twice, self._for_requests, self._for_twice_requests)
        return sum(map(len, lines))

    def hold(
        self,
        holder: Holder,
        held_bytes: int,
        half_read_bytes: int,
        held_requests: int,
        held_first: int = 0,
    ) -> None:
        """Tell what a connection holds now; the bytes of a half-read frame are among all its bytes, the requests that
        go first among all its requests."""
        bytes_more, requests_more = held_bytes - holder.held_bytes, held_requests - holder.held_requests
        self.held_bytes += bytes_more
        self.half_read_bytes += half_read_bytes - holder.half_read_bytes
        self.held_requests += requests_more
        first_more = held_first - holder.held_first
        self.held_first += first_more
        holder.held_bytes, holder.half_read_bytes = held_bytes, half_read_bytes
        holder.held_requests, holder.held_first = held_requests, held_first
        if bytes_more < 0 or requests_more < 0 or requests_more < first_more:
            self._wake_soon()

    def may_read(self, holder: Holder) -> bool:
        """If not, the holder waits and hears of it when it may."""
        held, limits = self.held_bytes, self._limits
        if held < limits.max_bytes or holder is self._favoured:
            return True
        if holder.held_bytes > limits.guaranteed_bytes:
            self._for_bytes[holder] = None
        elif held < 2 * limits.max_bytes:
            return True
        else:
            self._for_twice[holder] = None
        if self._favoured is None:
            self._wake_soon()
        return False

    def may_serve(self, holder: Holder, frame: bytes) -> bool:
        """If not, the holder waits and hears of it when it may. `frame` is the request."""
        limits = self._limits
        is_full = self.held_requests >= 2 * limits.max_requests or self.held_bytes >= 2 * limits.max_bytes
        if is_full and not self._room_for_requests() and not goes_first(frame):
            self._for_twice_requests[holder] = None
            return False
        if self.held_requests < limits.max_requests or holder.held_requests < limits.guaranteed_requests:
            return True
        self._for_requests[holder] = None
        return False

    def _room_for_requests(self) -> int:
        """How many more may be served, whatever their connections are guaranteed. One may always be: only answers
        make room."""
        limits, served = self._limits, self.held_requests - self.held_first
        most = 2 * limits.max_requests if self.held_bytes < 2 * limits.max_bytes else 1
        return max(0, most - served)

    def leave(self, holder: Holder) -> None:
        """Wait for bytes no more."""
        self._for_bytes.pop(holder, None)
        self._for_twice.pop(holder, None)

    def frame_is_complete(self, holder: Holder) -> None:
        if holder is self._favoured:
            self._favoured = None
            self._wake_soon()

    def forget(self, holder: Holder) -> None:
        """The connection is gone."""
        self.hold(holder, 0, 0, 0)
        for line in (self._for_bytes, self._for_twice, self._for_requests, self._for_twice_requests):
            line.pop(holder, None)
        self.frame_is_complete(holder)

    def _wake_soon(self) -> None:
        if not self._is_waking and self.waiting:
            self._is_waking = True
            self._soon(self._wake)

    def _wake(self) -> None:
        """No more at once than there is room for, should each of them bring a chunk; the rest in the next turn."""
        self._is_waking = False
        limits = self._limits
        self._wake_first(self._for_twice_requests, self._room_for_requests())
        self._wake_first(self._for_requests, limits.max_requests - self.held_requests)
        self._wake_first(self._for_bytes, _chunks(limits.max_bytes - self.held_bytes))
        self._wake_first(self._for_twice, _chunks(2 * limits.max_bytes - self.held_bytes))
        if self._favoured is None and self.held_bytes - self.half_read_bytes < limits.max_bytes:
            self._favour_one()
        if self._has_room_for_more():
            self._wake_soon()

    def _wake_first(self, line: dict[Holder, None], most: int) -> None:
        for holder in tuple(line)[: max(0, most)]:
            if line.pop(holder, self) is None:
                holder.room_may_be_back()

    def _favour_one(self) -> None:
        for line in (self._for_bytes, self._for_twice):
            for holder in line:
                if holder.half_read_bytes:
                    self._favoured = holder
                    del line[holder]
                    holder.room_may_be_back()
                    return

    def _has_room_for_more(self) -> bool:
        limits = self._limits
        return bool(
            (self._for_twice_requests and self._room_for_requests())
            or (self._for_requests and self.held_requests < limits.max_requests)
            or (self._for_bytes and self.held_bytes < limits.max_bytes)
            or (self._for_twice and self.held_bytes < 2 * limits.max_bytes)
        )


def _chunks(room_bytes: int) -> int:
    return 0 if room_bytes <= 0 else max(1, room_bytes // _CHUNK_BYTES)
