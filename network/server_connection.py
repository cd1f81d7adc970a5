"""One connection of a server: frames in, requests to the handler, replies out in order.

Reading pauses while too many requests wait for their reply or too much output waits for the peer, so one
connection costs a bounded amount of memory. What is wrong with one connection's bytes ends that connection
and nothing else.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from network.api_versions import ApiVersionsAnswers, ServerFeatures
from network.limits import ServerCounters, ServerLimits
from network.replies import ReplyQueue
from network.requests import Handler, RequestContext
from wire.codec import decode
from wire.errors import DecodeError
from wire.protocol.apis import ApiKey, api_name, api_version
from wire.protocol.frames import FrameDecoder
from wire.protocol.headers import RequestHeader, UnsupportedRequest, decode_request_header

log = logging.getLogger("network.server")

_NO_VERSION = (0, -1)


@dataclass(slots=True)
class ServerState:
    """What the connections of one server share."""

    listener_name: str
    handler: Handler
    supported: Mapping[int, tuple[int, int]]
    features: Callable[[], ServerFeatures]
    limits: ServerLimits
    api_versions: ApiVersionsAnswers
    counters: ServerCounters = field(default_factory=ServerCounters)
    connections: "set[ServerConnection]" = field(default_factory=set)
    connection_ids: "count[int]" = field(default_factory=lambda: count(1))
    stopping: bool = False


class ServerConnection(asyncio.Protocol):
    """`closed` is done once the transport is gone."""

    def __init__(self, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._state = state
        self._loop = loop
        self._decoder = FrameDecoder(state.limits.max_request_bytes)
        # Frames, each with the time of the loop's clock at which it came.
        self._backlog: deque[tuple[bytes, float]] = deque()
        self._replies = ReplyQueue(on_answer=self._advance, on_failure=self._fail)
        self._advancing = False
        self._ending = False  # no further request is served
        self._unsent_full = False
        self._reading_paused = False
        self._active_at = loop.time()
        self.closed: asyncio.Future[None] = loop.create_future()

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        state = self._state
        # uvloop's transports are no subclass of asyncio's, so this cannot be checked with isinstance.
        self._transport = cast(asyncio.Transport, transport)
        self._connection_id = next(state.connection_ids)
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._peer_host, self._peer_port = str(peer[0]), int(peer[1])
        state.connections.add(self)
        state.counters.open_connections += 1
        state.counters.accepted_connections += 1
        if state.stopping:  # accepted by the system just before
            self.abort()
            return
        if len(state.connections) > state.limits.max_connections:
            state.counters.refused_connections += 1
            self._refuse(f"more than {state.limits.max_connections} connections are open (`max.connections`)")
            return
        self._transport.set_write_buffer_limits(high=state.limits.max_unsent_bytes)
        if (connection := transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if self._ending:
            return
        self._active_at = self._loop.time()
        try:
            self._backlog.extend((frame, self._active_at) for frame in self._decoder.feed(data))
        except DecodeError as error:
            self._state.counters.bad_frames += 1
            self._refuse(str(error))
            return
        self._advance()

    def pause_writing(self) -> None:
        self._unsent_full = True
        self._pace_reading()

    def resume_writing(self) -> None:
        self._unsent_full = False
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if unfinished := self._decoder.buffered_bytes:
            log.debug("%s left %d bytes into a frame (%s)", self._peer_text(), unfinished, exc or "closed")
        self._end()
        self._state.connections.discard(self)
        self._state.counters.open_connections -= 1
        self.closed.set_result(None)

    # The server's side

    def is_idle_since(self, time_s: float) -> bool:
        """Whether nothing came since (of the loop's clock), and nobody waits for a reply."""
        return not self._replies and not self._backlog and self._active_at < time_s

    def drain(self) -> None:
        """Serve no further request; close when the replies under way have gone out."""
        self._ending = True
        self._backlog.clear()
        self._advance()

    def close(self) -> None:
        """Close when what was written so far has gone out."""
        self._end()
        self._transport.close()

    def abort(self) -> None:
        self._end()
        self._transport.abort()

    # From frame to reply

    def _advance(self) -> None:
        """Send what is ready, serve what may be served, until neither is possible.

        Not entered twice: a handler that answers at once calls back into here, and the loop outside goes on
        for it.
        """
        if self._advancing:
            return
        self._advancing = True
        try:
            self._send_ready()
            while self._may_serve():
                while self._may_serve():
                    self._serve(*self._backlog.popleft())
                self._send_ready()
        finally:
            self._advancing = False
        if self._ending and not self._replies:
            self._transport.close()
        self._pace_reading()

    def _may_serve(self) -> bool:
        return (
            bool(self._backlog)
            and not self._unsent_full
            and not self._ending
            and not self._has_enough_in_hand()
        )

    def _has_enough_in_hand(self) -> bool:
        limits, replies = self._state.limits, self._replies
        return len(replies) >= limits.max_in_flight_requests or replies.held_bytes > limits.max_unsent_bytes

    def _send_ready(self) -> None:
        frames = self._replies.take_ready()
        if len(frames) == 1 and frames[0]:
            self._transport.write(frames[0])
        elif frames:
            must_close = not frames[-1]
            self._transport.writelines(frames)
            if must_close:
                self.close()

    def _pace_reading(self) -> None:
        pause = bool(self._backlog) or self._unsent_full or self._has_enough_in_hand()
        if pause == self._reading_paused or self._transport.is_closing():
            return
        self._reading_paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _serve(self, frame: bytes, received_at_s: float) -> None:
        self._state.counters.requests += 1
        try:
            self._serve_request(frame, received_at_s)
        except DecodeError as error:
            self._state.counters.unparsable_requests += 1
            self._refuse(f"{_request_text(frame)} cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - the boundary of handlers; logged with its traceback
            self._fail(_request_text(frame), error)

    def _serve_request(self, frame: bytes, received_at_s: float) -> None:
        try:
            header, position = decode_request_header(frame)
        except UnsupportedRequest as error:
            self._serve_unsupported(error.header)
            return
        lowest, highest = self._state.supported.get(header.api_key, _NO_VERSION)
        if not lowest <= header.api_version <= highest:
            self._serve_unsupported(header)
            return
        api = api_version(header.api_key, header.api_version)
        # Bytes after the body are passed over, as Kafka's brokers do.
        request, _ = decode(api.request_class, frame, position)
        reply = self._replies.open(api, header.correlation_id)
        if api.api_key == ApiKey.API_VERSIONS:
            reply(self._state.api_versions.answer(request, self._state.features()))
            return
        context = RequestContext(
            self._connection_id,
            self._peer_host,
            self._state.listener_name,
            header,
            frame=frame,
            waited_ms=round((self._loop.time() - received_at_s) * 1000),
        )
        self._state.handler(context, request, reply)

    def _serve_unsupported(self, header: RequestHeader) -> None:
        self._state.counters.unsupported_requests += 1
        if header.api_key == ApiKey.API_VERSIONS:
            answer = self._state.api_versions.unsupported_version(self._state.features())
            self._replies.open(api_version(ApiKey.API_VERSIONS, 0), header.correlation_id)(answer)
            return
        self._refuse(f"{_header_text(header)} is not offered here")

    # Endings

    def _fail(self, request: str, error: Exception) -> None:
        """Our own fault: the traceback goes to the log, and the peer finds out by losing its connection."""
        self._state.counters.failed_requests += 1
        message = "closing the connection of %s: %s could not be answered"
        log.error(message, self._peer_text(), request, exc_info=error)
        self._send_ready()
        self.close()

    def _refuse(self, reason: str) -> None:
        log.warning("closing the connection of %s: %s", self._peer_text(), reason)
        self._send_ready()
        self.close()

    def _end(self) -> None:
        self._ending = True
        self._backlog.clear()
        self._replies.close()

    def _peer_text(self) -> str:
        return f"{self._peer_host}:{self._peer_port} on listener {self._state.listener_name}"


def _request_text(frame: bytes) -> str:
    try:
        return _header_text(decode_request_header(frame)[0])
    except DecodeError:
        return "a request"


def _header_text(header: RequestHeader) -> str:
    client = "without a client id" if header.client_id is None else f"of client {header.client_id!r}"
    return f"{api_name(header.api_key)} version {header.api_version} {client}"
