"""When one connection is read from and served: its own limits, and its part in the node's budget."""

import asyncio
from collections.abc import Callable

from kquorum.network.output import LOST, Output
from kquorum.network.receive_buffer import ReceiveBuffer
from kquorum.network.replies import ReplyQueue, nothing
from kquorum.network.server_state import ServerState
from kquorum.network.turns import api_key_of


class FlowControl:
    """The connection as the budget's Holder; `on_room` is called when the budget has room again."""

    __slots__ = (
        "_budget",
        "_forgetting",
        "_is_forgotten",
        "_limits",
        "_loop",
        "_on_room",
        "_output",
        "_pending",
        "_received",
        "_replies",
        "_state",
        "_throttle_ends",
        "_transport",
        "address",
        "half_read_bytes",
        "held_bytes",
        "held_first",
        "held_requests",
        "is_muted",
        "is_paused",
        "unsent_bytes",
    )

    def __init__(
        self,
        state: ServerState,
        transport: asyncio.Transport,
        received: ReceiveBuffer,
        output: Output,
        replies: ReplyQueue,
        loop: asyncio.AbstractEventLoop,
        on_room: Callable[[], None],
        address: str,
    ) -> None:
        self._state = state
        self.address = address
        self._limits = state.limits
        self._budget = state.shared.budget
        self._transport = transport
        self._received = received
        self._output = output
        self._replies = replies
        self._loop = loop
        self._forgetting: asyncio.TimerHandle | None = None
        self._is_forgotten = False
        # When the connection may be read from again that exceeded a quota.
        self._throttle_ends: asyncio.TimerHandle | None = None
        self._on_room = on_room
        self.held_bytes = self.half_read_bytes = self.held_requests = self.held_first = 0
        self.unsent_bytes = 0
        # What the counter of pending requests has of this connection.
        self._pending = 0
        self.is_paused = False
        # Paused for want of room in the budget, not for anything of its own.
        self.is_muted = False

    def room_may_be_back(self) -> None:
        self._on_room()

    def frame_is_complete(self) -> None:
        self._budget.frame_is_complete(self)

    def may_serve(self) -> bool:
        """To be asked while a frame waits to be served."""
        if self._throttle_ends is not None or self._output.is_full or self._has_enough_in_hand():
            return False
        if self._limits.max_in_flight_by_api and self._has_enough_of_its_api():
            return False
        if self._replies.under_way != self.held_requests:
            self.account()
        return self._budget.may_serve(self, self._received.backlog[0][0])

    def account(self) -> None:
        """Tell the budget what the connection holds now."""
        if self._is_forgotten:
            return
        received, replies = self._received, self._replies
        half_read_bytes = received.half_read_bytes
        held_bytes = half_read_bytes + received.queued_bytes + replies.request_bytes + replies.held_bytes
        held_bytes += (unsent_bytes := self._output.unsent_bytes)
        requests = (replies.under_way, replies.unanswered_first - replies.parked_first)
        self._state.counters.pending_requests += replies.unanswered - self._pending
        self._pending = replies.unanswered
        has_changed = held_bytes != self.held_bytes or unsent_bytes != self.unsent_bytes
        if has_changed or requests != (self.held_requests, self.held_first):
            self._budget.hold(self, held_bytes, half_read_bytes, *requests, unsent_bytes)
        if self._forgetting is not None and not replies.unanswered:
            self._forget()

    def pace(self) -> None:
        """Read on or pause, whichever is due."""
        if self._transport.is_closing():
            return
        is_busy = bool(self._received.backlog) or self._output.is_full or self._has_enough_in_hand()
        is_busy = is_busy or self._throttle_ends is not None
        is_muted = not is_busy and not self._budget.may_read(self)
        if is_muted != self.is_muted:
            self._set_muted(is_muted)
        if (is_busy or is_muted) != self.is_paused:
            self._set_paused(is_busy or is_muted)

    @property
    def is_in_a_crowd(self) -> bool:
        """Whether others wait, and the output of this address takes much of the room."""
        return bool(self.unsent_bytes) and self._budget.is_crowded(self.address)

    @property
    def is_throttled(self) -> bool:
        """Neither read from nor served, as its client has exceeded a quota."""
        return self._throttle_ends is not None

    def throttle(self, throttle_ms: int) -> None:
        """Until so many ms have passed; a throttle that ends later already stays as it is (KIP-219)."""
        if throttle_ms <= 0 or self._transport is LOST:
            return
        ends_s = self._loop.time() + throttle_ms / 1000
        former = self._throttle_ends
        if former is not None:
            if former.when() >= ends_s:
                return
            former.cancel()
        else:
            self._state.counters.throttled_connections += 1
            self._state.counters.throttles += 1
        self._throttle_ends = self._loop.call_at(ends_s, self._end_throttle)

    def _end_throttle(self) -> None:
        self._forget_throttle()
        self._on_room()

    def _forget_throttle(self) -> None:
        if self._throttle_ends is not None:
            self._throttle_ends.cancel()
            self._throttle_ends = None
            self._state.counters.throttled_connections -= 1

    def end(self) -> None:
        """The connection is gone. The handler may still be at work on its requests: what they hold counts until they
        are answered, or overdue, lest clients that come and go fill the memory with them."""
        self._set_muted(False)
        self._forget_throttle()
        self._received.end()
        self._output.end()
        self._transport = LOST
        if self._replies.unanswered:
            self._forgetting = self._loop.call_later(self._limits.request_timeout_ms / 1000, self._forget)
            self.account()
        else:
            self._forget()

    def _forget(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._is_forgotten = True
        self._on_room = nothing
        self._replies.let_go()
        self._state.counters.pending_requests -= self._pending
        self._budget.forget(self)

    def _has_enough_in_hand(self) -> bool:
        limits, replies = self._limits, self._replies
        return len(replies) >= limits.max_in_flight_requests or replies.held_bytes > limits.max_unsent_bytes

    def _has_enough_of_its_api(self) -> bool:
        api_key = api_key_of(self._received.backlog[0][0])
        most = self._limits.max_in_flight_by_api.get(api_key)
        return (
            most is not None and len(self._replies) >= most and self._replies.unanswered_of(api_key) >= most
        )

    def _set_paused(self, is_paused: bool) -> None:
        self.is_paused = is_paused
        if is_paused:
            self._transport.pause_reading()
            self._received.pause(self._loop.time())
        else:
            self._received.resume(self._loop.time())
            self._transport.resume_reading()

    def _set_muted(self, is_muted: bool) -> None:
        counters = self._state.counters
        if is_muted:
            counters.mutings += 1
            counters.muted_connections += 1
        elif self.is_muted:
            counters.muted_connections -= 1
            self._budget.leave(self)
        self.is_muted = is_muted
