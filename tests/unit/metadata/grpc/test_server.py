"""Health, reflection, and the address of the gRPC server."""

import socket
import tempfile

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from kquorum.metadata.grpc.server import (
    MOST_MESSAGES_OF_CALL,
    GrpcCannotListen,
    GrpcPortInUse,
    start_inspect_server,
)
from kquorum.node.config.materialise import free_ports
from tests.support.grpc_harness import run, serving, take
from tests.support.grpc_source import FakeSource

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", "kquorum.v1.Inspect"])
def test_the_health_follows_the_node(service: str) -> None:
    async def main() -> list[int]:
        async with serving(FakeSource()) as rig:
            call = health_pb2_grpc.HealthStub(rig.channel).Watch(
                health_pb2.HealthCheckRequest(service=service)
            )
            seen = [answer.status for answer in await take(call, 1)]
            for ready in (False, True):
                rig.source.ready = ready
                seen += [answer.status for answer in await take(call, 1)]
            return seen

    assert run(main) == [SERVING, NOT_SERVING, SERVING]


def test_a_node_that_has_seen_no_commit_yet_is_not_serving() -> None:
    async def main() -> int:
        source = FakeSource()
        source.ready = False
        async with serving(source) as rig:
            stub = health_pb2_grpc.HealthStub(rig.channel)
            return int((await stub.Check(health_pb2.HealthCheckRequest())).status)

    assert run(main) == NOT_SERVING


def test_reflection_lists_the_services_and_describes_ours() -> None:
    async def main() -> tuple[set[str], bytes]:
        async with serving(FakeSource()) as rig:
            call = reflection_pb2_grpc.ServerReflectionStub(rig.channel).ServerReflectionInfo()
            await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            listed = await call.read()
            symbol = reflection_pb2.ServerReflectionRequest(file_containing_symbol="kquorum.v1.Inspect")
            await call.write(symbol)
            described = await call.read()
            await call.done_writing()
            names = {service.name for service in listed.list_services_response.service}
            return names, described.file_descriptor_response.file_descriptor_proto[0]

    names, descriptor = run(main)
    assert {"kquorum.v1.Inspect", "grpc.health.v1.Health"} <= names
    assert b"ReadLog" in descriptor


def test_a_port_in_use_is_named_with_the_remedy() -> None:
    async def main(port: int) -> None:
        await start_inspect_server("127.0.0.1", port, FakeSource())

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(GrpcPortInUse) as caught:
            run(lambda: main(port))
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert "already in use" in str(caught.value)
    assert "kquorum.grpc.listener" in str(caught.value)


def test_a_second_server_does_not_share_the_port() -> None:
    async def main() -> None:
        async with serving(FakeSource()) as rig:
            with pytest.raises(GrpcPortInUse):
                await start_inspect_server("127.0.0.1", rig.server.bound_port, FakeSource())

    run(main)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["", "::1", "127.0.0.1"])
def test_it_is_served_at_every_address_of_its_host(host: str) -> None:
    (port,) = free_ports(1)
    addresses = {"": ["127.0.0.1", "[::1]"], "::1": ["[::1]"], "127.0.0.1": ["127.0.0.1"]}[host]

    async def main() -> list[int]:
        server = await start_inspect_server(host, port, FakeSource())
        statuses = []
        for address in addresses:
            async with grpc.aio.insecure_channel(f"{address}:{port}") as channel:
                answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
                statuses.append(answer.status)
        await server.stop(0.1)
        return statuses

    assert run(main) == [SERVING] * len(addresses)


def test_where_no_folder_can_be_made_the_reason_has_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/missing")
    with pytest.raises(GrpcCannotListen) as caught:
        run(lambda: start_inspect_server("127.0.0.1", 0, FakeSource()))
    assert "No such file or directory" in str(caught.value)
    assert "TMPDIR" in str(caught.value)


def test_an_address_of_another_machine_is_no_port_in_use() -> None:
    with pytest.raises(GrpcCannotListen) as caught:
        run(lambda: start_inspect_server("192.0.2.1", 19999, FakeSource()))
    assert not isinstance(caught.value, GrpcPortInUse)
    assert "192.0.2.1:19999" in str(caught.value)


def test_a_stopped_server_answers_no_request_and_frees_its_port() -> None:
    async def main() -> None:
        source = FakeSource()
        async with serving(source) as rig:
            await rig.server.stop(0.1)
            assert source.callbacks == []
            stub = health_pb2_grpc.HealthStub(rig.channel)
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Check(health_pb2.HealthCheckRequest(), timeout=40)
            again = await start_inspect_server("127.0.0.1", rig.server.bound_port, source)
            await again.stop(0.1)

    run(main)


def test_a_call_takes_a_bounded_number_of_messages() -> None:
    """A client of the reflection service without any right could send millions of five bytes in one call."""

    async def main() -> tuple[int, grpc.StatusCode]:
        async with serving(FakeSource()) as rig:
            call = reflection_pb2_grpc.ServerReflectionStub(rig.channel).ServerReflectionInfo()
            asked = reflection_pb2.ServerReflectionRequest(list_services="")
            answers = 0
            try:
                for _ in range(MOST_MESSAGES_OF_CALL + 1):
                    await call.write(asked)
                    await call.read()
                    answers += 1
            except grpc.aio.AioRpcError:
                pass
            return answers, await call.code()

    answers, code = run(main)
    assert answers <= MOST_MESSAGES_OF_CALL + 1
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
