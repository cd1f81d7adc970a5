"""One connection of a server: frames in, requests to the handler, replies out in order.

Reading pauses while too many requests wait for their reply, too much output waits for the peer, or the node has no
room (`network.flow_control`), so connections cost a bounded amount of memory, each and together. What is wrong with one
connection's bytes ends that connection and nothing else.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from kquorum.network.authentication import Authentication
from kquorum.network.deadlines import Deadlines
from kquorum.network.flow_control import FlowControl
from kquorum.network.long_requests import Place
from kquorum.network.output import Output
from kquorum.network.receive_buffer import ReceiveBuffer
from kquorum.network.replies import ReplyQueue
from kquorum.network.security.sasl_session import SaslAnswer
from kquorum.network.security.tls_reasons import PLAIN_LISTENER, TLS_HANDSHAKE, tls_reason
from kquorum.network.server_state import Claim, Lease, ServerState
from kquorum.network.serving import Reading, Refused, RequestServing, request_text
from kquorum.network.turns import goes_first, turns_of
from kquorum.wire.errors import DecodeError
from kquorum.wire.protocol.apis import api_name
from kquorum.wire.protocol.warm_up import cold_version, warm_version

log = logging.getLogger("network.server")

# So many bytes of replies are sent before more are made: the peer may not take them.
_BURST_BYTES = 65_536


# The TLS of uvloop goes on reading until the peer says goodbye too, two seconds at most. A peer that was refused gets
# less: it can send a gigabyte in that time, and the node would have to decrypt it all.
GOODBYE_S = 0.02


class ServerConnection(asyncio.Protocol):
    """`closed` is done once the transport is gone."""

    def __init__(
        self,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
        lease: Lease,
        transport: asyncio.Transport,
        certificate: bytes | None,
    ) -> None:
        limits = state.limits
        self._state = state
        self._loop = loop
        self._lease = lease
        self._received = ReceiveBuffer(limits.max_request_bytes, limits.frame_timeout_ms, limits.max_bytes)
        self._output = Output(transport, limits.max_unsent_bytes)
        self._replies = ReplyQueue(on_answer=self._advance, on_failure=self._fail)
        self._authentication = Authentication(state.security, certificate)
        self._deadlines = Deadlines(state, loop.time())
        self._flow_control = FlowControl(
            state,
            transport,
            self._received,
            self._output,
            self._replies,
            loop,
            self._advance,
            lease.peer.host,
        )
        self._serving = RequestServing(
            state,
            self._replies,
            lease.peer,
            self._authentication,
            loop.time,
            self._answer_sasl,
            self._flow_control.throttle,
        )
        self._advancing = False
        self._has_asked = False  # a whole request has come
        self._is_reading = False  # a long request or the classes of an old version, in another thread
        # A long request that was read, and waits for the connection's turn.
        self._was_read: Callable[[], None] | None = None
        # Of the long requests without an answer, those that a handler has among them.
        self._places: set[Place] = set()
        self._ending = False  # no further request is served
        self._turns = turns_of(loop)
        self.closed: asyncio.Future[None] = loop.create_future()
        if self._authentication.principal is None:
            bound = min(limits.max_request_bytes, state.security.max_unauthenticated_bytes)
            self._received.set_max_frame_bytes(bound)

    # asyncio's side

    def data_received(self, data: bytes) -> None:
        if self._ending:
            return
        now_s = self._deadlines.active_at_s = self._loop.time()
        self._state.counters.received_bytes += len(data)
        try:
            is_complete = self._received.feed(data, now_s)
        except DecodeError as error:
            self._state.counters.bad_frames += 1
            self._refuse(PLAIN_LISTENER if data.startswith(TLS_HANDSHAKE) else str(error))
            return
        if is_complete:
            self._has_asked = True
            self._flow_control.frame_is_complete()
        self._advance()

    def pause_writing(self) -> None:
        self._output.set_full(True)
        self._flow_control.pace()

    def resume_writing(self) -> None:
        self._output.set_full(False)
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.closed.done():
            return
        if isinstance(exc, ssl.SSLError):
            self._warn_of_closing(tls_reason(exc))
        if unfinished := self._received.half_read_bytes:
            log.debug("%s left %d bytes into a frame (%s)", self._lease, unfinished, exc or "closed")
        self._end()
        self._flow_control.end()
        self._serving.end()
        if self._places:
            self._loop.call_later(self._state.limits.request_timeout_ms / 1000, self._leave_all)
        self._state.connections.discard(self)
        self._lease.give_back()
        self.closed.set_result(None)

    # The server's side

    def drain(self) -> None:
        """Serve no further request; close when the replies under way have gone out."""
        self._ending = True
        self._received.clear()
        self._advance()

    def close(self) -> None:
        """Close when what was written so far has gone out."""
        self._end()
        self._output.close()

    def abort(self) -> None:
        self._end()
        self._output.abort()

    def check_deadlines(self, now_s: float) -> None:
        """Called several times within the shortest of the deadlines."""
        deadlines = self._deadlines
        if reason := deadlines.stuck_output(self._output, now_s):
            self._warn_of_closing(reason)
            self.abort()
        elif self._ending:
            return
        elif reason := deadlines.late_peer(
            now_s,
            None if self._flow_control.is_paused else self._received,
            self._authentication,
            has_asked=self._has_asked,
        ):
            self._refuse(reason)
        elif (late := deadlines.unanswered(self._replies, now_s)) is not None:
            log.error("closing the connection of %s: %s had no answer in time", self._lease, late)
            self.close()
        elif self.idle_since_s() is not None and deadlines.is_idle(now_s):
            self.close()
        else:
            self._flow_control.account()

    def check_pace(self, now_s: float) -> None:
        """Called every second. Others that wait for room do not wait until a slow reader is stuck."""
        if not self._flow_control.is_in_a_crowd:
            return
        if reason := self._deadlines.slow_in_a_crowd(self._output, now_s):
            self._warn_of_closing(reason)
            self.abort()

    def idle_since_s(self) -> float | None:
        """A throttled connection is idle, whatever it has sent: the end of its client would not be noticed."""
        flow_control = self._flow_control
        has_sent = bool(self._received.backlog) and not flow_control.is_throttled
        is_busy = self._ending or self._replies or has_sent or flow_control.is_muted
        return None if is_busy else self._deadlines.active_at_s

    def may_go_since(self) -> tuple[Claim, float] | None:
        claim = self._serving.claim
        if claim is Claim.NOTHING_ASKED:
            return None if self._ending else (claim, self._deadlines.opened_at_s)
        since_s = self.idle_since_s()
        return None if since_s is None else (claim, since_s)

    def make_room(self) -> None:
        has_asked_nothing = self._serving.claim is Claim.NOTHING_ASKED
        reason = "it has asked nothing yet" if has_asked_nothing else "it was idle for longest"
        self._warn_of_closing(f"{reason}, and the listener is full")
        self.abort()

    # From frame to reply

    def _advance(self) -> None:
        """Send what is ready, and serve what may be served, now or when the connection's turn comes.

        Not entered twice: a handler that answers at once calls back into here, and the turn outside goes on
        for it.
        """
        if self._advancing:
            return
        self._advancing = True
        try:
            self._send_ready()
        finally:
            self._advancing = False
        if not (self._received.backlog or self._was_read) or self._turns.ask(self):
            self._settle()

    def _settle(self) -> None:
        if self._ending and not self._replies:
            self._output.close()
        self._flow_control.account()
        self._flow_control.pace()

    # In its turn (network.turns)

    def goes_first(self) -> bool:
        return (
            self._was_read is None
            and bool(self._received.backlog)
            and goes_first(self._received.backlog[0][0])
        )

    def take_turn(self, ends_s: float) -> bool:
        self._advancing = True
        try:
            if self._was_read is not None:
                go_on, self._was_read = self._was_read, None
                go_on()
                self._send_ready()
            else:
                self._serve_backlog(ends_s)
        finally:
            self._advancing = False
        self._settle()
        return self._has_to_serve()

    def _has_to_serve(self) -> bool:
        return self._was_read is not None or (bool(self._received.backlog) and self._may_serve())

    def _serve_backlog(self, ends_s: float) -> None:
        backlog, now_s, is_over = self._received.backlog, self._turns.now_s, False
        is_first = self.goes_first()
        while not is_over and backlog and self._may_serve():
            while True:
                if (cold := cold_version(backlog[0][0])) is not None and self._serving.reads(*cold):
                    self._warm(*cold)
                    break
                self._serve(*self._received.pop())
                # What is behind a request that goes first may not go first with it.
                is_over = now_s() > ends_s or (is_first and bool(backlog) and not self.goes_first())
                if is_over or self._replies.held_bytes > _BURST_BYTES:
                    break
                if not (backlog and self._may_serve()):
                    break
            self._send_ready()

    def _may_serve(self) -> bool:
        return not self._ending and not self._is_reading and self._flow_control.may_serve()

    def _serve(self, frame: bytes, received_at_s: float) -> None:
        self._state.counters.requests += 1
        try:
            reading = self._serving.serve(frame, received_at_s)
        except Exception as error:  # noqa: BLE001 - the boundary of handlers; logged with its traceback
            self._give_up(frame, error)
            return
        if reading is not None:
            self._is_reading = True
            begin = partial(self._begin_reading, frame, reading)
            place = self._state.shared.long_requests.ask(begin)
            self._places.add(place)
            reading.reply.when_answered = partial(self._leave, place)

    def _leave(self, place: Place) -> None:
        self._places.discard(place)
        place.leave()

    def _leave_all(self) -> None:
        """What the handler has not answered for so long after the client has gone holds up no other."""
        for place in tuple(self._places):
            self._leave(place)

    def _begin_reading(self, frame: bytes, reading: Reading, place: Place) -> None:
        """When it is the request's turn to be read."""
        if self._replies.closed:
            self._is_reading = False
            reading.reply(None)
            return
        read = self._state.reader.begin(reading.read)
        read.add_done_callback(partial(self._has_read, frame, reading, place))

    def _warm(self, api_key: int, version: int) -> None:
        """The first request in an old version waits, and what is behind it, until the version is imported aside."""
        self._is_reading = True
        warming = self._state.importer.begin(partial(warm_version, api_key, version))
        warming.add_done_callback(partial(self._has_warmed, api_key, version))

    def _has_warmed(self, api_key: int, version: int, warming: "asyncio.Future[None]") -> None:
        self._is_reading = False
        error = asyncio.CancelledError() if warming.cancelled() else warming.exception()
        if self._replies.closed or isinstance(error, asyncio.CancelledError):
            return
        if error is None:
            self._advance()
        elif isinstance(error, Exception):
            self._fail(f"{api_name(api_key)} version {version}", error)

    def _has_read(self, frame: bytes, reading: Reading, place: Place, read: "asyncio.Future[Any]") -> None:
        """In the loop again, with the long request. It takes its turn: others may have been read as well."""
        if not read.cancelled() and read.exception() is None:
            place.has(read.result()[1])
        if self._replies.closed or read.cancelled():
            self._drop(frame, reading, read)
            return
        self._was_read = partial(self._go_on, frame, reading, read)
        self._turns.ask(self)

    def _go_on(self, frame: bytes, reading: Reading, read: "asyncio.Future[Any]") -> None:
        if self._replies.closed:
            self._drop(frame, reading, read)
            return
        self._is_reading = False
        try:
            reading.go_on(*read.result())
        except Exception as caught:  # noqa: BLE001 - the boundary of handlers; logged with its traceback
            self._give_up(frame, caught)
            if reading.reply.frame is None:
                reading.reply(None)

    def _drop(self, frame: bytes, reading: Reading, read: "asyncio.Future[Any]") -> None:
        """The client is gone. Bytes that could not be read are its own affair; another error is ours, and is logged."""
        self._is_reading = False
        error = None if read.cancelled() else read.exception()
        if isinstance(error, Exception) and not isinstance(error, DecodeError | Refused):
            self._fail(request_text(frame), error)
        reading.reply(None)

    def _give_up(self, frame: bytes, error: Exception) -> None:
        if isinstance(error, DecodeError):
            self._state.counters.unparsable_requests += 1
            self._refuse(f"{request_text(frame)} cannot be read: {error}")
        elif isinstance(error, Refused):
            self._refuse(str(error))
        else:
            self._fail(request_text(frame), error)

    def _send_ready(self) -> None:
        pieces, must_close = self._replies.take_ready()
        if not pieces and not must_close:
            return
        self._deadlines.active_at_s = self._loop.time()
        size = self._output.write(pieces)
        self._state.counters.sent_bytes += size
        if size > _BURST_BYTES:
            # Right now: the next long answer asks for room in the same turn.
            self._output.look()
        if must_close:
            self.close()

    def _answer_sasl(self, answer: SaslAnswer, reply: Callable[[], None]) -> None:
        if answer.reason:
            self._state.warnings.warning("authenticating %s: %s", self._lease, answer.reason)
        if answer.is_failure:
            self._state.counters.failed_authentications += 1
            self._ending = True
            self._received.clear()
            delay_s = self._state.security.failed_authentication_delay_ms / 1000
            self._loop.call_later(delay_s, reply)
            return
        if answer.principal is not None:
            self._state.counters.successful_authentications += 1
            self._received.set_max_frame_bytes(self._state.limits.max_request_bytes)
        reply()

    # Endings

    def _fail(self, request: str, error: Exception) -> None:
        """Our own fault: the traceback goes to the log, and the peer finds out by losing its connection."""
        self._state.counters.failed_requests += 1
        message = "closing the connection of %s: %s could not be answered"
        log.error(message, self._lease, request, exc_info=error)
        self._send_ready()
        self.close()

    def _refuse(self, reason: str) -> None:
        self._warn_of_closing(reason)
        self._send_ready()
        self.close()
        if self._state.security.ssl_context is not None:
            self._loop.call_later(GOODBYE_S, self._output.abort)

    def _warn_of_closing(self, reason: str) -> None:
        self._state.warnings.warning("closing the connection of %s: %s", self._lease, reason)

    def _end(self) -> None:
        self._ending = True
        self._received.clear()
        self._replies.close()
