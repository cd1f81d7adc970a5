"""A listener with TLS, and clients of it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.server import KafkaServer
from tests.support.network.peers import (
    HOST,
    RawClient,
)

SSL = 1


def tls(pem: Path, **arguments: Any) -> ListenerSecurity:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.load_verify_locations(pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    return ListenerSecurity(protocol=SSL, ssl_context=context, **arguments)


def client_context(pem: Path, *, shows_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pem))
    if shows_certificate:
        context.load_cert_chain(pem)
    return context


@asynccontextmanager
async def tls_client(server: KafkaServer, context: ssl.SSLContext) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection(HOST, server.bound_port, ssl=context)
    try:
        yield RawClient(reader, writer)
    finally:
        if not writer.is_closing():
            writer.transport.abort()
