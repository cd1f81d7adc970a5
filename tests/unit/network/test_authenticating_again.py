"""Clients that authenticate again (KIP-368) at a server with the mechanisms of SASL behind it."""

from typing import Any

from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.plain import encode_plain
from kquorum.network.security.sasl_server import SaslServerSession, SaslSettings
from kquorum.network.security.scram import keys_of
from kquorum.network.security.scram_client import ScramClient
from kquorum.network.security.scram_server import ScramLookup, ScramUser
from kquorum.wire.protocol.apis import ApiKey
from tests.support.network.peers import RawClient, RunTest, echo_request, raw_client, serving
from tests.support.network.sasl_peers import ask

SCRAM, PASSWORD = "SCRAM-SHA-512", "the-password"


def listener() -> ListenerSecurity:
    user = ScramUser(keys_of(SCRAM, PASSWORD, b"salt", 4096), "User:alice")
    settings = SaslSettings(
        mechanisms=("PLAIN", SCRAM),
        plain_users={"alice": PASSWORD},
        scram=ScramLookup(user=lambda *_: user, token=lambda *_: None, pepper=b"x"),
        max_reauth_ms=60_000,
    )
    return ListenerSecurity(
        protocol=2, new_session=lambda: SaslServerSession(settings), failed_authentication_delay_ms=1
    )


async def shake(client: RawClient, mechanism: str) -> Any:
    return await ask(client, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})


async def send(client: RawClient, data: bytes) -> Any:
    return await ask(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": data})


async def log_in_with_scram(client: RawClient) -> int:
    scram = ScramClient(SCRAM, "alice", PASSWORD)
    assert (await shake(client, SCRAM)).error_code == 0
    first = await send(client, scram.first())
    return int((await send(client, scram.final(bytes(first.auth_bytes)))).error_code)


def test_the_same_mechanism_is_welcome_again(run: RunTest) -> None:
    async def test() -> None:
        async with serving(security=listener()) as server, raw_client(server) as client:
            for _ in range(3):
                assert await log_in_with_scram(client) == 0
            client.writer.write(echo_request("a", 1))
            assert await client.next_echo() == (1, "a")

    run(test())


def test_another_mechanism_ends_the_connection(run: RunTest) -> None:
    """Kafka: SaslServerAuthenticator.ReauthInfo.saslMechanismUnchanged."""

    async def test() -> None:
        async with serving(security=listener()) as server:
            async with raw_client(server) as client:
                assert await log_in_with_scram(client) == 0
                assert (await shake(client, "PLAIN")).error_code == 34
                assert await client.is_closed_by_server()
            async with raw_client(server) as client:
                assert (await shake(client, "PLAIN")).error_code == 0
                assert (await send(client, encode_plain("alice", PASSWORD))).error_code == 0
                assert (await shake(client, SCRAM)).error_code == 34
                assert await client.is_closed_by_server()
            assert server.counters.failed_authentications == 2

    run(test())
