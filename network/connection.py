"""A client's connection: requests go out at once, and responses find theirs by correlation id."""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from kquorum.network.errors import (
    AuthenticationFailed,
    CannotConnect,
    CertificateRefused,
    ConnectionLost,
    ConnectTimedOut,
    HungUp,
    NoCommonVersion,
    RequestTimedOut,
    UnsupportedField,
)
from kquorum.network.peer_versions import ask_versions
from kquorum.network.security.client_security import ClientSecurity
from kquorum.network.security.sasl_client import SaslRefused, authenticate
from kquorum.network.security.tls_reasons import SPEAKS_TLS, TLS_ALERT, tls_reason
from kquorum.wire.errors import DecodeError, TooManyElements, UnsupportedVersion
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.protocol.apis import api_name, supported_versions
from kquorum.wire.protocol.frames import FrameDecoder, encode_frame
from kquorum.wire.protocol.headers import (
    decode_response,
    encode_request,
    read_correlation_id,
)

MAX_RESPONSE_BYTES = 268_435_456
# Kafka's answer to ApiVersions has some hundred bytes. A server that is not one must not fill the memory by its first.
MAX_FIRST_RESPONSE_BYTES = 1_048_576
# An element may take a few bytes of a response, and two hundred of memory: a hostile server could take gigabytes of a
# client. As many elements describe 500,000 partitions with three replicas each.
MAX_RESPONSE_ELEMENTS = 5_000_000
UNSECURED = ClientSecurity()
_CORRELATION_ID_MASK = 0x7FFF_FFFF
T = TypeVar("T")
# Takes the response, or None and what went wrong.
OnOutcome = Callable[[Any, Exception | None], None]


class KafkaConnection(asyncio.Protocol):
    """Made by `connect`. All methods belong to the thread of the loop it was made in.

    A request that timed out leaves its place behind: when its response comes, it is dropped. As a server
    answers in order, the requests behind it are late too, and closing is then often better than going on.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str | None,
        header_fields: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._header_fields = header_fields
        self._decoder = FrameDecoder(MAX_RESPONSE_BYTES)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, tuple[Callable[[bytes], Any], asyncio.Future[Any] | OnOutcome]] = {}
        self._last_correlation_id = 0
        self._lost_reason: str | None = None
        self._loss: type[ConnectionLost] = ConnectionLost
        self._has_heard = self._is_protected = False
        self._peer_versions: Mapping[int, tuple[int, int]] | None = None

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        client_id: str | None,
        timeout_ms: int,
        *,
        header_fields: tuple[tuple[int, bytes], ...] = (),
        security: ClientSecurity = UNSECURED,
    ) -> "KafkaConnection":
        """With TLS and SASL done, as `security` has it. `header_fields` are tagged fields for the header of every
        request whose header has room for such.

        Raises CannotConnect, also when the peer does not accept within `timeout_ms`, and AuthenticationFailed.
        """
        connection = cls(host, port, client_id, header_fields)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await connection._loop.create_connection(
                    lambda: connection, host, port, ssl=security.ssl_context
                )
                if security.mechanism is not None:
                    await connection._authenticate(security)
        except TimeoutError:
            connection.close()
            raise ConnectTimedOut(host, port, f"no answer within {timeout_ms} ms") from None
        except ssl.SSLError as error:
            raise AuthenticationFailed(host, port, tls_reason(error)) from error
        except OSError as error:
            raise CannotConnect(host, port, _reason(error, security)) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def _authenticate(self, security: ClientSecurity) -> None:
        async def ask(request: Request[R]) -> R:
            return await self.send_request(request, await self.common_version(request.api_key))

        try:
            await authenticate(ask, security)
        except SaslRefused as error:
            raise AuthenticationFailed(self.host, self.port, str(error)) from None
        except NoCommonVersion as error:
            raise AuthenticationFailed(self.host, self.port, f"it knows nothing of SASL: {error}") from None
        except CertificateRefused as error:
            raise AuthenticationFailed(self.host, self.port, error.reason) from None
        except (ConnectionLost, DecodeError) as error:
            reason = error.reason if isinstance(error, ConnectionLost) else str(error)
            raise CannotConnect(self.host, self.port, f"while authenticating: {reason}") from error

    @property
    def is_lost(self) -> bool:
        return self._lost_reason is not None

    def send_request(
        self, request: Request[R], version: int, header_fields: tuple[tuple[int, bytes], ...] = ()
    ) -> asyncio.Future[R]:
        """Write a request now; the future holds its response, ConnectionLost, or DecodeError if unreadable.

        `header_fields` are tagged fields for this request's header, with tags above those of every request's.
        Cancelling the future drops the response when it comes. Raises UnsupportedVersion before anything is
        sent.
        """
        future: asyncio.Future[R] = self._loop.create_future()
        if self._lost_reason is not None:
            future.set_exception(self._loss(self.host, self.port, self._lost_reason))
            return future
        correlation_id = self._write(request, version, header_fields)
        self._pending[correlation_id] = (partial(self._read, type(request), version), future)
        return future

    def ask(self, request: Request[R], version: int, on_outcome: OnOutcome) -> None:
        """As `send_request`, without a future: the outcome comes in the turn of the loop in which the response does, or
        in a later one, never before this returns."""
        if self._lost_reason is not None:
            self._loop.call_soon(on_outcome, None, self._loss(self.host, self.port, self._lost_reason))
            return
        correlation_id = self._write(request, version)
        self._pending[correlation_id] = (partial(self._read, type(request), version), on_outcome)

    def _read(self, cls: type[Request[R]], version: int, frame: bytes) -> R:
        try:
            return decode_response(cls, version, frame, MAX_RESPONSE_ELEMENTS)
        except TooManyElements:
            raise TooManyElements(
                f"the answer of {self.host}:{self.port} to {api_name(cls.api_key)} has more than "
                f"{MAX_RESPONSE_ELEMENTS} entries, which is the most that is read; ask for less at once, or check "
                "that this is a server of your cluster"
            ) from None

    def _write(
        self, request: Request[R], version: int, header_fields: tuple[tuple[int, bytes], ...] = ()
    ) -> int:
        correlation_id = self._next_correlation_id()
        fields = (*self._header_fields, *header_fields)
        frame = encode_frame(
            encode_request(request.api_key, version, correlation_id, self._client_id, request, fields)
        )
        assert self._transport is not None
        self._transport.write(frame)
        return correlation_id

    async def call(
        self,
        request: Request[R] | ByVersion[R],
        timeout_ms: int,
        header_fields: tuple[tuple[int, bytes], ...] = (),
    ) -> R:
        """Send a request in the highest version that both sides know, and await the response, all within `timeout_ms`;
        for `header_fields` see `send_request`.

        Raises RequestTimedOut, ConnectionLost, NoCommonVersion (UnsupportedField where that version lacks a field which
        is set) or DecodeError.
        """
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                version = await self.common_version(request.api_key)
                made = request.make(version) if isinstance(request, ByVersion) else request
                try:
                    answer = self.send_request(made, version, header_fields)
                except UnsupportedVersion as error:
                    # A DecodeError, which is a fault of the peer's bytes to all callers.
                    raise UnsupportedField(
                        self.host, self.port, api_name(request.api_key), error.reason
                    ) from None
                return await answer
        except TimeoutError:
            name = api_name(request.api_key)
            raise RequestTimedOut(self.host, self.port, name, timeout_ms) from None

    async def _first_answer(self, answer: Coroutine[Any, Any, T]) -> T:
        if not self._pending:
            self._decoder.max_frame_bytes = MAX_FIRST_RESPONSE_BYTES
        try:
            return await answer
        finally:
            self._decoder.max_frame_bytes = MAX_RESPONSE_BYTES

    async def common_version(self, api_key: int) -> int:
        """The highest version of an API that both sides know; asks the peer once. Raises NoCommonVersion."""
        if self._peer_versions is None:
            self._peer_versions = await self._first_answer(ask_versions(self))
        ours, theirs = supported_versions(api_key), self._peer_versions.get(api_key)
        if theirs is None or max(ours[0], theirs[0]) > min(ours[1], theirs[1]):
            raise NoCommonVersion(self.host, self.port, api_name(api_key), ours, theirs)
        return min(ours[1], theirs[1])

    @property
    def peer_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """The lowest and highest version of each API of the peer; None as long as it was not asked."""
        return self._peer_versions

    def offers(self, api_key: int) -> bool:
        """In any version, as the peer said; False as long as it was not asked."""
        return self._peer_versions is not None and api_key in self._peer_versions

    def close(self) -> None:
        """Pending requests fail with ConnectionLost."""
        self._lose("closed on this side")

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's, so this cannot be checked with isinstance.
        self._transport = cast(asyncio.Transport, transport)
        self._is_protected = transport.get_extra_info("ssl_object") is not None

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._decoder.feed(data):
                self._has_heard = True
                self._take_response(frame)
        except DecodeError as error:
            trouble = SPEAKS_TLS if data.startswith(TLS_ALERT) else None
            if trouble is not None:
                self._lose(trouble, HungUp)
            self._lose(f"the peer does not keep to the protocol: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            # With TLS 1.3 a server refuses a client's certificate after the client's handshake is done.
            self._lose(tls_reason(exc), ConnectionLost if self._has_heard else CertificateRefused)
        elif self._has_heard:
            self._lose("closed by the peer" if exc is None else str(exc))
        else:
            has_reason = exc is not None and not isinstance(exc, ConnectionResetError)
            self._lose(str(exc) if has_reason else self._why_hung_up, HungUp)

    @property
    def _why_hung_up(self) -> str:
        """A listener with TLS hangs up on a peer without, or with the wrong certificate, and says nothing."""
        wants = "another certificate of this side" if self._is_protected else "TLS"
        return f"closed by the peer before it said anything (does its listener want {wants}?)"

    # Responses

    def _take_response(self, frame: bytes) -> None:
        correlation_id = read_correlation_id(frame)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            raise DecodeError(f"a response has correlation id {correlation_id}, which no request has")
        read, waiting = pending
        if isinstance(waiting, asyncio.Future) and waiting.done():
            return
        response, trouble = None, None
        try:
            response = read(frame)
        except Exception as error:  # noqa: BLE001 - who waits for this response must get any error
            # The frame ended where it should, so only this response is unreadable.
            trouble = error
        if not isinstance(waiting, asyncio.Future):
            waiting(response, trouble)
        elif trouble is None:
            waiting.set_result(response)
        else:
            waiting.set_exception(trouble)

    def _lose(self, reason: str, loss: type[ConnectionLost] = ConnectionLost) -> None:
        if self._lost_reason is not None:
            return
        self._lost_reason, self._loss = reason, loss
        if self._transport is None:
            pass
        elif self._is_protected:
            # TLS would wait for the peer's close_notify, and the caller may have no time left for that.
            self._transport.abort()
        else:
            self._transport.close()
        pending, self._pending = self._pending, {}
        for _, waiting in pending.values():
            lost = loss(self.host, self.port, reason)
            if not isinstance(waiting, asyncio.Future):
                self._loop.call_soon(waiting, None, lost)
            elif not waiting.done():
                waiting.set_exception(lost)

    def _next_correlation_id(self) -> int:
        """Counts through the positive int32s; 2^31 requests on, the first ones are answered."""
        self._last_correlation_id = (self._last_correlation_id + 1) & _CORRELATION_ID_MASK
        return self._last_correlation_id


def _reason(error: OSError, security: ClientSecurity) -> str:
    """The system's words; asyncio puts the address in front of them, which our message has already."""
    if security.ssl_context is not None and isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return tls_reason(error)
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)
