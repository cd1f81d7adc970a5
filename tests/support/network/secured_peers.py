"""Clients and servers with TLS and SASL between them, on the event loop that nodes run on."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from kquorum.network.requests import Reply, RequestContext
from kquorum.network.security.distinguished_names import parse_mapping_rules, principal_of_certificate
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.names import PROTOCOLS
from kquorum.network.security.sasl_server import SaslServerSession, SaslSettings
from kquorum.network.security.scram import keys_of
from kquorum.network.security.scram_server import ScramLookup, ScramUser
from kquorum.network.security.tls import server_context
from kquorum.network.server import KafkaServer
from kquorum.wire.protocol.apis import ApiKey
from tests.support.api_calls import response_of
from tests.support.certificates import authority, issued, write

HOST = "localhost"


API = ApiKey.FIND_COORDINATOR


SECRET = "the-secret-of-alice"


SCRAM = "SCRAM-SHA-512"


LOOKUP = ScramLookup(
    user=lambda _, name: (
        ScramUser(keys_of(SCRAM, SECRET, b"salt", 4096), "User:alice") if name == "alice" else None
    ),
    token=lambda *_: None,
    pepper=b"x",
)


DELAY_MS = 150


def answer(context: RequestContext, _request: Any, reply: Reply) -> None:
    """The principal that the server sees."""
    told = f"{context.principal} {context.security_protocol} {context.is_token_authenticated}"
    values = {"error_code": 0, "error_message": None, "node_id": 1, "host": told, "port": 9}
    reply(response_of(API, context.header.api_version, values))


def listener(protocol: str, keys: dict[str, str] | None = None, **sasl: Any) -> ListenerSecurity:
    settings = SaslSettings(
        **{"mechanisms": ("PLAIN", SCRAM), "plain_users": {"alice": SECRET}, "scram": LOOKUP} | sasl
    )
    return ListenerSecurity(
        protocol=PROTOCOLS[protocol],
        ssl_context=server_context(keys) if keys is not None else None,
        new_session=(lambda: SaslServerSession(settings)) if protocol.startswith("SASL") else None,
        principal_of_certificate=principal_of_certificate(parse_mapping_rules("")),
        handshake_timeout_ms=2_000,
        failed_authentication_delay_ms=DELAY_MS,
    )


@contextlib.asynccontextmanager
async def serving(security: ListenerSecurity) -> AsyncIterator[KafkaServer]:
    server = KafkaServer(
        host="127.0.0.1",
        port=0,
        handler=answer,
        supported={API: (0, 3)},
        listener_name="TEST",
        security=security,
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class Keys:
    """Kafka's keys for the sides of a connection."""

    def __init__(self, folder: Path) -> None:
        self.node = {"ssl.keystore.location": write(folder / "node.pem", issued("node", "localhost"))}
        self.trust = {"ssl.truststore.location": write(folder / "ca.pem", authority().pem.decode())}
        self.alice = {"ssl.keystore.location": write(folder / "alice.pem", issued("alice"))}
        other = authority("another authority").pem.decode()
        self.other_trust = {"ssl.truststore.location": write(folder / "other.pem", other)}
        untrusted = issued("alice", by="another authority")
        self.untrusted = {"ssl.keystore.location": write(folder / "untrusted.pem", untrusted)}
        self.mutual = self.node | self.trust | {"ssl.client.auth": "required"}


def sasl(mechanism: str, password: str = SECRET, name: str = "alice") -> dict[str, str]:
    module = "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule"
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{name}" password="{password}";',
    }


def run(security: ListenerSecurity, work: Callable[[KafkaServer], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        async with serving(security) as server:
            return await work(server)

    return uvloop.run(main())
