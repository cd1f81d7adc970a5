"""TLS on accepted connections: counted from accept on, and a failed handshake blocks no other connection."""

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import load_der_x509_certificate

from kquorum.network.limits import ConnectionLimits, ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import SharedLimits
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.network.peers import (
    FLEXIBLE,
    HOST,
    Held,
    RawClient,
    RunTest,
    correlation_id_of,
    echo_request,
    echo_response,
    holding_handler,
    raw_client,
    serving,
    until,
)
from tests.support.network.tls_peers import SSL, client_context, tls, tls_client


def test_requests_are_answered_over_tls(run: RunTest, pem: Path) -> None:
    async def test() -> None:
        async with serving(security=tls(pem)) as server, tls_client(server, client_context(pem)) as client:
            for number in range(3):
                client.writer.write(echo_request("x" * 20_000, number))
                assert await client.next_echo() == (number, "x" * 20_000)

    run(test())


def test_the_certificate_names_the_principal(run: RunTest, pem: Path) -> None:
    async def test() -> None:
        held: Held = []

        def principal(certificate: bytes | None) -> str:
            return (
                "User:ANONYMOUS"
                if certificate is None
                else f"User:{load_der_x509_certificate(certificate).subject.rfc4514_string()}"
            )

        security = tls(pem, principal_of_certificate=principal)
        async with (
            serving(holding_handler(held), security=security) as server,
            tls_client(server, client_context(pem)) as one,
            tls_client(server, client_context(pem, shows_certificate=True)) as two,
        ):
            for number, client in enumerate((one, two), 1):
                client.writer.write(echo_request("a", 1))
                await until(lambda: len(held) == number)  # noqa: B023
            assert [(context.principal, context.security_protocol) for context, _, _ in held] == [
                ("User:ANONYMOUS", SSL),
                ("User:CN=test", SSL),
            ]

    run(test())


def test_a_certificate_that_cannot_be_named_ends_its_connection(
    run: RunTest, pem: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def principal(_certificate: bytes | None) -> str:
        raise RuntimeError("a fault of the rules")

    async def test() -> None:
        async with serving(security=tls(pem, principal_of_certificate=principal)) as server:
            async with tls_client(server, client_context(pem)) as client:
                assert await client.is_closed_by_server()
            await until(lambda: server.counters.open_connections == 0)

    run(test())
    (record,) = [record for record in caplog.records if record.name == "network.server"]
    assert record.exc_info is not None


async def _speak_plainly(client: RawClient) -> None:
    client.writer.write(echo_request("a", 1))


async def _say_nothing(_client: RawClient) -> None:
    pass


async def _go_away(client: RawClient) -> None:
    client.writer.close()


@pytest.mark.parametrize("deed", [_speak_plainly, _say_nothing, _go_away])
def test_a_handshake_that_fails_is_counted_and_affects_no_other_client(
    run: RunTest, pem: Path, caplog: pytest.LogCaptureFixture, deed: Callable[[RawClient], Any]
) -> None:
    async def test() -> None:
        shared = SharedLimits()
        async with (
            serving(security=tls(pem, handshake_timeout_ms=200), shared=shared) as server,
            tls_client(server, client_context(pem)) as good,
            raw_client(server) as bad,
        ):
            await deed(bad)
            await until(lambda: server.counters.failed_tls_handshakes == 1)
            assert deed is _go_away or await _is_cut_off(bad)
            # Not those who only stayed away; and `good` has proved that it may come in.
            assert server.counters.failed_authentications == (1 if deed is _speak_plainly else 0)
            assert server.counters.successful_authentications == 1
            await until(lambda: shared.quota.open_connections == 1)
            good.writer.write(echo_request("a", 1))
            assert await good.next_echo() == (1, "a")

    run(test())
    (line,) = [record.getMessage() for record in caplog.records if record.name == "network.server"]
    assert line.startswith("the TLS handshake of 127.0.0.1:")


async def _is_cut_off(client: RawClient) -> bool:
    """The alert may come before the end."""
    while await client._read():
        pass
    return True


def test_handshakes_under_way_count_as_connections(run: RunTest, pem: Path) -> None:
    async def test() -> None:
        shared = SharedLimits(ConnectionLimits(max_connections_per_address=1))
        async with serving(security=tls(pem), shared=shared) as server, raw_client(server):
            await until(lambda: server.counters.open_connections == 1)
            with pytest.raises(ConnectionError):
                async with tls_client(server, client_context(pem)):
                    pass
            assert server.counters.refused_over_address_limit == 1
            await server.stop()
            assert shared.quota.open_connections == 0
            assert server.counters.failed_tls_handshakes == 0, "the stop is no fault of the peer"

    run(test())


def test_stop_lets_replies_go_out_over_tls(run: RunTest, pem: Path) -> None:
    async def test() -> None:
        held: Held = []
        limits = ServerLimits(drain_timeout_ms=5000)
        async with (
            serving(holding_handler(held), security=tls(pem), limits=limits) as server,
            tls_client(server, client_context(pem)) as client,
        ):
            client.writer.write(echo_request("a", 1) + echo_request("b", 2))
            await until(lambda: len(held) == 2)
            stopping = asyncio.ensure_future(server.stop())
            await asyncio.sleep(0)  # lets `stop` begin
            for context, request, reply in held:
                reply(echo_response(context.header.api_version, request.key))
            assert [await client.next_echo() for _ in range(2)] == [(1, "a"), (2, "b")]
            assert await client.is_closed_by_server()
            client.writer.close()
            await stopping
            assert server.counters.open_connections == 0

    run(test())


def test_a_closed_connection_leaves_nothing_of_tls_for_the_garbage_collector(run: RunTest, pem: Path) -> None:
    """15,000 connections made the memory of a node grow from 118 to 270 MiB: each held up to 300 KB until then."""

    def protocols() -> int:
        return sum(type(each).__name__ == "SSLProtocol" for each in gc.get_objects())

    def ask_and_leave(port: int, context: ssl.SSLContext) -> None:
        with (
            socket.create_connection((HOST, port)) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as peer,
        ):
            peer.sendall(echo_request("x", 1))
            assert peer.recv(4)

    async def test() -> None:
        context = client_context(pem)
        async with serving(
            lambda _context, request, reply: reply(echo_response(FLEXIBLE, request.key)), security=tls(pem)
        ) as server:
            gc.collect()
            gc.disable()
            try:
                for _ in range(5):
                    await asyncio.to_thread(ask_and_leave, server.bound_port, context)
                await until(lambda: not server._state.connections)
                await until(lambda: not protocols())
                with socket.create_connection((HOST, server.bound_port)) as peer:
                    peer.sendall(b"\x16\x03\x01\x00\x05hello")
                    await until(lambda: server.counters.failed_tls_handshakes == 1)
                await until(lambda: not protocols())
            finally:
                gc.enable()

    run(test())


# More than the kernel's buffers take.
LONG_BODY = EncodedBody(bytes(32_000_000))


def answer_at_length(_context: RequestContext, _request: Any, reply: Reply) -> None:
    reply(LONG_BODY)


def test_output_that_a_client_does_not_read_counts_over_tls_and_ends_it(run: RunTest, pem: Path) -> None:
    """uvloop's TLS encrypts whatever it is given, and names no byte of it as waiting once it has."""

    async def test() -> None:
        limits = ServerLimits(write_timeout_ms=50)
        async with serving(answer_at_length, limits=limits, security=tls(pem)) as server:
            async with tls_client(server, client_context(pem)) as client:
                client.writer.transport.pause_reading()  # type: ignore[attr-defined]
                client.writer.write(echo_request("long", 1))
                await until(lambda: server.counters.sent_bytes > len(LONG_BODY.data))
                assert server._state.shared.budget.held_bytes > len(LONG_BODY.data) / 2
                await until(lambda: server.counters.slow_readers_closed == 1)
            await until(lambda: server.counters.open_connections == 0)
            assert server._state.shared.budget.held_bytes == 0

    run(test())


def test_a_long_answer_arrives_whole_over_tls_and_the_next_one_behind_it(run: RunTest, pem: Path) -> None:
    async def test() -> None:
        async with (
            serving(answer_at_length, security=tls(pem)) as server,
            tls_client(server, client_context(pem)) as client,
        ):
            for number in (1, 2):
                client.writer.write(echo_request("long", number))
            for number in (1, 2):
                frame = await client.next_frame()
                assert frame is not None
                assert correlation_id_of(frame) == number
                assert frame.endswith(LONG_BODY.data)

    run(test())
