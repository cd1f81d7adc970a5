"""TLS of a listener reads one record at a time, and ends connections with many records that carry no data.

OpenSSL goes through thousands of KeyUpdates (RFC 8446, 4.6.3) in one call: an attacker with any certificate held a
leader's loop for seconds that way, without a request.
"""

import asyncio
import contextlib
import logging
import ssl
from random import Random

import pytest

from kquorum.network.security.handshake import ServerContext
from kquorum.network.security.tls import client_context
from kquorum.network.server import KafkaServer
from tests.support.network.secured_peers import HOST, Keys, listener, run
from tests.support.network.tls_client import Client

MOST = 64


class Pair:
    """A client and a server without sockets between them."""

    def __init__(self, keys: Keys) -> None:
        self.to_server, self.to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = listener("SSL", keys.node).ssl_context
        assert isinstance(context, ServerContext)
        self.server = context.wrap_bio(self.to_server, self.to_client, server_side=True)
        self.client = Client(keys.trust, self.to_client, self.to_server)
        done: set[ssl.SSLObject] = set()
        while len(done) < 2:
            for each in (self.client.tls, self.server):
                with contextlib.suppress(ssl.SSLWantReadError):
                    each.do_handshake()
                    done.add(each)

    def received(self) -> bytes:
        data = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while more := self.server.read(65_536):
                data += more
        return data


def test_data_comes_through_however_its_bytes_are_cut(keys: Keys) -> None:
    random = Random(1)
    pair = Pair(keys)
    sent = [random.randbytes(random.choice((1, 4, 500, 16_384, 70_000))) for _ in range(40)]
    for data in sent:
        pair.client.tls.write(data)
        pair.client.update_keys(1)
    ciphertext = pair.to_server.read()
    received = b""
    while ciphertext:
        size = random.choice((1, 3, 27, 5_000, 100_000))
        pair.to_server.write(ciphertext[:size])
        ciphertext = ciphertext[size:]
        received += pair.received()
    assert received == b"".join(sent)


def test_a_read_takes_no_more_than_its_record(keys: Keys) -> None:
    """The loop pauses a connection by what waits in the BIO that it fills. A flood that waited elsewhere took a node's
    memory without bound, and 8 ms for each read."""
    pair = Pair(keys)
    for _ in range(20):
        pair.client.tls.write(bytes(16_384))
    waiting = pair.to_server.pending
    assert len(pair.server.read(16_384)) == 16_384
    assert waiting - pair.to_server.pending < 17_000
    assert len(pair.received()) == 19 * 16_384
    assert pair.to_server.pending == 0


def test_a_peer_may_send_some_records_without_data_and_more_with_much_data(keys: Keys) -> None:
    pair = Pair(keys)
    pair.client.update_keys(MOST)
    assert pair.received() == b""
    for _ in range(2):
        for _ in range(16):
            pair.client.tls.write(bytes(65_536))
            pair.received()
        pair.client.update_keys(1)
        assert pair.received() == b""
    pair.client.update_keys(1)
    with pytest.raises(ssl.SSLError, match="too many TLS records without data"):
        pair.received()


def test_data_in_between_does_not_hide_them(keys: Keys) -> None:
    pair = Pair(keys)
    for _ in range(MOST):
        pair.client.update_keys(1)
        pair.client.tls.write(b"x")
    assert pair.received() == b"x" * MOST
    pair.client.update_keys(1)
    with pytest.raises(ssl.SSLError, match="too many TLS records without data"):
        pair.received()


def test_what_comes_with_the_handshake_s_end_counts_too(keys: Keys) -> None:
    """They are in one read with the client's Finished."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = listener("SSL", keys.node).ssl_context
    assert context is not None
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = Client(keys.trust, to_client, to_server)
    for each in (client.tls, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            each.do_handshake()
    client.tls.do_handshake()
    client.update_keys(MOST + 1)
    server.do_handshake()
    with pytest.raises(ssl.SSLError, match="too many TLS records without data"):
        server.read()


def hello_in_records(keys: Keys, size: int) -> tuple[ssl.SSLObject, ssl.MemoryBIO]:
    """A server that has got a ClientHello of 2 KB and more in records of so many bytes each."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = listener("SSL", keys.node).ssl_context
    assert context is not None
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context(keys.trust)
    client.set_alpn_protocols([f"{number:0200}" for number in range(10)])
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        client.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=HOST).do_handshake()
    whole = outgoing.read()
    header, message = whole[:3], whole[5:]
    assert len(message) > 2_000
    for start in range(0, len(message), size):
        piece = message[start : start + size]
        to_server.write(header + len(piece).to_bytes(2, "big") + piece)
    return server, to_client


def test_a_handshake_in_tiny_records_is_not_read_to_its_end(keys: Keys) -> None:
    """One of 131 KB in records of a byte held the loop for 80 ms, before any client had shown a certificate."""
    server, _ = hello_in_records(keys, 1)
    with pytest.raises(ssl.SSLError, match="too many short TLS records in a handshake"):
        server.do_handshake()


@pytest.mark.parametrize("size", [64, 512, 16_384])
def test_a_handshake_may_come_in_some_records(keys: Keys, size: int) -> None:
    """512 bytes is the least that a client may ask for (RFC 6066, 4)."""
    server, to_client = hello_in_records(keys, size)
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    assert to_client.pending, "the server has answered"


def test_the_end_of_the_stream_comes_after_its_records(keys: Keys) -> None:
    pair = Pair(keys)
    pair.client.tls.write(b"last")
    with contextlib.suppress(ssl.SSLWantReadError):
        pair.client.tls.unwrap()
    pair.to_server.write_eof()
    assert pair.server.read(100) == b"last"
    assert pair.server.read(100) == b""
    pair.server.unwrap()


def test_a_listener_closes_the_connection_and_says_why(keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def work(server: KafkaServer) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = Client(keys.trust, incoming, outgoing)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.bound_port)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                client.tls.do_handshake()
                break
            writer.write(outgoing.read())
            incoming.write(await reader.read(65_536))
        client.update_keys(9_000)
        writer.write(outgoing.read())
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionResetError):
                while await reader.read(65_536):
                    pass
        writer.close()

    run(listener("SSL", keys.node), work)
    assert "too many TLS records without data" in caplog.text
