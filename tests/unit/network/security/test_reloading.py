"""TLS files that change while a node runs: real handshakes before, after, and with files that cannot be used."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from cryptography.x509 import load_der_x509_certificate

from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import NetworkError
from kquorum.network.security.client_security import client_security
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.reloading import ReloadingContext, TlsMaterial, reloading_context
from kquorum.network.security.tls import client_context, read_tls_files, server_context
from kquorum.node.tls_watch import TlsWatch
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of
from tests.support.certificates import authority, issued, write
from tests.support.network.peers import HOST, holding_handler, serving
from tests.support.running_controllers import eventually

NAME = {"client_software_name": "test", "client_software_version": "1"}
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def trusting(folder: Path) -> ssl.SSLContext:
    (folder / "ca.pem").write_text(authority().pem.decode())
    return ssl.create_default_context(cafile=str(folder / "ca.pem"))


async def shown(port: int, context: ssl.SSLContext) -> str:
    """The common name of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection(HOST, port, ssl=context, server_hostname="localhost")
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return load_der_x509_certificate(der).subject.rfc4514_string()


def listener(pem: Path) -> tuple[ListenerSecurity, TlsMaterial[ssl.SSLContext]]:
    context = reloading_context("listener TEST", {"ssl.keystore.location": str(pem)}, server_context)
    return ListenerSecurity(protocol=1, ssl_context=context), context.material


def half_written(pem: Path) -> None:
    pem.write_text(issued("half", "localhost", HOST)[:-400])


def mismatched(pem: Path) -> None:
    one, other = issued("one", "localhost", HOST), issued("other", "localhost", HOST)
    key = one[one.index("-----BEGIN PRIVATE") : one.index("-----END PRIVATE")]
    of_other = other[other.index("-----BEGIN PRIVATE") : other.index("-----END PRIVATE")]
    pem.write_text(one.replace(key, of_other))


def gone(pem: Path) -> None:
    pem.unlink()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_listener_shows_the_new_certificate_to_new_connections(tmp_path: Path, loop: str) -> None:
    pem = tmp_path / "server.pem"
    write(pem, issued("first", "localhost", HOST))

    async def work() -> None:
        security, material = listener(pem)
        context = trusting(tmp_path)
        async with serving(holding_handler([]), security=security) as server:
            watch = TlsWatch([material], interval_s=0.01)
            watch.start()
            assert await shown(server.bound_port, context) == "CN=first"
            write(pem, issued("second", "localhost", HOST))
            await eventually(lambda: material.version == 1)
            assert await shown(server.bound_port, context) == "CN=second"
            await watch.stop()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(work())


@pytest.mark.parametrize("spoil", [half_written, mismatched, gone])
def test_what_cannot_be_used_is_not_taken(
    tmp_path: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    pem = tmp_path / "server.pem"
    write(pem, issued("first", "localhost", HOST))

    async def work() -> None:
        security, material = listener(pem)
        context = trusting(tmp_path)
        async with serving(holding_handler([]), security=security) as server:
            spoil(pem)
            with caplog.at_level(logging.WARNING, logger="network.security"):
                assert not material.refresh()
                assert not material.refresh()
            assert await shown(server.bound_port, context) == "CN=first"
            write(pem, issued("second", "localhost", HOST))
            assert material.refresh()
            assert await shown(server.bound_port, context) == "CN=second"
            assert not material.refresh(), "nothing has changed since"

    asyncio.run(work())
    # Of warnings alone: an earlier test may have left the level of all loggers at INFO.
    (line,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.startswith("listener TEST: the changed TLS files are not used")
    assert str(pem) in line


def test_a_client_trusts_the_authority_in_the_changed_file(tmp_path: Path) -> None:
    pem, trust = tmp_path / "server.pem", tmp_path / "trust.pem"
    write(pem, issued("server", "localhost", HOST))
    trust.write_text(authority("others").pem.decode())

    async def work() -> None:
        server_security, _ = listener(pem)
        keys = {"security.protocol": "SSL", "ssl.truststore.location": str(trust)}
        security = client_security(keys)
        assert isinstance(security.ssl_context, ReloadingContext)
        material = security.ssl_context.material
        async with serving(holding_handler([]), security=server_security) as server:

            async def ask() -> None:
                connection = await KafkaConnection.connect(
                    HOST, server.bound_port, "t", 5_000, security=security
                )
                await connection.call(message_of(ApiKey.API_VERSIONS, NAME), 5_000)
                connection.close()

            with pytest.raises(NetworkError):
                await ask()
            trust.write_text(authority().pem.decode())
            assert material.refresh()
            await ask()
            trust.write_text(authority("others").pem.decode() * 2)
            assert material.refresh()
            with pytest.raises(NetworkError):
                await ask()

    asyncio.run(work())


def test_material_of_keys_that_name_no_files_is_never_read_again(tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    write(pem, issued("inline", "localhost"))
    keys = {"ssl.keystore.key": pem.read_text(), "ssl.keystore.certificate.chain": pem.read_text()}
    material = TlsMaterial("inline", keys, read_tls_files)
    assert not material.refresh()
    assert TlsMaterial("nothing", {}, client_context).refresh() is False


def test_a_store_that_became_a_device_is_not_read_and_what_was_read_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The files are looked at every few seconds: each look would read without end."""
    write(tmp_path / "first.pem", issued("first", "localhost"))
    store = tmp_path / "node.pem"
    store.symlink_to(tmp_path / "first.pem")
    material = TlsMaterial("grpc", {"ssl.keystore.location": str(store)}, read_tls_files)
    before = material.current
    store.unlink()
    store.symlink_to("/dev/zero")
    with caplog.at_level(logging.WARNING):
        assert not material.refresh()
        assert not material.refresh()
    assert material.current is before
    assert [record.getMessage().count("no regular file") for record in caplog.records] == [1]
