"""A peer of a listener with TLS: broken handshakes go on connections of their own, the rest inside of sound ones."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from tests.fuzz.listener.inputs import After, Input
from tests.fuzz.listener.peer import PATIENCE_S, Peer, PeerConnection
from tests.fuzz.node.grpc_peer import GrpcConnection, GrpcPeer
from tests.fuzz.node.tls_inputs import TlsInput
from tests.support.network.tls_client import Client

# Of one input; more records without data than these would be many more inputs.
_RECORDS_AFTER_UPDATES = 3
_READ_BYTES = 65_536


class _Encrypting:
    """In the place of a transport, for what a peer does with one. `shape` says how the next data are sent."""

    def __init__(self, inner: asyncio.Transport, client: Client) -> None:
        self._inner = inner
        self._client = client
        self.shape: TlsInput | None = None
        self._has_said_farewell = False

    def write(self, data: bytes) -> None:
        if self._has_said_farewell:
            self._inner.write(data)  # which is no TLS, and not to be said any more
            return
        shape, self.shape = self.shape, None
        if shape is None:
            self._client.tls.write(data)
            self._inner.write(self._client.outgoing.read())
            return
        for number, start in enumerate(range(0, len(data), shape.record_bytes)):
            if number < _RECORDS_AFTER_UPDATES and self._client.tls.version() == "TLSv1.3":
                self._client.update_keys(shape.key_updates)
            self._client.tls.write(data[start : start + shape.record_bytes])
        ciphertext = bytearray(self._client.outgoing.read())
        if shape.is_flipped:
            ciphertext[len(ciphertext) // 2] ^= 1
        self._inner.write(bytes(ciphertext[: max(1, len(ciphertext) - shape.cut_bytes)]))
        if shape.says_farewell:
            with contextlib.suppress(ssl.SSLError):
                self._client.tls.unwrap()
            self._inner.write(self._client.outgoing.read())
            self._has_said_farewell = True

    def __getattr__(self, name: str) -> Any:
        """The rest is the socket's: the end of the stream comes without a close_notify."""
        return getattr(self._inner, name)


class _HasNews(asyncio.Protocol):
    """A peer's connection, told by `news` what happens to it."""

    news: asyncio.Event
    is_lost: bool


class _Encrypted(_HasNews):
    """For a peer's connection: it begins when the handshake is done, and hears and says everything inside of TLS."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        super().__init__()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._client = Client(keys, self._incoming, self._outgoing)
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self.encrypting = _Encrypting(self._socket, self._client)
        self._shake_hands()

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if not self.is_open:
                self._shake_hands()
            while self.is_open:
                plain = self._client.tls.read(_READ_BYTES)
                if not plain:
                    self._socket.abort()  # the node's close_notify, which need not be answered
                    break
                super().data_received(plain)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._socket.abort()  # an alert

    def _shake_hands(self) -> None:
        try:
            self._client.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        else:
            self.is_open = True
            super().connection_made(cast(asyncio.Transport, self.encrypting))
            self.news.set()
        self._socket.write(self._outgoing.read())


class _TlsConnection(_Encrypted, PeerConnection):
    """For Kafka's protocol."""


class _GrpcTlsConnection(_Encrypted, GrpcConnection):
    """For gRPC."""


_C = TypeVar("_C", bound=_Encrypted)


async def _opened(address: tuple[str, int], make: Callable[[], _C]) -> _C:
    _, connection = await asyncio.get_running_loop().create_connection(make, *address)
    while not (connection.is_open or connection.is_lost):
        connection.news.clear()
        await connection.news.wait()
    if connection.is_lost:
        raise ConnectionResetError("the node ended the handshake")
    return connection


class TlsPeer(Peer):
    def __init__(self, host: str, port: int, keys: Mapping[str, str]) -> None:
        super().__init__(host, port)
        self._keys = keys
        self._raw = Peer(host, port)

    async def throw(self, thrown: Input) -> str | None:
        assert isinstance(thrown, TlsInput)
        if not thrown.is_inside:
            before = self._raw.connections
            problem = await self._raw.throw(thrown)
            self.connections += self._raw.connections - before
            return problem
        try:
            async with asyncio.timeout(PATIENCE_S):
                connection = await self._connected()
        except TimeoutError:
            return f"no handshake within {PATIENCE_S:.0f} s"
        assert isinstance(connection, _TlsConnection)
        connection.encrypting.shape = thrown
        return await super().throw(thrown)

    def close(self) -> None:
        self._raw.close()
        super().close()

    async def _open(self) -> PeerConnection:
        return await _opened(self._address, lambda: _TlsConnection(self._keys))


class GrpcTlsPeer(GrpcPeer):
    def __init__(self, host: str, port: int, keys: Mapping[str, str]) -> None:
        super().__init__(host, port, TlsPeer(host, port, keys))
        self._keys = keys

    async def throw(self, thrown: Input) -> str | None:
        assert isinstance(thrown, TlsInput)
        if not thrown.is_inside:
            return await self._raw.throw(thrown)
        if thrown.after is After.ANSWER:
            connection = await self._connected()
            assert isinstance(connection, _GrpcTlsConnection)
            connection.encrypting.shape = thrown
        return await super().throw(thrown)

    async def _open(self) -> GrpcConnection:
        return await _opened(self._address, lambda: _GrpcTlsConnection(self._keys))
