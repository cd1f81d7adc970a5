"""When a connection is closed because its peer, or a handler, is too late. Each method also counts what it finds.

`server_connection.py` asks several times within the shortest deadline, and closes the connection.
"""

from kquorum.network.authentication import Authentication
from kquorum.network.output import Output
from kquorum.network.receive_buffer import ReceiveBuffer
from kquorum.network.replies import PendingReply, ReplyQueue
from kquorum.network.server_state import ServerState

# How often the deadlines are looked at within the shortest of them.
CHECKS_PER_PERIOD = 4


class Deadlines:
    """The deadlines of one connection, by the clock of the event loop. `active_at_s` is when bytes last came or
    went."""

    __slots__ = ("_state", "active_at_s", "opened_at_s")

    def __init__(self, state: ServerState, now_s: float) -> None:
        self._state = state
        self.opened_at_s = self.active_at_s = now_s

    def stuck_output(self, output: Output, now_s: float) -> str | None:
        """Why to close the connection of a slow reader, for the log; None if its peer reads fast enough."""
        timeout_ms = self._state.limits.write_timeout_ms
        if not output.is_stuck(now_s, timeout_ms / 1000):
            return None
        self._state.counters.slow_readers_closed += 1
        return f"it left {output.unsent_bytes} bytes of output waiting for {timeout_ms} ms"

    def slow_in_a_crowd(self, output: Output, now_s: float) -> str | None:
        """The same, while others wait for room that the output takes."""
        if not output.is_too_slow_for_a_crowd(now_s):
            return None
        self._state.counters.slow_readers_closed += 1
        return f"it reads its {output.unsent_bytes} bytes of output slowly, and others wait for room"

    def late_peer(
        self, now_s: float, received: ReceiveBuffer | None, authentication: Authentication, *, has_asked: bool
    ) -> str | None:
        """Why to close the connection of a peer that sends too slowly; None if nothing is wrong.

        `received` is None while the server does not read: then the peer is not to blame. `has_asked`: a whole request
        has arrived. A listener with `evicts_after_idle_ms` closes connections that send none soon, so that they do not
        fill it up.
        """
        if received is not None and received.is_overdue(now_s):
            self._state.counters.unfinished_frames_closed += 1
            return f"it sent {received.half_read_bytes} bytes of a frame and did not complete it in time"
        timeout_ms = self._state.security.handshake_timeout_ms
        if authentication.principal is None and now_s - self.opened_at_s > timeout_ms / 1000:
            self._state.counters.unauthenticated_connections_closed += 1
            return f"it did not authenticate within {timeout_ms} ms"
        if self._state.limits.evicts_after_idle_ms is None or has_asked or received is None:
            return None
        if now_s - self.opened_at_s > timeout_ms / 1000:
            self._state.counters.unfinished_frames_closed += 1
            return f"it sent no whole request within {timeout_ms} ms"
        return None

    def unanswered(self, replies: ReplyQueue, now_s: float) -> PendingReply | None:
        """A request that the handler has left unanswered for too long."""
        late = replies.first_since(now_s - self._state.limits.request_timeout_ms / 1000)
        self._state.counters.unanswered_requests_closed += late is not None
        return late

    def is_idle(self, now_s: float) -> bool:
        is_idle = self.active_at_s < now_s - self._state.limits.max_idle_ms / 1000
        self._state.counters.idle_connections_closed += is_idle
        return is_idle


def check_period_s(state: ServerState) -> float:
    limits = state.limits
    shortest_ms = min(
        limits.max_idle_ms, limits.frame_timeout_ms, limits.write_timeout_ms, limits.request_timeout_ms
    )
    if state.security.new_session is not None or limits.evicts_after_idle_ms is not None:
        shortest_ms = min(shortest_ms, state.security.handshake_timeout_ms)
    return shortest_ms / 1000 / CHECKS_PER_PERIOD
