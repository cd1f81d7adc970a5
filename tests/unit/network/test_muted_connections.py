"""Connections that are not read for want of room: they do not count as idle, and leave no state behind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kquorum.network.limits import BudgetLimits, ConnectionLimits, ServerLimits
from kquorum.network.server import KafkaServer, SharedLimits
from tests.support.network.peers import (
    FLEXIBLE,
    Held,
    RawClient,
    RunTest,
    echo_request,
    echo_response,
    holding_handler,
    look_at_deadlines,
    raw_client,
    serving,
    until,
)

LARGE = "x" * 20_000
IDLE_MS = 60_000


@dataclass
class Full:
    """A node whose budget is filled by one unanswered request, and a peer that is muted amid a frame."""

    server: KafkaServer
    shared: SharedLimits
    held: Held
    muted: RawClient
    frame: bytes


@asynccontextmanager
async def full_node() -> AsyncIterator[Full]:
    held: Held = []
    shared = SharedLimits(budget=BudgetLimits(max_bytes=10_000, guaranteed_bytes=100))
    limits = ServerLimits(max_idle_ms=IDLE_MS, drain_timeout_ms=200)
    frame = echo_request(LARGE, 7)
    async with (
        serving(holding_handler(held), shared=shared, limits=limits) as server,
        raw_client(server) as greedy,
        raw_client(server) as muted,
    ):
        greedy.writer.write(echo_request(LARGE, 1))
        await until(lambda: len(held) == 1)
        muted.writer.write(frame[:5_000])
        await until(lambda: shared.budget.half_read_bytes == 5_000)
        await until(lambda: server.counters.muted_connections > 0)
        yield Full(server, shared, held, muted, frame)


def test_a_muted_connection_is_not_idle(run: RunTest) -> None:
    async def test() -> None:
        async with full_node() as node:
            async with raw_client(node.server) as idle:
                await until(lambda: node.server.counters.open_connections == 3)
                look_at_deadlines(node.server, after_s=IDLE_MS / 1000 + 1)
                assert await idle.is_closed_by_server()
            assert node.server.counters.idle_connections_closed == 1
            node.held[0][2](echo_response(FLEXIBLE, ""))
            node.muted.writer.write(node.frame[5_000:])
            await until(lambda: len(node.held) == 2)
            node.held[1][2](echo_response(FLEXIBLE, "at last"))
            assert await node.muted.next_echo() == (7, "at last")

    run(test())


def test_a_muted_connection_that_goes_away_is_neither_muted_nor_waiting(run: RunTest) -> None:
    async def test() -> None:
        async with full_node() as node:
            assert node.shared.budget.waiting > 0
            node.muted.writer.transport.abort()
            await node.server.stop()
            assert node.server.counters.muted_connections == 0
            assert node.shared.budget.waiting == 0

    run(test())


def test_a_protected_listener_is_not_held_to_the_rate_of_the_node(run: RunTest) -> None:
    async def test() -> None:
        shared = SharedLimits(ConnectionLimits(max_connection_creation_rate=0))
        async with serving(shared=shared, is_protected=True) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1))
            assert await client.next_echo() == (1, "a")
            assert server.counters.refused_connections == 0

    run(test())
