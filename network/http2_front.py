"""The listener in front of an HTTP/2 server that has too few limits of its own, such as gRPC's.

gRPC's C core accepts by itself, and answers refused streams in threads of its own: some tens of connections that went
on opening streams took both processors from the node's event loop, which then kept no timer of the quorum. So gRPC
listens on a socket in a folder that only this user may enter. The front accepts connections with the limits of the
listeners for Kafka's protocol, ends TLS, and passes frames on at a limited rate (network.http2, network.call_rate). It
stops reading from a client that is above the rate, until there are tokens again. Such a client loses nothing, and other
clients wait for their turn at most.

gRPC knows a connection by the name that the front's end of it is bound to; `identity_of` tells which client that is.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, cast

from kquorum.network.acceptance import accept_at, close_connections
from kquorum.network.bounded_log import BoundedLog
from kquorum.network.call_rate import Bucket, SharedBucket
from kquorum.network.connection_quota import CreationRate
from kquorum.network.deadlines import CHECKS_PER_PERIOD
from kquorum.network.http2 import (
    STREAM_COST,
    ClientFrames,
    Http2Violation,
    ServerFrames,
    Streams,
    goaway,
)
from kquorum.network.limits import GrpcLimits, ServerCounters, ServerLimits
from kquorum.network.listening import Listening, listening_sockets
from kquorum.network.output import LOST, Output
from kquorum.network.private_folder import SOCKET_NAME, PrivateFolder
from kquorum.network.security.listener_security import UNSECURED, ListenerSecurity
from kquorum.network.security.tls_reasons import PLAIN_LISTENER, TLS_HANDSHAKE, tls_reason
from kquorum.network.server_connection import GOODBYE_S
from kquorum.network.server_state import Claim, Lease, ListenerState, SharedLimits
from kquorum.network.turns import turns_of

_DEFAULT_LIMITS: Final = GrpcLimits()
# A full listener closes one that has been idle, or has asked nothing, for so long.
_EVICTED_AFTER_IDLE_MS: Final = 10_000
# The handshakes of those that are accepted at once take the loop at once.
_ACCEPTED_AT_ONCE_S: Final = 0.2
# What a client takes allows it a frame more, because it has to say so (WINDOW_UPDATE): who reads much does not wait.
_BYTES_FOR_A_FRAME: Final = 8_192
_MOST_EARNED: Final = 1_000
# What is read at once from a client, and from the server: a connection that is not read from holds no more, and both
# sides of a transport's buffer. uvloop's own measure, 256 KiB for each connection, would be half a GiB for all.
_CLIENT_BYTES: Final = 16_384
_SERVER_BYTES: Final = 32_768
# Waking a connection for each frame would cost more than the frame.
_LEAST_WAIT_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Identity:
    """The other end of a connection: the certificate that it showed, in DER, and its address."""

    certificate: bytes | None
    host: str
    port: int


@dataclass(slots=True, kw_only=True)
class _FrontState(ListenerState):
    """`names`: of each connection to the server behind, by the name that it is bound to."""

    grpc: GrpcLimits
    folder: PrivateFolder
    rate_of_all: SharedBucket
    open_calls: "_OpenCalls"
    names: dict[str, Identity] = field(default_factory=dict)
    # What was read is copied out of them before anything else is read. Views, because asyncio's TLS slices what it gets
    # from `get_buffer`, and a slice of a bytearray is a copy.
    from_client: memoryview = field(default_factory=lambda: memoryview(bytearray(_CLIENT_BYTES)))
    from_server: memoryview = field(default_factory=lambda: memoryview(bytearray(_SERVER_BYTES)))

    @property
    def server_path(self) -> str:
        return str(self.folder.path / SOCKET_NAME)


class _OpenCalls:
    """Of all connections, by client: each costs the server behind some memory for as long as it is open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._by_client: Counter[object] = Counter()

    def add(self, client: object, change: int) -> None:
        self._total += change
        self._by_client[client] += change
        if not self._by_client[client]:
            del self._by_client[client]

    def are_too_many(self, client: object) -> bool:
        """Whether there are as many as there may be, and the client has its part of them. One with less than its part
        is let in all the same, so there are twice as many at the very most."""
        part = self._most // max(len(self._by_client), 1)
        return self._total >= self._most and self._by_client[client] >= max(part, 1)


class Http2Front:
    """One listening address. The server behind listens at `server_path` before `start`."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        listener_name: str,
        limits: GrpcLimits = _DEFAULT_LIMITS,
        security: ListenerSecurity | None = None,
        shared: SharedLimits | None = None,
    ) -> None:
        """Belongs to the loop that runs. Raises OSError where no private folder can be made."""
        loop = asyncio.get_running_loop()
        self.host = host
        self.port = port
        self._state = _FrontState(
            listener_name=listener_name,
            limits=ServerLimits(
                max_connections=limits.max_connections,
                max_open_files=limits.max_open_files,
                max_connection_creation_rate=limits.max_connection_creation_rate,
                max_idle_ms=limits.max_idle_ms,
                max_unsent_bytes=_CLIENT_BYTES,
                write_timeout_ms=limits.write_timeout_ms,
                evicts_after_idle_ms=_EVICTED_AFTER_IDLE_MS,
            ),
            security=security or UNSECURED,
            shared=shared or SharedLimits(),
            warnings=BoundedLog(logging.getLogger("network.server"), time.monotonic),
            rate=CreationRate(limits.max_connection_creation_rate, _ACCEPTED_AT_ONCE_S),
            grpc=limits,
            folder=PrivateFolder(),
            open_calls=_OpenCalls(limits.max_open_streams),
            rate_of_all=SharedBucket(
                limits.max_calls_per_second * STREAM_COST,
                limits.max_calls_at_once * STREAM_COST,
                STREAM_COST,
                loop.call_later,
                loop.time,
            ),
        )
        self._loop = loop
        self._listening: Listening | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def server_path(self) -> str:
        """Where the server behind is to listen."""
        return self._state.server_path

    @property
    def bound_port(self) -> int:
        """The port in use, which port 0 leaves to the system. Only after `start`."""
        assert self._listening is not None, "the front does not listen"
        return self._listening.bound_port

    @property
    def security(self) -> ListenerSecurity:
        return self._state.security

    @property
    def counters(self) -> ServerCounters:
        return self._state.counters

    def identity_of(self, name: str) -> Identity | None:
        """By the path that the front's end of the connection is bound to; None for one that is not the front's."""
        return self._state.names.get(name)

    async def start(self) -> None:
        """Listen; an empty host means every address of the machine. Raises OSError."""
        loop, state = self._loop, self._state

        def make(lease: Lease, transport: asyncio.Transport, certificate: bytes | None) -> "_FrontConnection":
            return _FrontConnection(state, loop, lease, transport, certificate)

        sockets = await listening_sockets(loop, self.host, self.port)
        self._listening = accept_at(sockets, state, loop, make)
        self._check_deadlines()

    def stop_accepting(self) -> None:
        if not self._state.stopping and self._listening is not None:
            self._listening.close()
        self._state.stopping = True

    async def close(self) -> None:
        """After `stop_accepting`, when the server behind has stopped: what it has said last still goes out, for
        `drain_timeout_ms` at most."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await close_connections(self._state)
        self._state.folder.remove()

    def _check_deadlines(self) -> None:
        now_s = self._loop.time()
        for connection in tuple(self._state.connections):
            connection.check_deadlines(now_s)
        shortest_ms = min(self._state.grpc.handshake_timeout_ms, self._state.limits.write_timeout_ms)
        self._timer = self._loop.call_later(shortest_ms / 1000 / CHECKS_PER_PERIOD, self._check_deadlines)


class _FrontConnection(asyncio.BufferedProtocol):
    """A client's connection, and the one to the server behind, which begins once the client speaks HTTP/2."""

    def __init__(
        self,
        state: _FrontState,
        loop: asyncio.AbstractEventLoop,
        lease: Lease,
        transport: asyncio.Transport,
        certificate: bytes | None,
    ) -> None:
        limits = state.grpc
        self._state = state
        self._loop = loop
        self._lease = lease
        self._transport = transport
        self._identity = Identity(certificate, lease.peer.host, lease.peer.port)
        self._output = Output(transport, state.limits.max_unsent_bytes)
        # As one that waits for what all share (network.call_rate).
        self.client: object = certificate or lease.peer.host
        streams = self._streams = Streams(
            limits.max_concurrent_calls, partial(state.open_calls.are_too_many, self.client)
        )
        # Of the open streams, those that all clients' sum has.
        self._counted = 0
        self._from_client = ClientFrames(streams)
        self._from_server = ServerFrames(streams)
        self._opened_at_s = self._active_at_s = loop.time()
        self._rate = Bucket(
            limits.max_calls_per_second_of_connection * STREAM_COST,
            limits.max_calls_at_once * STREAM_COST,
            self._opened_at_s,
        )
        # What has come from the client, passed on as far as the position.
        self._incoming = b""
        self._position = 0
        # There is something in it that was not looked at, or not paid for.
        self._is_unread = False
        # What the server is to get first, until it is connected.
        self._beginning = b""
        # What has come from the server.
        self._outgoing: deque[bytes] = deque()
        self._server: _ServerSide | None = None
        self._name: str | None = None
        # Frames other than new streams that need no tokens.
        self._earned = 0.0
        # Tokens of those that all share, within its turn.
        self._granted = 0
        # Until there are tokens again, and the frames that were refused are read once more.
        self._is_waiting = False
        self._own_wait: asyncio.TimerHandle | None = None
        self._is_muted = False
        self._is_paused = False
        self._ending = False
        self._turns = turns_of(loop)
        self.closed: asyncio.Future[None] = loop.create_future()

    # asyncio's side

    def get_buffer(self, _size_hint: int) -> memoryview:
        return self._state.from_client

    def buffer_updated(self, size: int) -> None:
        if self._ending:
            return
        data = bytes(self._state.from_client[:size])
        self._active_at_s = self._loop.time()
        self._state.counters.received_bytes += len(data)
        if not self._from_client.has_begun and data.startswith(TLS_HANDSHAKE):
            self._refuse(PLAIN_LISTENER)
            return
        self._incoming = self._incoming[self._position :] + data if self._incoming else data
        self._position = 0
        self._is_unread = True
        self._advance()

    def eof_received(self) -> None:
        """The transport closes by itself."""

    def pause_writing(self) -> None:
        self._output.set_full(True)
        self._pace()

    def resume_writing(self) -> None:
        self._output.set_full(False)
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.closed.done():
            return
        if isinstance(exc, ssl.SSLError):
            self._warn(tls_reason(exc))
        self._end()
        self._outgoing.clear()
        self._count(0)
        if self._server is not None:
            self._server.abort()
            self._server = None
        self._output.end()
        self._transport = LOST
        if self._name is not None:
            del self._state.names[self._name]
        self._state.connections.discard(self)
        self._lease.give_back()
        self.closed.set_result(None)

    # The front's side

    def drain(self) -> None:
        """Close when the server behind has closed its end, and all that it said has gone out."""
        self._end()
        self._close_when_sent()

    def abort(self) -> None:
        self._end()
        self._output.abort()

    def check_pace(self, now_s: float) -> None:
        """A connection of the front holds little output, whatever its client reads."""

    def check_deadlines(self, now_s: float) -> None:
        limits = self._state.grpc
        if self._output.is_stuck(now_s, limits.write_timeout_ms / 1000):
            self._state.counters.slow_readers_closed += 1
            self._warn(f"it left {self._output.unsent_bytes} bytes of output waiting")
            self.abort()
        elif (
            not self._from_client.has_begun
            and not self._ending
            and now_s - self._opened_at_s > limits.handshake_timeout_ms / 1000
        ):
            self._state.counters.unfinished_frames_closed += 1
            self._warn(f"it did not begin to speak HTTP/2 within {limits.handshake_timeout_ms} ms")
            self.abort()

    def may_go_since(self) -> tuple[Claim, float] | None:
        if not self._streams.highest:
            return (Claim.NOTHING_ASKED, self._opened_at_s)
        return None if self._streams.open else (Claim.CLIENT, self._active_at_s)

    def make_room(self) -> None:
        reason = "it was idle for longest" if self._streams.highest else "it has asked nothing yet"
        self._warn(f"{reason}, and the listener is full")
        self.abort()

    # The other connection's side

    def handle_server_room(self) -> None:
        """It takes bytes: it was opened, or what waited for it has gone out."""
        self._advance()

    def handle_server_data(self, data: bytes) -> None:
        self._outgoing.append(data)
        self._advance()

    def handle_server_lost(self) -> None:
        self._end()
        self._close_when_sent()

    # In its turn (network.turns), so that a flood of bytes does not keep the loop's timers waiting

    def goes_first(self) -> bool:
        return False

    def take_turn(self, ends_s: float) -> bool:
        while self._has_to_send():
            self._send(self._outgoing.popleft())
            if self._turns.now_s() > ends_s:
                break
        self._pass_on()
        self._settle()
        return self._has_to_send() or self._may_pass_on()

    def _advance(self) -> None:
        if not (self._has_to_send() or self._may_pass_on()) or self._turns.ask(self):
            self._settle()

    def _settle(self) -> None:
        if self._ending:
            self._close_when_sent()
        self._pace()

    def _pace(self) -> None:
        """Read on or pause at either side, whichever is due."""
        if self._transport.is_closing():
            return
        server = self._server
        is_busy = self._is_waiting or self._is_unread or (server is not None and server.is_full)
        if is_busy != self._is_paused:
            self._is_paused = is_busy
            if is_busy:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        if server is not None:
            server.set_paused(is_paused=self._output.is_full or bool(self._outgoing))

    # From the server to the client

    def _has_to_send(self) -> bool:
        return bool(self._outgoing) and not self._output.is_full and not self._transport.is_closing()

    def _send(self, data: bytes) -> None:
        self._from_server.note(data)
        self._count(len(self._streams.open))
        self._earned = min(self._earned + len(data) / _BYTES_FOR_A_FRAME, _MOST_EARNED)
        self._active_at_s = self._loop.time()
        self._state.counters.sent_bytes += self._output.write([data])

    # From the client to the server

    def _may_pass_on(self) -> bool:
        if not self._is_unread or self._ending or self._is_waiting or self._transport.is_closing():
            return False
        return self._server is None or not self._server.is_full

    def _pass_on(self) -> None:
        if not self._may_pass_on():
            return
        self._is_unread = False
        opened, passed = self._streams.highest, bytearray()
        try:
            self._position = self._from_client.advance(self._incoming, self._position, self._pay, passed)
        except Http2Violation as violation:
            self._state.counters.bad_frames += 1
            self._turn_away(violation)
            return
        self._state.counters.requests += (self._streams.highest - opened + 1) // 2
        self._count(len(self._streams.open))
        self._is_unread = self._from_client.is_unpaid
        if self._server is not None:
            self._server.write(bytes(passed))
        else:
            self._beginning += passed
            if self._from_client.has_begun:
                self._connect()
        if not self._is_waiting:
            self._set_muted(is_muted=False)

    def _count(self, streams: int) -> None:
        if streams != self._counted:
            self._state.open_calls.add(self.client, streams - self._counted)
            self._counted = streams

    def _pay(self, cost: int) -> bool:
        if cost < STREAM_COST and self._earned >= cost:
            self._earned -= cost
            return True
        now_s = self._loop.time()
        if not self._rate.take(cost, now_s):
            self._is_waiting = True
            wait_s = max(self._rate.wait_s(cost), _LEAST_WAIT_S)
            self._own_wait = self._loop.call_later(wait_s, self._stop_waiting)
            self._set_muted(is_muted=True)
            return False
        at_once = min(cost, STREAM_COST)
        if self._granted >= at_once:
            self._granted -= at_once
            self._state.rate_of_all.charge(cost - at_once)
            return True
        if self._state.rate_of_all.take(cost, now_s):
            return True
        self._rate.give(cost)
        self._is_waiting = True
        self._state.rate_of_all.wait(self)
        self._set_muted(is_muted=True)
        return False

    def _stop_waiting(self) -> None:
        self._own_wait = None
        self._is_waiting = False
        self._advance()

    def go_on(self, granted: int) -> int:
        self._is_waiting = False
        self._granted = granted
        self._pass_on()
        left, self._granted = self._granted, 0
        self._pace()
        return left

    def _set_muted(self, *, is_muted: bool) -> None:
        if is_muted is not self._is_muted:
            self._is_muted = is_muted
            self._state.counters.muted_connections += 1 if is_muted else -1
            self._state.counters.mutings += is_muted

    # Beginning and end

    def _connect(self) -> None:
        state = self._state
        name = str(state.folder.path / str(self._lease.peer.connection_id))
        try:
            opened = _connection_named(name, state.server_path)
        except OSError as error:
            self._warn(
                f"gRPC's own socket {state.server_path} takes no connection: {error.strerror or error}"
            )
            self.abort()
            return
        self._name = name
        state.names[name] = self._identity
        self._server = _ServerSide(self, state.from_server, self._beginning)
        self._beginning = b""
        self._server.open(self._loop, opened)

    def _refuse(self, reason: str) -> None:
        self._warn(reason)
        self._end()
        self._output.close()
        if self._state.security.ssl_context is not None:
            self._loop.call_later(GOODBYE_S, self._output.abort)

    def _turn_away(self, violation: Http2Violation) -> None:
        """With the reason in HTTP/2's terms, where the client is not amid a frame."""
        is_between = not self._outgoing and self._from_server.is_between
        self._outgoing.clear()
        if self._server is not None and is_between and not self._transport.is_closing():
            self._output.write([goaway(self._streams.highest, violation.code)])
        self._refuse(str(violation))

    def _warn(self, reason: str) -> None:
        self._state.warnings.warning("closing the connection of %s: %s", self._lease, reason)

    def _end(self) -> None:
        """Nothing more is taken from the client."""
        self._ending = True
        self._is_unread = self._is_waiting = False
        self._incoming, self._position = b"", 0
        if self._own_wait is not None:
            self._own_wait.cancel()
        self._state.rate_of_all.leave(self)
        self._set_muted(is_muted=False)

    def _close_when_sent(self) -> None:
        # A server that stops may have said something that is still on its way here.
        may_say_more = self._server is not None and not self._server.is_lost
        if not self._outgoing and not may_say_more:
            self._output.close()


class _ServerSide(asyncio.BufferedProtocol):
    """The front's connection to the server behind."""

    def __init__(self, front: _FrontConnection, buffer: memoryview, first: bytes) -> None:
        self._front = front
        self._buffer = buffer
        # What is written before the connection has its transport.
        self._first = first
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[object] | None = None
        self._is_paused = False
        self._is_aborted = False
        # It takes nothing now: not open yet, or it leaves what was written waiting.
        self.is_full = True
        self.is_lost = False

    def open(self, loop: asyncio.AbstractEventLoop, connected: socket.socket) -> None:
        self._opening = loop.create_task(loop.create_unix_connection(lambda: self, sock=connected))

    def write(self, data: bytes) -> None:
        assert self._transport is not None, "it is full until it is open"
        if data:
            self._transport.write(data)

    def set_paused(self, *, is_paused: bool) -> None:
        if is_paused is self._is_paused or self._transport is None or self._transport.is_closing():
            return
        self._is_paused = is_paused
        if is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def abort(self) -> None:
        self._is_aborted = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's, so this cannot be checked with isinstance.
        self._transport = cast(asyncio.Transport, transport)
        if self._is_aborted:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=_CLIENT_BYTES)
        self._transport.write(self._first)
        self._first = b""
        self.is_full = False
        self._front.handle_server_room()

    def get_buffer(self, _size_hint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        self._front.handle_server_data(bytes(self._buffer[:size]))

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self._front.handle_server_room()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.is_full = self.is_lost = True
        # Its result refers to this protocol: without this only garbage collection would free both connections.
        self._opening = None
        self._front.handle_server_lost()


def _connection_named(name: str, server_path: str) -> socket.socket:
    """Neither call waits: the server's queue has room, or this raises BlockingIOError. The name stays the connection's
    when its file is gone. Raises OSError."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.bind(name)
        try:
            opened.connect(server_path)
        finally:
            Path(name).unlink()
    except BaseException:
        opened.close()
        raise
    return opened
