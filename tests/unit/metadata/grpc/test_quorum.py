"""The gRPC service Quorum, and the command line's side of it."""

import asyncio
from collections.abc import Iterator

import grpc
import pytest

from kquorum.cli.clients.grpc_client import transfer_leadership
from kquorum.cli.commands.quorum.history import fetch_elections
from kquorum.cli.failures import CliError
from kquorum.metadata.grpc.quorum.service import TransferRefused
from kquorum.metadata.grpc.server import start_inspect_server
from kquorum.metadata.grpc.source import LogUnreadable, NotTheLeader
from kquorum.node.config.addresses import HostPort
from kquorum.raft.elections_history import LeaderChangeAt, RoleEvent
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub
from tests.support.grpc_harness import failure_of, run
from tests.support.grpc_source import FakeSource
from tests.support.metadata.grpc_quorum import CHANGES, EVENTS, FakeQuorum

HOST = "127.0.0.1"


def test_leadership_is_handed_over_by_the_leading_node() -> None:
    async def main() -> list[list[int]]:
        other, leader = FakeQuorum(NotTheLeader("node 7 leads")), FakeQuorum()
        servers = [await start_inspect_server(HOST, 0, FakeSource(), quorum=item) for item in (other, leader)]
        addresses = [HostPort(HOST, 1), *(HostPort(HOST, server.bound_port) for server in servers)]
        await transfer_leadership(addresses, 8, 5000)
        for server in servers:
            await server.stop(0.1)
        return [other.targets, leader.targets]

    assert run(main) == [[], [8]]


def test_a_refusal_is_reported_in_the_nodes_words() -> None:
    async def main() -> str:
        quorum = FakeQuorum(TransferRefused("node 8 is not a voter, so it cannot lead"))
        server = await start_inspect_server(HOST, 0, FakeSource(), quorum=quorum)
        with pytest.raises(CliError) as refused:
            await transfer_leadership([HostPort(HOST, 1), HostPort(HOST, server.bound_port)], 8, 5000)
        await server.stop(0.1)
        return str(refused.value)

    told = run(main)
    assert "leadership was not transferred to node 8" in told
    assert "127.0.0.1:1: connection refused" in told
    assert "node 8 is not a voter, so it cannot lead" in told


def test_elections_come_over_as_they_were_noted() -> None:
    async def main() -> tuple[object, ...]:
        server = await start_inspect_server(HOST, 0, FakeSource(), quorum=FakeQuorum())
        told: list[str] = []
        addresses = [HostPort(HOST, server.bound_port), HostPort(HOST, 1)]
        (noted,) = await fetch_elections(addresses, 0, 5000, told.append)
        (later,) = await fetch_elections(addresses[:1], 2, 5000, told.append)
        await server.stop(0.1)
        return noted.place, noted.events, noted.leader_changes, later.events, later.leader_changes, told

    assert run(main) == (
        "node 7",
        EVENTS,
        CHANGES,
        EVENTS[1:],
        CHANGES[1:],
        ["without 127.0.0.1:1: connection refused"],
    )


def test_a_damaged_log_is_data_loss() -> None:
    async def main() -> grpc.StatusCode:
        server = await start_inspect_server(
            HOST, 0, FakeSource(), quorum=FakeQuorum(damage=LogUnreadable("offset 9 cannot be read"))
        )
        async with grpc.aio.insecure_channel(f"{HOST}:{server.bound_port}") as channel:
            failure = await failure_of(QuorumStub(channel).GetElections(pb.GetElectionsRequest()))
        await server.stop(0.1)
        return failure.code()

    assert run(main) is grpc.StatusCode.DATA_LOSS


class LongHistory(FakeQuorum):
    """`read` counts what was read since the loop had its last turn."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0

    def role_events(self) -> Iterator[RoleEvent]:
        for _ in range(5_000):
            self.read += 1
            yield EVENTS[0]

    def leader_changes(self, from_epoch: int) -> Iterator[LeaderChangeAt]:
        for _ in range(1_000):
            self.read += 1
            yield CHANGES[0]


def test_long_histories_are_read_slice_by_slice_whatever_number_of_clients_asks() -> None:
    async def main() -> tuple[int, set[tuple[int, int]]]:
        quorum, most = LongHistory(), 0

        async def look() -> None:
            nonlocal most
            while True:
                most, quorum.read = max(most, quorum.read), 0
                await asyncio.sleep(0)

        server = await start_inspect_server(HOST, 0, FakeSource(), quorum=quorum)
        looking = asyncio.ensure_future(look())
        async with grpc.aio.insecure_channel(f"{HOST}:{server.bound_port}") as channel:
            asked = (QuorumStub(channel).GetElections(pb.GetElectionsRequest()) for _ in range(5))
            answers = await asyncio.gather(*asked)
        looking.cancel()
        await server.stop(0.1)
        return most, {(len(each.events), len(each.leader_changes)) for each in answers}

    most, lengths = run(main)
    assert lengths == {(5_000, 1_000)}
    assert most <= 128
