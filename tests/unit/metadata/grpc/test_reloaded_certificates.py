"""gRPC shows a renewed certificate to new connections, and the old one while the new one cannot be used."""

import asyncio
import ssl
from pathlib import Path

from cryptography.x509 import load_der_x509_certificate

from kquorum.network.security.reloading import ReloadingContext
from tests.support.certificates import authority, issued, write
from tests.support.grpc_harness import run, serving, tls_of
from tests.support.grpc_source import FakeSource


async def shown(port: int) -> str:
    context = ssl.create_default_context(cadata=authority().pem.decode())
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return load_der_x509_certificate(der).subject.rfc4514_string()


def test_a_renewed_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    pem = tmp_path / "grpc.pem"
    write(pem, issued("first", "localhost"))

    async def main() -> list[str]:
        security = tls_of({"ssl.keystore.location": str(pem)})
        assert isinstance(security.ssl_context, ReloadingContext)
        tls = security.ssl_context.material
        async with serving(FakeSource(), security=security) as rig:
            names = [await shown(rig.server.bound_port)]
            write(pem, issued("second", "localhost")[:-300])
            assert not tls.refresh()
            names.append(await shown(rig.server.bound_port))
            write(pem, issued("second", "localhost"))
            assert tls.refresh()
            names.append(await shown(rig.server.bound_port))
        return names

    assert run(main) == ["CN=first", "CN=first", "CN=second"]
