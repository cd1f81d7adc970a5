"""The caller of a service behind the front (network.http2_front): gRPC itself sees the front's end of a socket only.

Services ask the context of a call for its peer and certificate as they would without a front. The calls of a
connection that did not come through the front are refused.
"""

import inspect
import ipaddress
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

import grpc

from kquorum.metadata.grpc.interceptor import Behaviour, WrappingInterceptor, rebuilt_handler
from kquorum.network.http2_front import Identity

CERTIFICATE: Final = "x509_pem_cert"  # gRPC's name for it

_PREFIX: Final = "unix:"
_REFUSED: Final = "the connection did not come through this node's listener for gRPC"


class KnownCallers(WrappingInterceptor):
    """`identity_of` takes the path that the front's end of a connection is bound to."""

    def __init__(self, identity_of: Callable[[str], Identity | None]) -> None:
        super().__init__(lambda handler, _method: rebuilt_handler(handler, self._with_caller))
        self._identity_of = identity_of

    def _with_caller(self, behaviour: Behaviour) -> Behaviour:
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
    """gRPC's context of a call, with the client at the front as the peer."""

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
        """None, as gRPC answers for a connection on the front's socket."""

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
