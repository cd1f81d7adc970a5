"""A delegation token that its owner expires must not go on serving the connections that logged in with it."""

import asyncio

from immutables import Map

from kquorum.metadata.adapters.sasl_credentials import ImageCredentials
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.sasl_server import SaslServerSession, SaslSettings
from kquorum.network.security.scram_client import ScramClient
from kquorum.wire.protocol.apis import ApiKey
from tests.support.metadata.sasl_credentials import NOW_MS, SECRET_KEY, image, password_of
from tests.support.network.peers import RawClient, echo_request, raw_client, serving
from tests.support.network.sasl_peers import ask

SASL_PLAINTEXT = 2
MECHANISM = "SCRAM-SHA-256"


async def log_in_with_token(client: RawClient, token_id: str) -> None:
    scram = ScramClient(MECHANISM, token_id, password_of(token_id), is_token=True)
    assert (await ask(client, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": MECHANISM})).error_code == 0
    first = await ask(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": scram.first()})
    last = await ask(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": scram.final(first.auth_bytes)})
    scram.check(last.auth_bytes)


def test_a_connection_ends_with_its_token() -> None:
    images = [image()]
    credentials = ImageCredentials(lambda: images[-1], lambda: NOW_MS, SECRET_KEY)
    settings = SaslSettings(
        mechanisms=(MECHANISM,), scram=credentials.lookup(b"pepper"), now_ms=lambda: NOW_MS
    )
    security = ListenerSecurity(protocol=SASL_PLAINTEXT, new_session=lambda: SaslServerSession(settings))

    async def test() -> None:
        async with serving(security=security) as server, raw_client(server) as client:
            await log_in_with_token(client, "a-token")
            client.writer.write(echo_request("a", 1))
            assert await client.next_echo() == (1, "a")
            images.append(image(delegation_tokens=Map()))
            client.writer.write(echo_request("b", 2))
            assert await client.is_closed_by_server()
            assert server.counters.expired_authentications_closed == 1

    asyncio.run(test())
