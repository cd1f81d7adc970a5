"""The calls of `Quorum` that tell of nodes and brokers, over real gRPC, and the command line's side of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import grpc
import pytest

from kquorum.cli.commands.brokers.members_grpc import (
    describe_brokers,
    describe_nodes,
    row_of,
    wait_applied,
    what_it_says,
)
from kquorum.cli.commands.brokers.rows import BrokerRow, problems_of, table_of
from kquorum.cli.commands.topics.wait_all import lagging_words
from kquorum.cli.failures import CliError
from kquorum.metadata.grpc.server import start_inspect_server
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub
from kquorum.wire.uuids import uuid_to_text
from tests.support.grpc_harness import failure_of, run
from tests.support.grpc_source import FakeSource
from tests.support.metadata.grpc_members import FakeMembers
from tests.support.metadata.grpc_quorum import FakeQuorum

HOST = "127.0.0.1"
T = TypeVar("T")


def served(members: FakeMembers | None, work: Callable[[HostPort], Awaitable[T]]) -> T:
    async def main() -> T:
        server = await start_inspect_server(HOST, 0, FakeSource(), quorum=FakeQuorum(), members=members)  # type: ignore[arg-type]
        try:
            return await work(HostPort(HOST, server.bound_port))
        finally:
            await server.stop(0.1)

    return run(main)


def test_brokers_are_reported_with_all_that_is_known_of_them() -> None:
    members = served(FakeMembers(), lambda address: describe_brokers([HostPort(HOST, 1), address], 5_000))
    assert (members.cluster_id, members.committed_offset) == ("abc", 50)
    first, second = members.brokers
    assert first == BrokerRow(
        broker_id=11,
        host="host",
        port=9011,
        rack="a",
        fenced=False,
        state="active",
        epoch=22,
        applied_offset=50,
        lag=0,
        silent_ms=30,
        directories=(uuid_to_text(UUID(int=11 << 64)),),
    )
    assert (second.state, second.lag) == ("fenced", 10)


def test_a_follower_refuses_and_names_the_leader() -> None:
    def ask(address: HostPort) -> Awaitable[Any]:
        return describe_brokers([address], 300)

    with pytest.raises(CliError, match=r"how far the brokers follow is not known: .*: node 8 leads"):
        served(FakeMembers(leads=False), ask)
    with pytest.raises(CliError, match="whether all brokers have it is not known"):
        served(FakeMembers(leads=False), lambda address: wait_applied([address], None, 300))


def test_waiting_ends_when_the_last_broker_has_it() -> None:
    async def work(address: HostPort) -> pb.WaitAppliedResponse:
        source.applied = 49
        asking = asyncio.ensure_future(wait_applied([address], None, 10_000))
        while source.looks < 3:  # noqa: ASYNC110 - the service polls its source
            await asyncio.sleep(0.005)
        assert not asking.done()
        source.applied = 50
        return await asking

    source = FakeMembers()
    answer = served(source, work)
    assert (answer.is_applied, answer.offset) == (True, 50)
    assert [broker.broker_id for broker in answer.fenced] == [12]


def test_waiting_ends_with_the_time_and_says_who_lacks_it() -> None:
    answer = served(FakeMembers(applied=47), lambda address: wait_applied([address], 49, 200))
    assert (answer.is_applied, answer.offset) == (False, 49)
    words = lagging_words((row_of(broker) for broker in answer.lagging), answer.offset)
    assert words == "broker 11 (host:9011) lacks 2 records, last heard 0.0 s ago"


def test_waiting_ends_with_the_lead() -> None:
    async def work(address: HostPort) -> grpc.aio.AioRpcError:
        async with grpc.aio.insecure_channel(str(address)) as channel:
            stub: Any = QuorumStub(channel)  # type: ignore[no-untyped-call]
            asking = asyncio.ensure_future(failure_of(stub.WaitApplied(pb.WaitAppliedRequest(offset=99))))
            while not source.looks:  # noqa: ASYNC110 - the service polls its source
                await asyncio.sleep(0.005)
            source.leads = False
            return await asking

    source = FakeMembers()
    assert served(source, work).code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_node_tells_of_itself_whether_it_leads_or_not() -> None:
    (told,) = served(
        FakeMembers(leads=False), lambda address: describe_nodes([address, HostPort(HOST, 1)], 5_000)
    ).values()
    assert (told.node_id, list(told.roles), told.offset, told.ms_since_commit) == (
        7,
        ["controller", "broker"],
        50,
        120,
    )
    assert (told.broker.state, told.broker.epoch) == ("running", 5)
    assert what_it_says(told) is None
    assert what_it_says(pb.DescribeNodeResponse(reason="the broker is starting")) == "the broker is starting"
    cut_off = pb.DescribeNodeResponse(is_cut_off=True, ms_since_commit=7_300, offset=50)
    assert what_it_says(cut_off) == "cut off for 7.3 s, serves offset 50"


def test_a_node_tells_of_its_machine_only_on_request() -> None:
    async def work(address: HostPort) -> list[pb.DescribeNodeResponse]:
        async with grpc.aio.insecure_channel(str(address)) as channel:
            stub: Any = QuorumStub(channel)  # type: ignore[no-untyped-call]
            asked = [pb.DescribeNodeRequest(), pb.DescribeNodeRequest(with_host=True)]
            return [await stub.DescribeNode(each) for each in asked]

    bare, told = served(FakeMembers(), work)
    assert not bare.HasField("host")
    assert (told.host.version, told.host.open_files) == ("1.2.3 (0123456789ab)", 40)
    assert [(each.path, each.usable_bytes, each.fault) for each in told.host.folders] == [("/data", 60, "")]


def test_a_node_without_members_says_that_it_tells_nothing() -> None:
    async def work(address: HostPort) -> grpc.aio.AioRpcError:
        async with grpc.aio.insecure_channel(str(address)) as channel:
            stub: Any = QuorumStub(channel)  # type: ignore[no-untyped-call]
            return await failure_of(stub.DescribeNode(pb.DescribeNodeRequest()))

    assert served(None, work).code() is grpc.StatusCode.UNIMPLEMENTED


WELL = BrokerRow(broker_id=1, host="h", port=1, rack=None, fenced=False, state="active", lag=3)


def test_output_for_a_script() -> None:
    rows = (
        WELL,
        replace(WELL, broker_id=2, state="fenced", fenced=True),
        replace(WELL, broker_id=3, lag=2_000),
        replace(WELL, broker_id=4, lag=None),
        replace(WELL, broker_id=5, says="cut off for 7.3 s, serves offset 50"),
    )
    assert list(problems_of(rows, 1_000)) == [
        "broker 2 is fenced",
        "broker 3 is 2,000 records behind",
        "how far broker 4 follows is not known",
        "broker 5: cut off for 7.3 s, serves offset 50",
    ]


def test_a_table_has_no_column_for_unreported_values() -> None:
    assert table_of([WELL])[0] == ("#broker", "address", "rack", "state", "#lag")
    names, cells = table_of([WELL, replace(WELL, broker_id=2, says="the broker is starting", epoch=4)])
    assert names == ("#broker", "address", "rack", "state", "#epoch", "#lag", "~says")
    assert [row[-1] for row in cells] == [None, "the broker is starting"]
