"""How TLS ends: with an alert that names the fault, and soon for a peer that sends no close_notify."""

import asyncio
import ssl
from pathlib import Path

import pytest

from kquorum.network.limits import ConnectionLimits
from kquorum.network.security.distinguished_names import parse_mapping_rules, principal_of_certificate
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.tls import client_context, server_context
from kquorum.network.server import KafkaServer, SharedLimits
from tests.support.certificates import authority, issued, write
from tests.support.network.peers import HOST, RunTest, echo_request, serving, until
from tests.support.network.tls_peers import tls_client

TLS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = write(folder / "node.pem", issued("node", HOST))
        self.ca = write(folder / "ca.pem", authority().pem.decode())

    def listener(self, client_auth: str = "required", rules: str = "", **keys: str) -> ListenerSecurity:
        context = server_context(
            {
                "ssl.keystore.location": self.node,
                "ssl.truststore.location": self.ca,
                "ssl.client.auth": client_auth,
            }
            | keys
        )
        named = principal_of_certificate(parse_mapping_rules(rules))
        return ListenerSecurity(protocol=1, ssl_context=context, principal_of_certificate=named)

    def client(self, version: ssl.TLSVersion, certificate: str | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.minimum_version = context.maximum_version = version
        if certificate is not None:
            context.load_cert_chain(write(self.folder / "client.pem", certificate))
        return context


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def talk(server: KafkaServer, context: ssl.SSLContext) -> bytes:
    """With TLS 1.3 a client is through before the server has seen its certificate."""
    async with tls_client(server, context) as client:
        client.writer.write(echo_request("a", 1))
        return await client.reader.read(100)


async def reason_of(server: KafkaServer, context: ssl.SSLContext) -> str:
    with pytest.raises(ssl.SSLError) as caught:
        await talk(server, context)
    return str(caught.value.reason)


@pytest.mark.parametrize("version", TLS)
def test_a_client_of_an_unknown_authority_gets_an_alert(
    run: RunTest, world: World, version: ssl.TLSVersion
) -> None:
    async def test() -> None:
        async with serving(security=world.listener()) as server:
            untrusted = world.client(version, issued("alice", by="another authority"))
            assert await reason_of(server, untrusted) == "TLSV1_ALERT_UNKNOWN_CA"
            await until(lambda: server.counters.open_connections == 0)
            assert server.counters.failed_tls_handshakes == 1

    run(test())


@pytest.mark.parametrize(
    ("version", "told"),
    list(zip(TLS, ("SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV13_ALERT_CERTIFICATE_REQUIRED"), strict=True)),
)
def test_a_missing_certificate_gets_an_alert(
    run: RunTest, world: World, version: ssl.TLSVersion, told: str
) -> None:
    async def test() -> None:
        async with serving(security=world.listener()) as server:
            assert await reason_of(server, world.client(version)) == told

    run(test())


def test_a_peer_without_a_common_version_gets_an_error(run: RunTest, world: World) -> None:
    async def test() -> None:
        security = world.listener("none", **{"ssl.enabled.protocols": "TLSv1.3"})
        async with serving(security=security) as server:
            assert await reason_of(server, world.client(TLS[0])) == "TLSV1_ALERT_PROTOCOL_VERSION"

    run(test())


def test_a_client_that_leaves_instead_gets_nothing(run: RunTest, world: World) -> None:
    async def test() -> None:
        async with serving(security=world.listener()) as server:
            _, writer = await asyncio.open_connection(HOST, server.bound_port)
            writer.write(b"this is no TLS at all")
            writer.transport.abort()
            await until(lambda: server.counters.failed_tls_handshakes == 1)
            await until(lambda: server.counters.open_connections == 0)

    run(test())


def test_a_client_without_close_notify_gives_its_place_back(run: RunTest, world: World) -> None:
    async def test() -> None:
        shared = SharedLimits(ConnectionLimits(max_connections=1))
        async with (
            serving(security=world.listener("none"), shared=shared) as server,
            tls_client(server, world.client(TLS[1])) as client,
        ):
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            began_s = asyncio.get_running_loop().time()
            client.writer.write((2**31 - 1).to_bytes(4, "big"))
            await until(lambda: server.counters.bad_frames == 1)
            await until(lambda: shared.quota.open_connections == 0)
            assert asyncio.get_running_loop().time() - began_s < 5

    run(test())


def test_a_certificate_that_no_rule_fits_gets_no_access(
    run: RunTest, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        security = world.listener(rules="RULE:^CN=(alice)$/$1/")
        async with serving(security=security) as server:
            async with tls_client(server, world.client(TLS[1], issued("alice"))) as alice:
                alice.writer.write(echo_request("a", 1))
                assert await alice.next_echo() == (1, "a")
            async with tls_client(server, world.client(TLS[1], issued("bob"))) as bob:
                bob.writer.write(echo_request("a", 1))
                assert await bob.is_closed_by_server()
            await until(lambda: server.counters.open_connections == 0)

    run(test())
    (record,) = [record for record in caplog.records if record.name == "network.server"]
    assert "no rule of ssl.principal.mapping.rules fits its certificate 'CN=bob'" in record.getMessage()
    assert (record.levelname, record.exc_info) == ("WARNING", None)


def test_every_suite_that_is_offered_has_aead(world: World) -> None:
    """CBC in TLS 1.2 leaves its padding to the implementation, and those have leaked."""
    listener = world.listener().ssl_context
    assert listener is not None
    for context in (listener, client_context({})):
        names = {suite["name"] for suite in context.get_ciphers()}
        assert {name for name in names if "GCM" not in name and "POLY1305" not in name} == set()
        assert {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"} <= names
        assert all(name.startswith(("TLS_", "ECDHE-RSA-", "ECDHE-ECDSA-")) for name in names)


@pytest.mark.parametrize("suite", ["AES256-SHA384", "AES128-SHA256", "AES256-SHA"])
def test_a_client_of_tls_1_2_that_knows_only_cbc_stays_out(run: RunTest, world: World, suite: str) -> None:
    async def test() -> None:
        client = world.client(TLS[0])
        client.set_ciphers(f"ECDHE-ECDSA-{suite}:ECDHE-RSA-{suite}")
        async with serving(security=world.listener(client_auth="none")) as server:
            assert "HANDSHAKE_FAILURE" in await reason_of(server, client)
            client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
            async with tls_client(server, client) as raw:
                raw.writer.write(echo_request("a", 1))
                assert await raw.next_echo() == (1, "a")

    run(test())
