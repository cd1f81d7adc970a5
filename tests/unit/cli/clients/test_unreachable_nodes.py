"""Nodes that hang, and nodes that say no: the time that both take, the message, and the exit status."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, Unanswered
from kquorum.cli.commands.brokers.members import ask_members
from kquorum.cli.commands.brokers.members_grpc import describe_brokers
from kquorum.cli.commands.quorum.history import fetch_elections
from kquorum.cli.commands.topics.image_reads import read_topics
from kquorum.cli.commands.watch.stream import ChangeStream
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.main import run as run_command
from kquorum.metadata.grpc.server import start_inspect_server
from kquorum.network.errors import CannotConnect, ConnectTimedOut, RequestTimedOut
from kquorum.network.security.client_security import ClientSecurity, client_security
from kquorum.network.security.tls import read_tls_files
from kquorum.node.config.addresses import HostPort
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest
from kquorum.wire.messages.metadata import MetadataRequest
from kquorum.wire.proto.inspect_pb2_grpc import InspectServicer, add_InspectServicer_to_server
from kquorum.wire.proto.quorum_pb2_grpc import QuorumServicer, add_QuorumServicer_to_server
from kquorum.wire.protocol.apis import ApiKey
from tests.support.certificates import HOSTS, issued, write
from tests.support.fake_nodes import cluster_response, fake_node, quorum_response
from tests.support.grpc_harness import run
from tests.support.grpc_source import FakeSource
from tests.support.metadata.grpc_members import FakeMembers
from tests.support.metadata.grpc_quorum import FakeQuorum
from tests.support.network.secured_peers import SCRAM, Keys, listener, serving

HOST = "127.0.0.1"
UNREACHABLE = HostPort(HOST, 1)


@contextlib.contextmanager
def mute_addresses(count: int) -> Iterator[list[HostPort]]:
    """Connections are taken, as by a process that was stopped; nothing reads what comes in."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        yield [HostPort(HOST, each.getsockname()[1]) for each in sockets]


# Mute


def test_a_leader_is_found_behind_nodes_that_hang() -> None:
    async def main(mute: list[HostPort]) -> str:
        server = await start_inspect_server(
            HOST,
            0,
            FakeSource(),
            quorum=FakeQuorum(),  # type: ignore[arg-type]
            members=FakeMembers(),
        )
        found = await describe_brokers([*mute, HostPort(HOST, server.bound_port)], 5_000)
        await server.stop(0.1)
        return found.cluster_id

    with mute_addresses(2) as mute:
        assert run(lambda: main(mute)) == "abc"


def test_grpc_and_what_stands_in_for_it_share_the_time() -> None:
    async def main(broker: str, mute: list[HostPort]) -> float:
        began = asyncio.get_running_loop().time()
        await ask_members(mute, None, broker, str(mute[0]), 2_000, falls_back=True)
        return asyncio.get_running_loop().time() - began

    with fake_node({ApiKey.DESCRIBE_CLUSTER: cluster_response}) as node, mute_addresses(5) as mute:
        assert asyncio.run(main(node.address, mute)) < 2.6


def test_topics_are_read_from_a_node_behind_one_that_hangs() -> None:
    async def main(mute: list[HostPort]) -> tuple[Any, ...]:
        server = await start_inspect_server(HOST, 0, FakeSource())
        found = await read_topics([*mute, HostPort(HOST, server.bound_port)], None, "local", 2_000)
        await server.stop(0.1)
        return found

    with mute_addresses(1) as mute:
        assert run(lambda: main(mute)) == ()


# Refusing


async def refusing_server(code: grpc.StatusCode) -> tuple[grpc.aio.Server, HostPort]:
    async def refuse(_request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.abort(code, "User:bob may not")

    server = grpc.aio.server()
    quorum, inspect = QuorumServicer(), InspectServicer()
    for name in ("DescribeBrokers", "DescribeNode", "GetElections"):
        setattr(quorum, name, refuse)
    for name in ("Image", "Watch"):
        setattr(inspect, name, refuse)
    add_QuorumServicer_to_server(quorum, server)  # type: ignore[no-untyped-call]
    add_InspectServicer_to_server(inspect, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    return server, HostPort(HOST, port)


async def first_change(address: HostPort) -> None:
    stream = ChangeStream([address], from_offset=None, kinds=(), timeout_ms=10_000, tell=lambda _: None)
    await anext(stream.changes())


@pytest.mark.parametrize("code", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED])
@pytest.mark.parametrize(
    "ask",
    [
        lambda address: describe_brokers([address, UNREACHABLE], 60_000),
        lambda address: fetch_elections([address], 0, 10_000, lambda _: None),
        lambda address: read_topics([UNREACHABLE, address], None, "local", 60_000),
        first_change,
    ],
)
def test_a_refusal_over_grpc_is_an_answer(
    code: grpc.StatusCode, ask: Callable[[HostPort], Awaitable[object]]
) -> None:
    """The long times show that it is one at once."""

    async def main() -> CliError:
        server, address = await refusing_server(code)
        with pytest.raises(CliError, match="User:bob may not") as refused:
            await ask(address)
        await server.stop(0.1)
        return refused.value

    assert run(main).status is ExitStatus.FAILED


def test_the_substitute_of_a_refused_call_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(broker: str, controller: str) -> None:
        server, address = await refusing_server(grpc.StatusCode.PERMISSION_DENIED)
        try:
            await ask_members([address], None, broker, controller, 1_000, falls_back=True)
        finally:
            await server.stop(0.1)

    with fake_node(
        {ApiKey.DESCRIBE_CLUSTER: cluster_response, ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}
    ) as node:
        asyncio.run(main(node.address, node.address))
    assert "User:bob may not" in capsys.readouterr().err
    with pytest.raises(CliError, match=r"Connection refused; over gRPC .*User:bob may not") as failed:
        asyncio.run(main(str(UNREACHABLE), str(UNREACHABLE)))
    assert failed.value.status is ExitStatus.FAILED


async def asked(port: int, security: ClientSecurity, timeout_ms: int = 60_000) -> Unanswered:
    async with ClusterClient(
        [HostPort("localhost", port)], timeout_ms, security_for=lambda _: security
    ) as client:
        with pytest.raises(Unanswered) as failed:
            await client.ask(FindCoordinatorRequest(key="k"))
    return failed.value


def test_without_a_certificate_the_listeners_own_reason_is_reported_at_once(tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    async def main() -> Unanswered:
        async with serving(listener("SSL", keys.mutual)) as server:
            return await asked(server.bound_port, client_security({"security.protocol": "SSL"} | keys.trust))

    failed = run(main)
    assert "it wants a certificate of this side (ssl.keystore.location)" in str(failed)
    assert failed.status is ExitStatus.FAILED


def test_a_wrong_password_is_a_refusal() -> None:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required username=alice password=wrong;"
    keys = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": SCRAM, "sasl.jaas.config": login}

    async def main() -> Unanswered:
        async with serving(listener("SASL_PLAINTEXT")) as server:
            return await asked(server.bound_port, client_security(keys))

    failed = run(main)
    assert "invalid credentials" in str(failed)
    assert failed.status is ExitStatus.FAILED


def test_plaintext_on_a_tls_port_gets_an_alert_soon(tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    async def main() -> Unanswered:
        async with serving(listener("SSL", keys.node)) as server:
            return await asked(server.bound_port, ClientSecurity())

    failed = run(main)
    assert "TLS" in str(failed)
    assert failed.status is ExitStatus.UNREACHABLE


def test_a_controller_is_known_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    answers: Any = {ApiKey.VOTE: dict, ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}
    with fake_node(answers) as node:
        assert run_command(["topics", "list", "--bootstrap-server", node.address]) == 1
    assert f"{node.address} is a controller, and Metadata is for brokers: ask one" in capsys.readouterr().err


# The most telling reason


def test_the_end_of_the_time_hides_no_reason() -> None:
    pending = PendingRequest(request=MetadataRequest())
    address = HostPort("h", 1)
    pending.begin_with(address, "has not answered")
    pending.fail(address, ConnectTimedOut("h", 1, "no answer within 1 ms"), 1, "no answer within 1 ms")
    assert pending.silent[address] == "h:1 has not answered"
    pending.fail(address, CannotConnect("h", 1, "refused"), 900, "refused")
    pending.begin_with(address, "takes connections, but has not answered")
    pending.fail(address, RequestTimedOut("h", 1, "Metadata", 1), 1, "not within 1 ms")
    assert pending.silent[address] == "refused"
    pending.fail(address, RequestTimedOut("h", 1, "Metadata", 900), 900, "not within 900 ms")
    assert pending.silent[address] == "not within 900 ms"


async def grpc_listener(folder: Path, *, mutual: bool) -> tuple[grpc.aio.Server, int]:
    files = read_tls_files(
        {
            "ssl.keystore.location": write(folder / "grpc.pem", issued("node", *HOSTS)),
            "ssl.truststore.location": Keys(folder).trust["ssl.truststore.location"],
        }
    )
    assert files.pair is not None
    server = grpc.aio.server()
    credentials = grpc.ssl_server_credentials(
        [(files.pair.key, files.pair.certificates)], files.trusted, mutual
    )
    port = server.add_secure_port(f"{HOST}:0", credentials)
    await server.start()
    return server, port


@pytest.mark.parametrize(
    ("has_tls", "mutual", "said"),
    [
        (False, False, "does it want TLS? security.protocol=SSL in the file of --command-config"),
        (True, True, "does it want another certificate of this side? ssl.keystore.location"),
    ],
)
def test_a_grpc_listener_with_tls_leaves_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], has_tls: bool, mutual: bool, said: str
) -> None:
    properties = write(
        tmp_path / "c.properties", f"security.protocol=SSL\nssl.truststore.location={tmp_path}/ca.pem\n"
    )
    options = ["--command-config", properties] if has_tls else []

    async def main() -> int:
        server, port = await grpc_listener(tmp_path, mutual=mutual)
        command = ["brokers", "--grpc", f"{HOST}:{port}", "--timeout-ms", "700", *options]
        status = await asyncio.to_thread(run_command, command)
        await server.stop(0.1)
        return status

    assert run(main) == 6
    assert said in capsys.readouterr().err
