"""Behind the front a call still has its client's address and certificate, and none that went around it is served."""

import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.grpc.access import MemberGate, host_of
from kquorum.metadata.grpc.callers import KnownCallers, peer_name
from kquorum.network.http2_front import Identity
from kquorum.wire.proto import inspect_pb2, inspect_pb2_grpc
from tests.support.certificates import authority, issued, write
from tests.support.grpc_harness import failure_of, run, serving, take_all, tls_of
from tests.support.grpc_source import FakeSource

SNAPSHOT = "00000000000000000002-0000000003.checkpoint"


class Seen(MemberGate):
    """Keeps who calls."""

    def __init__(self, source: FakeSource) -> None:
        super().__init__(RequestAuthorizer(None), source.committed_image, str)
        self.callers: list[tuple[str, str, dict[str, Any]]] = []

    async def admit(self, context: Any, api_key: Any) -> None:
        self.callers.append((context.peer(), host_of(context.peer()), dict(context.auth_context())))
        await super().admit(context, api_key)


@pytest.mark.parametrize(("host", "port"), [("10.0.0.1", 4711), ("::1", 9), ("fe80::1%eth0", 7)])
def test_peers_have_the_names_that_grpc_gives(host: str, port: int) -> None:
    assert host_of(peer_name(host, port)) == host
    assert peer_name(host, port).endswith(f":{port}")


def test_an_invalid_address_belongs_to_no_host() -> None:
    assert host_of(peer_name("unknown", 0)) == ""


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_call_has_its_clients_address_and_certificate(tmp_path: Path, *, has_tls: bool) -> None:
    write(tmp_path / "server.pem", issued("server", "localhost"))
    write(tmp_path / "ca.pem", authority().pem.decode())
    client = issued("member")
    chain = client[client.index("-----BEGIN CERT") :]
    keys = {
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.client.auth": "required",
    }
    credentials = grpc.ssl_channel_credentials(
        authority().pem, client[: client.index("-----BEGIN CERT")].encode(), chain.encode()
    )

    async def main() -> Seen:
        source = FakeSource()
        seen = Seen(source)
        async with serving(source, gate=seen, security=tls_of(keys) if has_tls else None) as rig:
            address = f"localhost:{rig.server.bound_port}"
            made = (
                grpc.aio.secure_channel(address, credentials)
                if has_tls
                else grpc.aio.insecure_channel(address.replace("localhost", "127.0.0.1"))
            )
            async with made as channel:
                make_stub: Any = inspect_pb2_grpc.InspectStub
                await take_all(make_stub(channel).Image(inspect_pb2.ImageRequest()))
        return seen

    ((peer, host, certificate),) = run(main).callers
    assert peer.startswith("ipv4:127.0.0.1:")
    assert host == "127.0.0.1"
    if has_tls:
        (pem,) = certificate["x509_pem_cert"]
        assert ssl.PEM_cert_to_DER_cert(pem.decode()) == ssl.PEM_cert_to_DER_cert(chain)
    else:
        assert certificate == {}


def test_a_connection_around_the_front_is_refused_by_every_service() -> None:
    async def main() -> list[grpc.StatusCode]:
        async with serving(FakeSource()) as rig:
            path = rig.server._front.server_path
            async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
                make_stub: Any = inspect_pb2_grpc.InspectStub
                calls = (
                    health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()),
                    take_all(make_stub(channel).Image(inspect_pb2.ImageRequest())),
                )
                return [(await failure_of(call)).code() for call in calls]

    assert run(main) == [grpc.StatusCode.PERMISSION_DENIED] * 2


def test_a_path_is_looked_up_as_grpc_writes_it() -> None:
    asked: list[str] = []

    def identity_of(path: str) -> Identity | None:
        asked.append(path)
        return Identity(None, "127.0.0.1", 1)

    class Context:
        def peer(self) -> str:
            return "unix:/tmp/with%20space/7"

    async def main() -> str:
        known = await KnownCallers(identity_of)._known(Context())
        return str(known.peer())

    assert run(main) == "ipv4:127.0.0.1:1"
    assert asked == ["/tmp/with space/7"]


def test_a_client_that_reads_much_is_not_held_back_for_saying_so() -> None:
    """It says for each part of the bytes that it has taken them."""
    wanted = 30_000_000

    async def main() -> tuple[int, int]:
        source = FakeSource()
        source.snapshot_files = {SNAPSHOT: bytes(wanted)}
        async with serving(source) as rig:
            request = inspect_pb2.CopySnapshotRequest(name=SNAPSHOT)
            messages = await take_all(rig.stub.CopySnapshot(request))
            return sum(each.ByteSize() for each in messages), rig.server.counters.mutings

    taken, mutings = run(main)
    assert taken >= wanted
    assert mutings == 0
