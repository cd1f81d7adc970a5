"""One misbehaving peer: it sends an input and tells whether the server coped."""

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import cast

from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import encode_request_header
from tests.fuzz.listener.inputs import After, Input

# Far more than the server's own deadlines in tests.fuzz.listener.target.
PATIENCE_S = 30.0
_DRIP_S = 0.1
# Of network.receive_buffer.
_SLOWEST_BYTES_PER_S = 262_144
_DEAF_S = 2.5


class PeerConnection(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.news = asyncio.Event()
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.news.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.is_lost = True
        self.news.set()

    def next_correlation_id(self) -> int | None:
        """Of the first whole answer, which is forgotten with this; None if there is none."""
        if len(self.received) < 8:
            return None
        size, correlation_id = struct.unpack_from(">ii", self.received)
        if len(self.received) < 4 + size:
            return None
        del self.received[: 4 + size]
        return int(correlation_id)


class Peer:
    """Keeps its connection as long as the server does."""

    def __init__(self, host: str, port: int, login: Sequence[bytes] = ()) -> None:
        """`login` are requests that come first on each connection, one after the other."""
        self._address = host, port
        self._login = login
        self._connection: PeerConnection | None = None
        self._fences = -1
        self.connections = 0

    async def throw(self, thrown: Input) -> str | None:
        """What the server did wrong; None if nothing."""
        connection = await self._connected()
        if thrown.after is After.DEAF:
            connection.transport.pause_reading()
            # Little, or the kernel would listen in its place.
            client = connection.transport.get_extra_info("socket")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.transport.write(thrown.data)
        try:
            async with asyncio.timeout(_patience_s(thrown)):
                match thrown.after:
                    case After.ANSWER:
                        await self._see_answer(connection)
                    case After.END:
                        connection.transport.write_eof()
                        await self._see_end(connection)
                    case After.RESET:
                        await asyncio.sleep(0)
                        connection.transport.abort()
                        await self._see_end(connection)
                    case After.SILENCE:
                        await self._see_end(connection)
                    case After.DRIP:
                        await self._drip(connection)
                    case After.DEAF:
                        await asyncio.sleep(_DEAF_S)
                        connection.transport.abort()
                        await self._see_end(connection)
        except TimeoutError:
            self.close()
            return f"neither an answer nor an end within {_patience_s(thrown):.0f} s"
        return None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.transport.abort()
            self._connection = None

    async def _connected(self) -> PeerConnection:
        if self._connection is None or self._connection.is_lost:
            self._connection = await self._open()
            self.connections += 1
            for request in self._login:
                self._connection.transport.write(encode_frame(request))
                await self._see_next(self._connection)
        return self._connection

    async def _open(self) -> PeerConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(PeerConnection, *self._address)
        return connection

    async def _see_answer(self, connection: PeerConnection) -> None:
        """The request behind the input is answered in its turn, unless the input ended the connection."""
        self._fences -= 1
        fence = self._fences
        connection.transport.write(encode_frame(_fence(fence)))
        while await self._see_next(connection) not in (fence, None):
            pass

    async def _see_next(self, connection: PeerConnection) -> int | None:
        """The correlation id of the next answer; None once the connection is lost."""
        while not connection.is_lost:
            if (correlation_id := connection.next_correlation_id()) is not None:
                return correlation_id
            connection.news.clear()
            await connection.news.wait()
        return None

    async def _see_end(self, connection: PeerConnection) -> None:
        while not connection.is_lost:
            connection.received.clear()
            connection.news.clear()
            await connection.news.wait()

    async def _drip(self, connection: PeerConnection) -> None:
        while not connection.is_lost:
            connection.transport.write(b"\x00")
            await asyncio.sleep(_DRIP_S)


def _patience_s(thrown: Input) -> float:
    """A server waits the longer for the rest of a frame, the longer that is."""
    if thrown.after not in (After.SILENCE, After.DRIP):
        return PATIENCE_S
    announced = int.from_bytes(thrown.data[:4], "big", signed=True)
    return PATIENCE_S + max(0, announced) / _SLOWEST_BYTES_PER_S


def _fence(correlation_id: int) -> bytes:
    """ApiVersions of version 0, whose correlation id no input has: those are positive, or 0."""
    return encode_request_header(ApiKey.API_VERSIONS, 0, correlation_id, None)
