"""What a connection may cost the gRPC server before anything is called, or without a call."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kquorum.network.limits import GrpcLimits
from kquorum.wire.proto import inspect_pb2
from tests.support.certificates import authority, issued, write
from tests.support.grpc_harness import failure_of, run, serving, take_all, tls_of
from tests.support.grpc_source import FakeSource

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = b"\0\0\0\4\0\0\0\0\0"


async def closed_after_all(port: int, first: bytes, tls: ssl.SSLContext | None = None) -> bool:
    """Returns when the server has closed a connection that began with these bytes."""
    name = None if tls is None else "localhost"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    try:
        writer.write(first)
        while await reader.read(4_096):
            pass
    except ConnectionResetError:
        pass
    finally:
        writer.transport.abort()
    return True


@pytest.mark.parametrize("first", [b"", b"PRI", PREFACE], ids=["silent", "half a preface", "preface"])
def test_a_connection_that_does_not_get_to_settings_is_closed(first: bytes) -> None:
    async def main() -> bool:
        async with serving(FakeSource(), limits=GrpcLimits(handshake_timeout_ms=100)) as rig:
            return await closed_after_all(rig.server.bound_port, first)

    assert run(main)


@pytest.mark.parametrize("has_handshake", [False, True])
def test_with_tls_too(tmp_path: Path, *, has_handshake: bool) -> None:
    pem = tmp_path / "grpc.pem"
    write(pem, issued("first", "localhost"))
    context = ssl.create_default_context(cadata=authority().pem.decode())
    context.set_alpn_protocols(["h2"])

    async def main() -> bool:
        security = tls_of({"ssl.keystore.location": str(pem)})
        async with serving(
            FakeSource(), security=security, limits=GrpcLimits(handshake_timeout_ms=300)
        ) as rig:
            port = rig.server.bound_port
            return await closed_after_all(
                port, PREFACE if has_handshake else b"", context if has_handshake else None
            )

    assert run(main)


def test_an_unauthenticated_connection_is_closed_before_the_idle_limit(tmp_path: Path) -> None:
    """It shows no certificate where one is required, and says all that HTTP/2 wants."""
    pem = tmp_path / "grpc.pem"
    write(pem, issued("first", "localhost"))
    write(tmp_path / "ca.pem", authority().pem.decode())
    keys = {"ssl.keystore.location": str(pem), "ssl.truststore.location": str(tmp_path / "ca.pem")}
    context = ssl.create_default_context(cadata=authority().pem.decode())
    context.set_alpn_protocols(["h2"])

    async def main() -> bool:
        security = tls_of(keys | {"ssl.client.auth": "required"})
        async with serving(
            FakeSource(), security=security, limits=GrpcLimits(handshake_timeout_ms=300)
        ) as rig:
            try:
                return await closed_after_all(rig.server.bound_port, PREFACE + EMPTY_SETTINGS, context)
            except ssl.SSLError:
                return True

    assert run(main)


def test_a_connection_without_a_call_is_closed() -> None:
    async def main() -> bool:
        async with serving(FakeSource(), limits=GrpcLimits(max_idle_ms=100)) as rig:
            return await closed_after_all(rig.server.bound_port, PREFACE + EMPTY_SETTINGS)

    assert run(main)


def test_connections_above_the_limit_are_closed_and_the_places_come_free() -> None:
    async def main() -> int:
        async with (
            serving(FakeSource(), limits=GrpcLimits(max_connections=2)) as rig,
            AsyncExitStack() as held,
        ):
            for _ in range(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", rig.server.bound_port)
                held.callback(lambda each=writer: each.transport.abort())
                writer.write(PREFACE + EMPTY_SETTINGS)
                assert await reader.read(1)  # it is served
            assert await closed_after_all(rig.server.bound_port, b"")
            await held.aclose()
            stub = health_pb2_grpc.HealthStub(rig.channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True)
            return int(answer.status)

    assert run(main) == health_pb2.HealthCheckResponse.SERVING


def test_limits_that_cannot_be_kept_are_refused() -> None:
    for wrong in ({"max_calls_at_once": 0}, {"max_connections": -1}, {"max_idle_ms": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            GrpcLimits(**wrong)


def test_a_long_message_is_refused_before_it_is_read() -> None:
    """4 MiB of empty names, which gRPC takes by default, held the loop for 80 ms: before authentication."""

    async def main() -> list[grpc.StatusCode]:
        async with serving(FakeSource()) as rig:
            await take_all(rig.stub.Image(inspect_pb2.ImageRequest(topics=[""] * 8_000)))
            calls = [
                rig.stub.Image(inspect_pb2.ImageRequest(topics=[""] * count)) for count in (8_200, 200_000)
            ]
            return [(await failure_of(take_all(call))).code() for call in calls]

    assert run(main) == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
