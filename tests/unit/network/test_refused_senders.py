"""A client that goes on sending after its connection was refused: it is cut off soon, with and without TLS."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from tests.support.network.peers import HOST, RunTest, serving
from tests.support.network.tls_peers import client_context, tls

PUMPED_BYTES = 512_000_000
MOST_TAKEN_BYTES = 128_000_000


def pump(port: int, context: ssl.SSLContext | None) -> int:
    """How much is taken after a frame that no listener takes."""
    taken, piece = 0, bytes(65_536)
    with socket.create_connection((HOST, port)) as plain:
        plain.settimeout(30)
        peer = plain if context is None else context.wrap_socket(plain, server_hostname=HOST)
        try:
            peer.sendall(b"\x7f\xff\xff\xff")
            while taken < PUMPED_BYTES:
                peer.sendall(piece)
                taken += len(piece)
        except OSError:
            pass
        finally:
            if context is not None:
                peer.detach()
    return taken


@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "TLS"])
def test_what_comes_after_a_refusal_is_not_read_for_long(run: RunTest, pem: Path, with_tls: bool) -> None:
    async def test() -> None:
        options = {"security": tls(pem)} if with_tls else {}
        async with serving(**options) as server:
            context = client_context(pem) if with_tls else None
            assert await asyncio.to_thread(pump, server.bound_port, context) < MOST_TAKEN_BYTES

    run(test())
