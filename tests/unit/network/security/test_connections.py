"""Clients and servers with TLS and SASL between them, on the event loop that nodes run on."""

import asyncio
import logging
from typing import Any

import pytest

from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import AuthenticationFailed, CannotConnect, ConnectionLost, NetworkError
from kquorum.network.security.client_security import ClientSecurity, client_security
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.names import PROTOCOLS
from kquorum.network.server import KafkaServer
from tests.support.api_calls import message_of
from tests.support.network.secured_peers import (
    API,
    DELAY_MS,
    HOST,
    SCRAM,
    SECRET,
    Keys,
    listener,
    run,
    sasl,
)

TIMEOUT_MS = 5_000


async def who_am_i(server: KafkaServer, security: ClientSecurity, host: str = HOST) -> str:
    connection = await KafkaConnection.connect(
        host, server.bound_port, "tester", TIMEOUT_MS, security=security
    )
    try:
        response: Any = await connection.call(message_of(API, {"key": "k", "key_type": 0}), TIMEOUT_MS)
    finally:
        connection.close()
    return str(response.host)


def client(protocol: str, keys: dict[str, str] | None = None, **more: str) -> ClientSecurity:
    return client_security({"security.protocol": protocol} | (keys or {}) | more)


def fails_with(
    security: ListenerSecurity, asks: ClientSecurity, error: type[NetworkError], said: str, host: str = HOST
) -> None:
    """And the server goes on serving."""

    async def work(server: KafkaServer) -> None:
        with pytest.raises(error, match=said) as caught:
            await who_am_i(server, asks, host)
        assert SECRET not in str(caught.value)

    run(security, work)


def test_tls_with_a_server_that_is_trusted(keys: Keys) -> None:
    told = run(listener("SSL", keys.node), lambda server: who_am_i(server, client("SSL", keys.trust)))
    assert told == "User:ANONYMOUS 1 False"


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3"])
def test_mutual_tls_makes_a_principal(keys: Keys, versions: str) -> None:
    asks = client("SSL", keys.trust | keys.alice | {"ssl.enabled.protocols": versions})
    assert run(listener("SSL", keys.mutual), lambda server: who_am_i(server, asks)) == "User:CN=alice 1 False"


def test_a_certificate_that_is_wanted_but_not_demanded(keys: Keys) -> None:
    requested = listener("SSL", keys.mutual | {"ssl.client.auth": "requested"})

    async def work(server: KafkaServer) -> tuple[str, str]:
        return (
            await who_am_i(server, client("SSL", keys.trust)),
            await who_am_i(server, client("SSL", keys.trust | keys.alice)),
        )

    assert run(requested, work) == ("User:ANONYMOUS 1 False", "User:CN=alice 1 False")


@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_sasl(keys: Keys, protocol: str, mechanism: str) -> None:
    tls = protocol == "SASL_SSL"
    asks = client(protocol, (keys.trust if tls else {}) | sasl(mechanism))
    told = run(listener(protocol, keys.node if tls else None), lambda server: who_am_i(server, asks))
    assert told == f"User:alice {PROTOCOLS[protocol]} False"


def test_a_server_of_another_authority(keys: Keys) -> None:
    said = "authority that is not trusted here"
    fails_with(listener("SSL", keys.node), client("SSL", keys.other_trust), AuthenticationFailed, said)


def test_a_server_at_another_host(keys: Keys) -> None:
    said = "not for this host"
    fails_with(listener("SSL", keys.node), client("SSL", keys.trust), AuthenticationFailed, said, "127.0.0.1")
    unchecked = client("SSL", keys.trust | {"ssl.endpoint.identification.algorithm": ""})
    run(listener("SSL", keys.node), lambda server: who_am_i(server, unchecked, "127.0.0.1"))


def test_a_client_without_the_certificate_that_is_demanded(keys: Keys) -> None:
    said = "it wants a certificate of this side"
    fails_with(listener("SSL", keys.mutual), client("SSL", keys.trust), NetworkError, said)


def test_a_client_of_another_authority_affects_no_other_client(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    good, bad = client("SSL", keys.trust | keys.alice), client("SSL", keys.trust | keys.untrusted)

    async def work(server: KafkaServer) -> None:
        connection = await KafkaConnection.connect(HOST, server.bound_port, "t", TIMEOUT_MS, security=good)
        for _ in range(3):
            with pytest.raises(NetworkError, match="it does not know the authority"):
                await who_am_i(server, bad)
        await connection.call(message_of(API, {"key": "k", "key_type": 0}), TIMEOUT_MS)
        connection.close()
        assert await who_am_i(server, good) == "User:CN=alice 1 False"

    run(listener("SSL", keys.mutual), work)
    assert "authority that is not trusted here" in caplog.text
    assert "127.0.0.1" in caplog.text


def test_a_plain_client_on_a_port_with_tls(keys: Keys) -> None:
    said = "does its listener want TLS"
    fails_with(listener("SSL", keys.node), client("PLAINTEXT"), ConnectionLost, said)


def test_a_client_with_tls_on_a_plain_port(keys: Keys) -> None:
    said = "TLS"
    fails_with(listener("PLAINTEXT"), client("SSL", keys.trust), CannotConnect, said)


def test_no_version_of_tls_in_common(keys: Keys) -> None:
    only_new = listener("SSL", keys.node | {"ssl.enabled.protocols": "TLSv1.3"})
    asks = client("SSL", keys.trust | {"ssl.enabled.protocols": "TLSv1.2"})
    fails_with(only_new, asks, AuthenticationFailed, "no version of TLS in common")


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM])
@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("unknown", SECRET)])
def test_wrong_credentials_fail_late_and_alike(
    keys: Keys, protocol: str, mechanism: str, name: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    tls = protocol == "SASL_SSL"
    asks = client(protocol, (keys.trust if tls else {}) | sasl(mechanism, password, name))

    async def work(server: KafkaServer) -> int:
        began = asyncio.get_running_loop().time()
        with pytest.raises(
            AuthenticationFailed, match=f"invalid credentials with SASL mechanism {mechanism}"
        ):
            await who_am_i(server, asks)
        # The loop's clock counts whole milliseconds: a difference of floats can be a little below one.
        return round((asyncio.get_running_loop().time() - began) * 1000)

    assert run(listener(protocol, keys.node if tls else None), work) >= DELAY_MS
    assert "failed" in caplog.text
    assert SECRET not in caplog.text


def test_a_mechanism_that_is_not_offered(keys: Keys) -> None:
    only_scram = listener("SASL_PLAINTEXT", mechanisms=(SCRAM,))
    said = f"does not offer the SASL mechanism PLAIN; offered: {SCRAM}"
    fails_with(only_scram, client("SASL_PLAINTEXT", sasl("PLAIN")), AuthenticationFailed, said)


def test_nothing_is_served_before_the_login(caplog: pytest.LogCaptureFixture) -> None:
    async def work(server: KafkaServer) -> None:
        with pytest.raises(ConnectionLost):
            await who_am_i(server, client("PLAINTEXT"))

    run(listener("SASL_PLAINTEXT"), work)
    assert "FindCoordinator version 3 of client 'tester' came before authentication" in caplog.text


def test_sasl_where_there_is_none() -> None:
    said = "SaslHandshake with error 34"
    fails_with(listener("PLAINTEXT"), client("SASL_PLAINTEXT", sasl("PLAIN")), AuthenticationFailed, said)


def test_a_peer_that_begins_a_handshake_and_falls_silent_is_cut_off(keys: Keys) -> None:
    async def work(server: KafkaServer) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.bound_port)
        writer.write(b"\x16\x03\x01")
        asks = client("SSL", keys.trust)
        await asyncio.gather(*(who_am_i(server, asks) for _ in range(5)))
        data = await asyncio.wait_for(reader.read(100), 60)
        writer.close()
        return data

    assert run(listener("SSL", keys.node), work) == b""


def test_settings_do_not_show_passwords(keys: Keys) -> None:
    assert SECRET not in repr(client("SASL_PLAINTEXT", sasl("PLAIN")))
    assert SECRET not in repr(listener("SASL_PLAINTEXT"))
