"""From an accepted socket to an open connection: the limits first, then TLS where the listener has it."""

import asyncio
import contextlib
import logging
import socket
import ssl
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast
from weakref import WeakKeyDictionary

from kquorum.network.connection_quota import Refusal, TooFast
from kquorum.network.listening import Listening
from kquorum.network.security.errors import UnnamedCertificate
from kquorum.network.security.handshake import CONNECTION
from kquorum.network.security.tls_reasons import tls_reason
from kquorum.network.server_state import Claim, Lease, ListenerState, Member, Peer
from kquorum.wire.addresses import normal_address

log = logging.getLogger("network.server")

# How long a peer may take for what was still to be sent, and for its close_notify of TLS: many never do, and
# until then their connections count for the limits.
_SHUTDOWN_TIMEOUT_S = 2.0
# Of all listeners of a loop, in one of its iterations. Each takes a millisecond or two, in the iterations after it.
HANDSHAKES_AT_ONCE: Final = 8


class Connection(Member, Protocol):
    """What takes over: the transport's protocol too."""

    def connection_lost(self, exc: Exception | None) -> None: ...


MakeConnection = Callable[[Lease, asyncio.Transport, bytes | None], Connection]


def accept_at(
    sockets: Sequence[socket.socket],
    state: ListenerState,
    loop: asyncio.AbstractEventLoop,
    make: MakeConnection,
) -> Listening:
    """Accept connections at the sockets from now on, within the listener's limits."""
    return Listening(
        loop, sockets, lambda accepted, peer: Acceptance(state, loop, accepted, peer, make).begin()
    )


async def close_connections(state: ListenerState) -> None:
    """What is under way may go out, for `drain_timeout_ms` at most. Then all connections are closed."""
    connections = tuple(state.connections)
    for connection in connections:
        connection.drain()
    all_closed = asyncio.gather(*(connection.closed for connection in connections))
    with contextlib.suppress(TimeoutError):
        # Shielded: the futures belong to the connections, and are waited for once more below.
        await asyncio.wait_for(asyncio.shield(all_closed), state.limits.drain_timeout_ms / 1000)
    # Not `connections`: the handshake of one may have ended meanwhile, and put another one in its place.
    for connection in tuple(state.connections):
        connection.abort()
    await all_closed


class Handshakes:
    """When TLS begins on the connections that were accepted: a few of them in each iteration of the loop.

    A client that is refused and connects again with forty connections had as many handshakes in one iteration. Only
    the beginnings are spread: one that its peer leaves half done holds up no other.
    """

    def __init__(self, soon: Callable[[Callable[[], None]], object]) -> None:
        self._soon = soon
        self._waiting: deque[Callable[[], None]] = deque()
        self._left = HANDSHAKES_AT_ONCE
        self._is_renewing = False

    def begin(self, begin: Callable[[], None]) -> None:
        """Call it now, or when there is room in an iteration."""
        if self._left and not self._waiting:
            self._call(begin)
        else:
            self._waiting.append(begin)

    def _call(self, begin: Callable[[], None]) -> None:
        self._left -= 1
        if not self._is_renewing:
            self._is_renewing = True
            self._soon(self._renew)
        begin()

    def _renew(self) -> None:
        self._is_renewing = False
        self._left = HANDSHAKES_AT_ONCE
        while self._left and self._waiting:
            self._call(self._waiting.popleft())


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Handshakes] = WeakKeyDictionary()


def handshakes_of(loop: asyncio.AbstractEventLoop) -> Handshakes:
    """The same for all listeners of a loop."""
    handshakes = _of_loops.get(loop)
    if handshakes is None:
        # Without a reference to the loop, which is the key.
        handshakes = _of_loops[loop] = Handshakes(lambda call: asyncio.get_running_loop().call_soon(call))
    return handshakes


class Acceptance(asyncio.Protocol):
    """The protocol of a socket until its connection takes over; `closed` is done when it does, too.

    `make` gets the certificate that the peer has shown, in DER.
    """

    def __init__(
        self,
        state: ListenerState,
        loop: asyncio.AbstractEventLoop,
        accepted: socket.socket,
        address: tuple[object, ...],
        make: MakeConnection,
    ) -> None:
        self._make = make
        self._state = state
        self._loop = loop
        self._socket = accepted
        host, port = (str(address[0]), int(str(address[1]))) if address else ("unknown", 0)
        self._lease = Lease(state, Peer(next(state.connection_ids), host, port))
        self._opening: asyncio.Task[None] | None = None
        self._delay: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[None] = loop.create_future()
        state.connections.add(self)

    def begin(self) -> None:
        state = self._state
        address = normal_address(self._lease.peer.host)
        admission = state.admit(self._lease, address, self._loop.time(), self._socket.fileno())
        if isinstance(admission, Refusal):
            refused = "closing the connection of %s: one more than `%s` allows"
            state.warnings.warning(refused, self._lease, admission.value)
            self.abort()
        elif isinstance(admission, TooFast):
            state.warnings.warning(
                "closing the connection of %s: it comes faster than %s of its address allows",
                self._lease,
                Refusal.ADDRESS_RATE.value,
            )
            self._delay = self._loop.call_later(admission.delay_s, self.abort)
        elif admission:
            self._delay = self._loop.call_later(admission, self._open_soon)
        else:
            self._open_soon()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's, so this cannot be checked with isinstance.
        opened = cast(asyncio.Transport, transport)
        tls = opened.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        try:
            connection = self._make(self._lease, opened, certificate)
        except UnnamedCertificate as error:
            self._state.warnings.warning("closing the connection of %s: %s", self._lease, error)
            opened.abort()
            return
        except Exception as error:  # the callback that names the principal may fail
            log.error("closing the connection of %s: it could not be opened", self._lease, exc_info=error)
            opened.abort()
            return
        self._count_proof(is_tls=tls is not None)
        opened.set_protocol(cast(asyncio.BaseProtocol, connection))
        self._state.connections.discard(self)
        self._state.connections.add(connection)
        self.closed.set_result(None)
        if self._state.stopping:
            connection.abort()

    def drain(self) -> None:
        self.abort()

    def abort(self) -> None:
        """Close the socket, or let the task that has it do so."""
        if self._delay is not None:
            self._delay.cancel()
        if self._opening is not None:
            self._opening.cancel()
        else:
            self._socket.close()
            self._finish()

    def check_deadlines(self, now_s: float) -> None:
        """The handshake has a deadline of its own."""

    def check_pace(self, now_s: float) -> None:
        """There is no output yet."""

    def may_go_since(self) -> tuple[Claim, float] | None:
        return None

    def make_room(self) -> None:
        self.abort()

    def _open_soon(self) -> None:
        if self._state.security.ssl_context is None:
            self._begin_opening()
        else:
            handshakes_of(self._loop).begin(self._begin_opening)

    def _begin_opening(self) -> None:
        if self.closed.done():  # it was aborted while it waited
            return
        self._opening = self._loop.create_task(self._open())
        # And not at the end of the coroutine, which does not begin if it is cancelled before.
        self._opening.add_done_callback(self._opened)

    async def _open(self) -> None:
        security = self._state.security
        is_tls = security.ssl_context is not None
        if is_tls:
            CONNECTION.set(self._socket)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: self,
                self._socket,
                ssl=security.ssl_context,
                ssl_handshake_timeout=security.handshake_timeout_ms / 1000 if is_tls else None,
                ssl_shutdown_timeout=_SHUTDOWN_TIMEOUT_S if is_tls else None,
            )
        except OSError as error:  # which errors of TLS are too
            self._count_failed_handshake(error)
            # asyncio's frames refer to the error, and hold the transport and its buffers.
            traceback.clear_frames(error.__traceback__)

    def _opened(self, opening: asyncio.Task[None]) -> None:
        if not opening.cancelled() and (error := opening.exception()) is not None:
            log.error("a connection of %s could not be opened", self._lease, exc_info=error)
        if not self.closed.done():
            self._socket.close()
            self._finish()

    def _count_proof(self, *, is_tls: bool) -> None:
        """As in Kafka, TLS is an authentication, and where SASL follows, a part of one."""
        if is_tls and self._state.security.new_session is None:
            self._state.counters.successful_authentications += 1

    def _count_failed_handshake(self, error: OSError) -> None:
        """A peer that goes away or says nothing has not failed to authenticate, which is Kafka's line too."""
        if self._state.security.ssl_context is not None:
            self._state.counters.failed_tls_handshakes += 1
            if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                self._state.counters.failed_authentications += 1
            self._state.warnings.warning("the TLS handshake of %s failed: %s", self._lease, tls_reason(error))

    def _finish(self) -> None:
        self._state.connections.discard(self)
        self._lease.give_back()
        self.closed.set_result(None)
