"""The caller of a service behind the front (network.http2_front): gRPC itself sees the front's end of a socket only.

Services ask the context of a call for its peer and certificate as they would without a front. The calls of a
connection that did not come through the front are refused.
"""

import inspect
import ipaddress
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import grpc

from kquorum.network.http2_front import Identity

CERTIFICATE: Final = "x509_pem_cert"  # gRPC's name for it

_PREFIX: Final = "unix:"
_REFUSED: Final = "the connection did not come through this node's listener for gRPC"


Behaviour = Callable[[Any, Any], Any]


def rebuilt_handler(
    handler: Any, wrap: Callable[[Behaviour], Behaviour], deserializer: Callable[[bytes], Any]
) -> Any:
    """The handler of a method with something around its behaviour."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    behaviour: Behaviour = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    return make(wrap(behaviour), deserializer, handler.response_serializer)


class KnownCallers(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """`identity_of` takes the path that the front's end of a connection is bound to."""

    def __init__(self, identity_of: Callable[[str], Identity | None]) -> None:
        self._identity_of = identity_of
        self._handlers: dict[Any, Any] = {}

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        known = self._handlers.get(handler)
        if known is None:
            known = self._handlers[handler] = rebuilt_handler(
                handler, self._wrapped, handler.request_deserializer
            )
        return known

    def _wrapped(self, behaviour: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        if inspect.isasyncgenfunction(behaviour):

            async def generator(request: Any, context: Any) -> AsyncIterator[Any]:
                async for response in behaviour(request, await self._known(context)):
                    yield response

            return generator

        async def coroutine(request: Any, context: Any) -> Any:
            return await behaviour(request, await self._known(context))

        return coroutine

    async def _known(self, context: Any) -> "_KnownContext":
        identity = self._identity_of(_path_of(context.peer()))
        if identity is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, _REFUSED)
        assert identity is not None, "abort raises"
        return _KnownContext(context, identity)


class _KnownContext:
    """gRPC's context of a call, but for who the peer is."""

    __slots__ = ("_context", "_identity")

    def __init__(self, context: Any, identity: Identity) -> None:
        self._context = context
        self._identity = identity

    def peer(self) -> str:
        return peer_name(self._identity.host, self._identity.port)

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        der = self._identity.certificate
        return {} if der is None else {CERTIFICATE: [ssl.DER_cert_to_PEM_cert(der).encode("ascii")]}

    def peer_identities(self) -> None:
        """Of the front's socket gRPC would tell none either."""

    def peer_identity_key(self) -> None:
        """Likewise."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def peer_name(host: str, port: int) -> str:
    """As gRPC names the peers of its own listeners."""
    try:
        is_long = ipaddress.ip_address(host).version == 6
    except ValueError:
        return ""
    return f"ipv6:%5B{urllib.parse.quote(host, safe=':')}%5D:{port}" if is_long else f"ipv4:{host}:{port}"


def _path_of(peer: str) -> str:
    return urllib.parse.unquote(peer.removeprefix(_PREFIX)) if peer.startswith(_PREFIX) else ""
