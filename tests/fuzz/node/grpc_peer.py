"""A peer of the gRPC listener: calls go on one connection, and what is no call on connections of its own."""

import asyncio
import struct
from typing import cast

from tests.fuzz.listener.inputs import After, Input
from tests.fuzz.listener.peer import PATIENCE_S, Peer
from tests.support.network import grpc_inputs as http2

_CANCEL = struct.pack(">I", 8)
# A call that goes on for longer, as watching does, is cancelled.
_CALL_S = 0.25
_HEALTH = "/grpc.health.v1.Health/Check"


class GrpcConnection(asyncio.Protocol):
    """Keeps which streams have ended, and which have had a message."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.is_lost = False
        self.ended: set[int] = set()
        self.answered: set[int] = set()
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(http2.OPENING)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 9:
            length = int.from_bytes(self._received[:3], "big")
            if len(self._received) < 9 + length:
                break
            kind, flags, stream = struct.unpack_from(">BBI", self._received, 3)
            payload = bytes(self._received[9 : 9 + length]) if kind == http2.PING else b""
            del self._received[: 9 + length]
            self._take(kind, flags, stream, payload)
        self.news.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.is_lost = True
        self.news.set()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind in (http2.SETTINGS, http2.PING) and not flags & http2.ACK:
            self.transport.write(http2.frame(kind, http2.ACK, 0, payload))
        elif kind == http2.GOAWAY:
            self.transport.abort()
        elif kind == http2.RST_STREAM:
            self.ended.add(stream)
        elif kind in (http2.DATA, http2.HEADERS):
            if flags & http2.END_STREAM:
                self.ended.add(stream)
            if kind == http2.DATA:
                self.answered.add(stream)


class GrpcPeer:
    """Keeps its connection for calls as long as the server does."""

    def __init__(self, host: str, port: int, raw: Peer | None = None) -> None:
        """`raw` is for what is no call."""
        self._address = host, port
        self._raw = raw or Peer(host, port)
        self._connection: GrpcConnection | None = None
        self._next_stream = 1
        self._connections = 0

    @property
    def connections(self) -> int:
        return self._connections + self._raw.connections

    async def throw(self, thrown: Input) -> str | None:
        """What the server did wrong; None if nothing."""
        if thrown.after is not After.ANSWER:
            return await self._raw.throw(thrown)
        connection = await self._connected()
        stream, fence = self._next_stream, self._next_stream + 2
        self._next_stream += 4
        connection.transport.write(http2.moved(thrown.data, stream))
        connection.transport.write(http2.moved(http2.call(_HEALTH, http2.message(b"")), fence))
        try:
            async with asyncio.timeout(PATIENCE_S):
                while fence not in connection.ended and not connection.is_lost:
                    await _hear(connection)
        except TimeoutError:
            self.close()
            return f"no answer of the health check behind a call within {PATIENCE_S} s"
        await self._see_end(connection, stream)
        return None

    def close(self) -> None:
        self._raw.close()
        if self._connection is not None:
            self._connection.transport.abort()
            self._connection = None

    async def _see_end(self, connection: GrpcConnection, stream: int) -> None:
        try:
            async with asyncio.timeout(_CALL_S):
                while stream not in connection.ended | connection.answered and not connection.is_lost:
                    await _hear(connection)
        except TimeoutError:
            pass
        if stream not in connection.ended and not connection.is_lost:
            connection.transport.write(http2.frame(http2.RST_STREAM, 0, stream, _CANCEL))
        connection.ended.clear()
        connection.answered.clear()

    async def _connected(self) -> GrpcConnection:
        if self._connection is None or self._connection.is_lost:
            self._connection = await self._open()
            self._connections += 1
            self._next_stream = 1
        return self._connection

    async def _open(self) -> GrpcConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(GrpcConnection, *self._address)
        return connection


async def _hear(connection: GrpcConnection) -> None:
    connection.news.clear()
    await connection.news.wait()
