"""The gate before authentication; the mechanisms behind it have tests of their own."""

import asyncio
from typing import Any

import pytest

from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import encode_request_header
from tests.support.api_calls import request_of
from tests.support.kio.frames import encode_request
from tests.support.network.peers import (
    Held,
    RawClient,
    RunTest,
    echo_request,
    holding_handler,
    look_at_deadlines,
    raw_client,
    serving,
    until,
)
from tests.support.network.sasl_peers import SASL_PLAINTEXT, ask, sasl


async def handshake(client: RawClient) -> Any:
    return await ask(client, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})


async def authenticate(client: RawClient, token: str) -> Any:
    return await ask(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token.encode()})


async def api_versions(client: RawClient) -> Any:
    values = {"client_software_name": "test", "client_software_version": "1"}
    return await ask(client, ApiKey.API_VERSIONS, 3, values)


def test_the_handler_gets_the_authenticated_principal(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held), security=sasl()) as server:
            for user in ("alice", "token"):
                async with raw_client(server) as client:
                    assert (await api_versions(client)).error_code == 0
                    assert (await handshake(client)).error_code == 0
                    assert (await authenticate(client, f"{user}:right")).error_code == 0
                    client.writer.write(echo_request("a", 1))
                    await until(lambda: len(held) == (1 if user == "alice" else 2))  # noqa: B023
            told = [
                (context.principal, context.security_protocol, context.is_token_authenticated)
                for context, _, _ in held
            ]
            assert told == [("User:alice", SASL_PLAINTEXT, False), ("User:token", SASL_PLAINTEXT, True)]
            assert server.counters.successful_authentications == 2

    run(test())


def test_before_authentication_nothing_else_is_served(run: RunTest, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held), security=sasl()) as server, raw_client(server) as client:
            assert (await handshake(client)).error_code == 0
            client.writer.write(echo_request("a", 1))
            assert await client.is_closed_by_server()
            assert held == []
            assert server.counters.unauthenticated_connections_closed == 1

    run(test())
    assert "FindCoordinator version 3 of client 'test' came before authentication" in caplog.text


def test_a_failure_is_answered_after_the_delay_and_ends_the_connection(
    run: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held), security=sasl()) as server, raw_client(server) as client:
            assert (await handshake(client)).error_code == 0
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            asking = asyncio.ensure_future(authenticate(client, "alice:wrong"))
            await until(lambda: server.counters.failed_authentications == 1)
            client.writer.write(echo_request("behind it", 4))
            assert (await asking).error_code == 58
            assert loop.time() - began_s >= 0.045
            assert await client.is_closed_by_server()
            assert held == []

    run(test())
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("authenticating 127.0.0.1:")
    assert line.endswith("on listener TEST: wrong password")


def test_a_client_that_leaves_during_the_delay_leaves_nothing_behind(run: RunTest) -> None:
    async def test() -> None:
        async with serving(security=sasl()) as server:
            async with raw_client(server) as client:
                assert (await handshake(client)).error_code == 0
                entity = request_of(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"alice:wrong"})
                client.writer.write(
                    encode_frame(encode_request(ApiKey.SASL_AUTHENTICATE, 2, 1, None, entity))
                )
                await until(lambda: server.counters.failed_authentications == 1)
            await until(lambda: server.counters.open_connections == 0)
            await until(lambda: server.counters.pending_requests == 0)

    run(test())


def test_a_client_that_does_not_authenticate_in_time_is_cut_off(run: RunTest) -> None:
    async def test() -> None:
        security = sasl(handshake_timeout_ms=60_000)
        async with (
            serving(security=security) as server,
            raw_client(server) as silent,
            raw_client(server) as asking,
            raw_client(server) as good,
        ):
            assert (await authenticate(good, "alice:right")).error_code == 0
            assert (await api_versions(asking)).error_code == 0
            await until(lambda: server.counters.open_connections == 3)
            look_at_deadlines(server, after_s=30.0)
            assert server.counters.unauthenticated_connections_closed == 0
            look_at_deadlines(server, after_s=61.0)
            assert await silent.is_closed_by_server()
            assert await asking.is_closed_by_server()
            assert server.counters.unauthenticated_connections_closed == 2
            good.writer.write(echo_request("a", 1))
            assert await good.next_echo() == (1, "a")

    run(test())


def test_a_server_looks_often_enough_for_those_who_do_not_authenticate(run: RunTest) -> None:
    async def test() -> None:
        async with serving(security=sasl(handshake_timeout_ms=60)) as server, raw_client(server) as silent:
            assert await silent.is_closed_by_server()
            assert server.counters.unauthenticated_connections_closed == 1

    run(test())


def test_frames_are_small_before_authentication_and_may_be_large_after(run: RunTest) -> None:
    async def test() -> None:
        security = sasl(max_unauthenticated_bytes=1000)
        async with serving(security=security) as server:
            async with raw_client(server) as client:
                assert (await authenticate(client, "alice:right")).error_code == 0
                client.writer.write(echo_request("x" * 2000, 1))
                assert await client.next_echo() == (1, "x" * 2000)
            async with raw_client(server) as client:
                client.writer.write((1001).to_bytes(4, "big"))
                assert await client.is_closed_by_server()
                assert server.counters.bad_frames == 1

    run(test())


def test_an_unauthenticated_client_may_send_few_requests(run: RunTest) -> None:
    async def test() -> None:
        async with serving(security=sasl()) as server:
            async with raw_client(server) as client:
                for _ in range(16):
                    await api_versions(client)
                client.writer.write(encode_frame(encode_request_header(ApiKey.API_VERSIONS, 0, 1, None)))
                assert await client.is_closed_by_server()
                assert server.counters.unauthenticated_connections_closed == 1
            async with raw_client(server) as client:
                assert (await authenticate(client, "alice:right")).error_code == 0
                for _ in range(20):
                    await api_versions(client)

    run(test())


def test_an_unauthenticated_client_may_send_few_tagged_fields(run: RunTest) -> None:
    """Each would cost its time before it is known who it is: Kafka's clients send none."""
    values = {"client_software_name": "x", "client_software_version": "1"}
    bare = encode_request(ApiKey.API_VERSIONS, 4, 1, None, request_of(ApiKey.API_VERSIONS, 4, values))[:-1]

    def tagged(count: int) -> bytes:
        return bytes((count,)) + b"".join(bytes((tag, 0)) for tag in range(count))

    async def test() -> None:
        async with serving(security=sasl()) as server, raw_client(server) as client:
            client.writer.write(encode_frame(bare + tagged(64)))
            assert await client.next_frame() is not None
        async with serving(security=sasl()) as server, raw_client(server) as client:
            client.writer.write(encode_frame(bare + tagged(65)))
            assert await client.is_closed_by_server()
            assert server.counters.unparsable_requests == 1

    run(test())


def test_a_session_that_has_expired_serves_only_those_who_authenticate_again(run: RunTest) -> None:
    async def test() -> None:
        async with serving(security=sasl(lifetime_ms=50)) as server:
            loop = asyncio.get_running_loop()
            async with (
                raw_client(server) as client,
                raw_client(server) as idle,
                raw_client(server) as curious,
            ):
                for each in (client, idle, curious):
                    assert (await authenticate(each, "alice:right")).error_code == 0
                began_s = loop.time()
                await until(lambda: loop.time() > began_s + 0.06)
                assert (await handshake(client)).error_code == 0
                assert (await authenticate(client, "alice:right:60000")).error_code == 0
                client.writer.write(echo_request("a", 1))
                assert await client.next_echo() == (1, "a")
                idle.writer.write(echo_request("a", 1))
                assert await idle.is_closed_by_server()
                # Kafka's SocketServer serves an expired channel SaslHandshake alone.
                assert await api_versions(curious) is None
            assert server.counters.expired_authentications_closed == 2

    run(test())


def test_a_connection_stays_with_its_principal(run: RunTest) -> None:
    async def test() -> None:
        async with serving(security=sasl(lifetime_ms=60_000)) as server, raw_client(server) as client:
            assert (await authenticate(client, "alice:right")).error_code == 0
            assert (await handshake(client)).error_code == 0
            assert (await authenticate(client, "bob:right")).error_code == 58
            assert await client.is_closed_by_server()

    run(test())


@pytest.mark.parametrize("security", [None, sasl()])
def test_sasl_where_it_has_no_business_is_an_illegal_state(
    run: RunTest, security: ListenerSecurity | None
) -> None:
    async def test() -> None:
        async with serving(security=security) as server, raw_client(server) as client:
            if security is not None:
                assert (await authenticate(client, "alice:right")).error_code == 0
            assert (await handshake(client)).error_code == 34
            if security is None:
                assert (await authenticate(client, "alice:right")).error_code == 34
            client.writer.write(echo_request("a", 1))
            assert await client.next_echo() == (1, "a")

    run(test())
