"""The gRPC listener must not offer a version of TLS that `ssl.enabled.protocols` leaves out."""

import asyncio
import ssl
from pathlib import Path

from tests.support.certificates import authority, issued, write
from tests.support.grpc_harness import run, serving, tls_of
from tests.support.grpc_source import FakeSource


async def version_with(port: int, most: ssl.TLSVersion) -> str | None:
    """The version that a client gets that speaks up to this one; None where the handshake fails."""
    context = ssl.create_default_context(cadata=authority().pem.decode())
    context.maximum_version = most
    context.set_alpn_protocols(["h2"])
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    except ssl.SSLError:
        return None
    version = writer.get_extra_info("ssl_object").version()
    writer.transport.abort()
    return str(version)


def test_a_version_that_is_not_enabled_is_not_spoken(tmp_path: Path) -> None:
    pem = tmp_path / "grpc.pem"
    write(pem, issued("grpc", "localhost"))

    async def main(enabled: str) -> list[str | None]:
        keys = {"ssl.keystore.location": str(pem), "ssl.enabled.protocols": enabled}
        async with serving(FakeSource(), security=tls_of(keys)) as rig:
            versions = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
            return [await version_with(rig.server.bound_port, most) for most in versions]

    assert run(lambda: main("TLSv1.3")) == [None, "TLSv1.3"]
    assert run(lambda: main("TLSv1.2")) == ["TLSv1.2", "TLSv1.2"]
    assert run(lambda: main("TLSv1.2,TLSv1.3")) == ["TLSv1.2", "TLSv1.3"]
