"""The rights that calls of `Inspect` and `Quorum` need under an authorizer, which judges every call of both."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import grpc
import pytest

from kquorum.cli.clients.grpc_client import transfer_leadership
from kquorum.cli.commands.watch.stream import ChangeStream
from kquorum.cli.failures import CliError
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.grpc.access import CALL_RULES, MemberGate
from kquorum.metadata.image.image import MetadataImage
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import broker_pb2, inspect_pb2, quorum_pb2
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub
from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub
from tests.support.acl_worlds import acl, acls_of, authorizer
from tests.support.grpc_harness import failure_of, run, serving, take_all
from tests.support.grpc_source import FakeSource
from tests.support.metadata.grpc_quorum import FakeQuorum

ANONYMOUS = "User:ANONYMOUS"
SERVICES: list[tuple[Any, Any]] = [
    (inspect_pb2.DESCRIPTOR.services_by_name["Inspect"], InspectStub),
    (quorum_pb2.DESCRIPTOR.services_by_name["Quorum"], QuorumStub),
]
# Every other call needs DESCRIBE. Who copies the log gets the secrets in it, as who fetches it does.
NEEDS = {"TransferLeadership": "ALTER", "CopyLog": "CLUSTER_ACTION", "CopySnapshot": "CLUSTER_ACTION"}


def gate(*operations: Operation, who: Authorizer | None = None) -> MemberGate:
    empty = MetadataImage.empty()
    acls = acls_of(acl(operation, principal=ANONYMOUS, host="*") for operation in operations)
    image = replace(empty, security=replace(empty.security, acls=acls))
    return MemberGate(RequestAuthorizer(who or authorizer()), lambda: image, lambda _: ANONYMOUS)


@asynccontextmanager
async def node(found: MemberGate | None) -> AsyncIterator[tuple[FakeQuorum, grpc.aio.Channel]]:
    quorum: Any = FakeQuorum()
    async with serving(FakeSource(), quorum=quorum, gate=found) as rig:
        yield quorum, rig.channel


async def statuses(channel: grpc.aio.Channel) -> dict[str, grpc.aio.AioRpcError]:
    """What each call of both services is refused with, of those that are."""
    failures = {}
    for service, stub_of in SERVICES:
        make_stub: Callable[[grpc.aio.Channel], Any] = stub_of
        stub = make_stub(channel)
        for method in service.methods:
            call = getattr(stub, method.name)(method.input_type._concrete_class())
            try:
                await (call.read() if method.server_streaming else call)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.PERMISSION_DENIED:
                    failures[method.name] = error
    return failures


def lacking(*operations: Operation) -> dict[str, str]:
    """Method and right of the calls that are refused to a client with these rights."""

    async def main() -> dict[str, str]:
        async with node(gate(*operations)) as (_, channel):
            failures = {}
            for name, error in (await statuses(channel)).items():
                assert ("kafka-error", "CLUSTER_AUTHORIZATION_FAILED") in tuple(
                    error.trailing_metadata() or ()
                )
                failures[name] = (error.details() or "").partition(f"{ANONYMOUS} lacks ")[2].split()[0]
            return failures

    return run(main)


def test_without_a_right_no_call_of_either_service_is_served() -> None:
    wanted = {
        method.name: NEEDS.get(method.name, "DESCRIBE")
        for service, _ in SERVICES
        for method in service.methods
    }
    assert lacking() == wanted
    others = {name: right for name, right in wanted.items() if right != "CLUSTER_ACTION"}
    assert lacking(Operation.CLUSTER_ACTION) == others
    copies = {name: right for name, right in wanted.items() if right == "CLUSTER_ACTION"}
    assert lacking(Operation.DESCRIBE, Operation.ALTER) == copies


async def transfer(channel: grpc.aio.Channel) -> Any:
    make_stub: Callable[[grpc.aio.Channel], Any] = QuorumStub
    return await make_stub(channel).TransferLeadership(quorum_pb2.TransferLeadershipRequest(target_id=8))


async def elections(channel: grpc.aio.Channel) -> Any:
    make_stub: Callable[[grpc.aio.Channel], Any] = QuorumStub
    return await make_stub(channel).GetElections(quorum_pb2.GetElectionsRequest())


async def image(channel: grpc.aio.Channel) -> Any:
    make_stub: Callable[[grpc.aio.Channel], Any] = InspectStub
    return await make_stub(channel).Image(inspect_pb2.ImageRequest()).read()


def test_describe_on_the_cluster_allows_reads_but_no_leadership_transfer() -> None:
    async def main() -> Sequence[int]:
        async with node(gate(Operation.DESCRIBE)) as (quorum, channel):
            assert await elections(channel)
            assert await image(channel)
            error = await failure_of(transfer(channel))
            assert "lacks ALTER on the cluster" in (error.details() or "")
            return quorum.targets

    assert run(main) == []


SUPER = AuthorizerConfig(super_users=frozenset({ANONYMOUS}))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(lambda: gate(Operation.ALTER), id="by an ACL"),
        pytest.param(lambda: gate(who=Authorizer(SUPER, lambda: False)), id="as super user, nothing loaded"),
        pytest.param(
            lambda: MemberGate(RequestAuthorizer(None), MetadataImage.empty, str), id="no authorizer"
        ),
        pytest.param(lambda: None, id="no gate"),
    ],
)
def test_alter_on_the_cluster_allows_leadership_transfer_and_reads(
    found: Callable[[], MemberGate | None],
) -> None:
    async def main() -> Sequence[int]:
        async with node(found()) as (quorum, channel):
            await transfer(channel)
            assert await elections(channel)
            return quorum.targets

    assert run(main) == [8]


def test_a_node_that_has_not_loaded_the_acls_says_to_ask_again() -> None:
    async def main() -> grpc.StatusCode:
        async with node(gate(who=Authorizer(AuthorizerConfig(), lambda: False))) as (_, channel):
            return (await failure_of(transfer(channel))).code()

    assert run(main) is grpc.StatusCode.UNAVAILABLE


def test_the_command_line_tells_the_refusal_in_the_nodes_words() -> None:
    lacks = "CLUSTER_AUTHORIZATION_FAILED: User:CN=connector lacks"

    async def main() -> tuple[str, str]:
        found = MemberGate(
            RequestAuthorizer(authorizer()), MetadataImage.empty, lambda _: "User:CN=connector"
        )
        async with serving(FakeSource(), quorum=cast(Any, FakeQuorum()), gate=found) as rig:
            addresses = [HostPort("127.0.0.1", rig.server.bound_port)]
            with pytest.raises(CliError) as not_moved:
                await transfer_leadership(addresses, 8, 5000)
            stream = ChangeStream(
                addresses, from_offset=None, kinds=(), timeout_ms=5_000, tell=lambda _: None
            )
            with pytest.raises(CliError) as not_watched:
                await anext(stream.changes())
            return str(not_moved.value), str(not_watched.value)

    not_moved, not_watched = run(main)
    assert f"{lacks} ALTER on the cluster" in not_moved
    assert f"{lacks} DESCRIBE on the cluster" in not_watched


def test_a_request_is_not_parsed_before_its_caller_is_judged() -> None:
    """Parsed, 256 KiB of empty names took 5 MB, for a client without any right."""

    async def main() -> list[grpc.StatusCode]:
        async with node(gate()) as (_, channel):
            calls = [channel.unary_stream(path)(b"\xff\xff") for path in sorted(CALL_RULES)]
            return [(await failure_of(take_all(call))).code() for call in calls]

    # This node has no `Broker`.
    served = [path for path in sorted(CALL_RULES) if ".Broker/" not in path]
    assert run(main).count(grpc.StatusCode.PERMISSION_DENIED) == len(served)


def test_each_method_has_a_rule() -> None:
    services = [*(service for service, _ in SERVICES), broker_pb2.DESCRIPTOR.services_by_name["Broker"]]
    methods = {f"/{service.full_name}/{method.name}" for service in services for method in service.methods}
    assert set(CALL_RULES) == methods
