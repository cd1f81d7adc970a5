"""When certificates end: of files, and of listeners that show them."""

import asyncio
import ssl
from pathlib import Path

from kquorum.cli.commands.doctor.certificates import find_certificates
from kquorum.cli.commands.doctor.facts import Certificate
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports
from tests.support.certificates import issued, now, write

DAY_MS = 86_400_000


def config_with(folder: Path, keystore: str, port: int) -> Path:
    path = folder / "quorum.toml"
    path.write_text(
        f"""
[cluster]
"cluster.id" = "4L6g3nShT-eMCtK--X86sw"
[[nodes]]
"node.id" = 1
"process.roles" = "controller"
"controller.listener.names" = "CONTROLLER"
"listeners" = "CONTROLLER://127.0.0.1:{port}"
"listener.security.protocol.map" = "CONTROLLER:SSL"
"ssl.keystore.type" = "PEM"
"ssl.keystore.location" = "{keystore}"
"ssl.truststore.type" = "PEM"
"ssl.truststore.location" = "{keystore}"
"log.dirs" = "{folder}/node-1"
"""
    )
    path.chmod(0o600)
    return path


def days_left(certificate: Certificate) -> float:
    assert certificate.ends_ms is not None, certificate
    return (certificate.ends_ms - now().timestamp() * 1000) / DAY_MS


def test_file_and_listener(tmp_path: Path) -> None:
    """The file was replaced, and the listener still shows the old certificate."""
    asyncio.run(_file_and_listener(tmp_path))


async def _file_and_listener(tmp_path: Path) -> None:
    old = write(tmp_path / "old.pem", issued("node", "127.0.0.1", days_ago=25))
    new = write(tmp_path / "new.pem", issued("node", "127.0.0.1"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(old)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        in_file, shown = await find_certificates(load_config(config_with(tmp_path, new, port)), 5_000)
    assert in_file.place == new
    assert 29 < days_left(in_file) < 31
    assert shown.place == f"node 1: CONTROLLER://127.0.0.1:{port}"
    assert 4 < days_left(shown) < 6


def test_what_is_no_certificate_is_said(tmp_path: Path) -> None:
    asyncio.run(_what_is_no_certificate_is_said(tmp_path))


async def _what_is_no_certificate_is_said(tmp_path: Path) -> None:
    wrong = write(tmp_path / "wrong.pem", "no certificate")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        found = await find_certificates(load_config(config_with(tmp_path, wrong, port)), 5_000)
    assert [each.ends_ms for each in found if each.place == wrong] == [None]
    assert [each.fault for each in found if each.place == wrong] == ["it holds no certificate in PEM"]


def test_a_listener_that_is_away_is_left_out(tmp_path: Path) -> None:
    asyncio.run(_a_listener_that_is_away_is_left_out(tmp_path))


async def _a_listener_that_is_away_is_left_out(tmp_path: Path) -> None:
    new = write(tmp_path / "new.pem", issued("node", "127.0.0.1"))
    [found] = await find_certificates(load_config(config_with(tmp_path, new, free_ports(1)[0])), 1_000)
    assert found.place == new
