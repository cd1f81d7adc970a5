"""A connection whose client exceeded a quota (KIP-219): its answer goes out at once, what it sends then waits."""

import asyncio
from typing import Any

from kquorum.network.limits import ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.protocol.headers import NO_ANSWER
from tests.support.network.peers import (
    FLEXIBLE,
    Held,
    RunTest,
    echo_handler,
    echo_request,
    echo_response,
    holding_handler,
    look_at_deadlines,
    raw_client,
    serving,
    until,
)

LONG_MS = 3_600_000
SHORT_MS = 150
IDLE_MS = 60_000


def throttling(context: RequestContext, request: Any, reply: Reply) -> None:
    """The request says for how many ms."""
    context.throttle(int(request.key))
    echo_handler(context, request, reply)


def test_the_answer_comes_at_once_and_the_next_request_after_the_throttle(run: RunTest) -> None:
    async def test() -> None:
        async with serving(throttling) as server, raw_client(server) as client:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            # The second came in the same segment: it was read already.
            client.writer.write(echo_request(str(SHORT_MS), 1) + echo_request("0", 2))
            assert await client.next_echo() == (1, str(SHORT_MS))
            assert server.counters.throttled_connections == server.counters.throttles == 1
            assert await client.next_echo() == (2, "0")
            assert loop.time() - began_s >= SHORT_MS / 1_000
            assert server.counters.throttled_connections == 0

    run(test())


def test_a_throttled_connection_is_not_read_from_and_others_are_served(run: RunTest) -> None:
    async def test() -> None:
        async with serving(throttling) as server, raw_client(server) as client, raw_client(server) as other:
            client.writer.write(echo_request(str(LONG_MS), 1))
            assert await client.next_echo() == (1, str(LONG_MS))
            received = server.counters.received_bytes
            client.writer.write(echo_request("0", 2))
            for number in range(20):
                other.writer.write(echo_request("0", number))
                await other.next_echo()
            assert server.counters.requests == 21
            others_bytes = 20 * len(echo_request("0", 1))
            assert server.counters.received_bytes == received + others_bytes

    run(test())


def test_the_throttle_that_ends_last_counts(run: RunTest) -> None:
    held: Held = []

    async def test() -> None:
        async with serving(holding_handler(held)) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1))
            await until(lambda: len(held) == 1)
            context, _, reply = held[0]
            context.throttle(SHORT_MS)
            context.throttle(0)
            context.throttle(LONG_MS)
            context.throttle(SHORT_MS)
            assert server.counters.throttles == server.counters.throttled_connections == 1
            reply(echo_response(FLEXIBLE, "a"))
            assert await client.next_echo() == (1, "a")
            client.writer.write(echo_request("b", 2))
            await asyncio.sleep(2 * SHORT_MS / 1_000)  # the shorter ones would have ended
            assert len(held) == 1

    run(test())


def test_a_request_without_an_answer_is_throttled_too(run: RunTest) -> None:
    held: Held = []

    async def test() -> None:
        async with serving(holding_handler(held)) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1) + echo_request("b", 2))
            await until(lambda: len(held) == 2)
            held[0][0].throttle(SHORT_MS)
            held[0][2](NO_ANSWER)
            held[1][2](echo_response(FLEXIBLE, "b"))
            assert await client.next_echo() == (2, "b")
            assert server.counters.throttled_connections == 1
            client.writer.write(echo_request("c", 3))
            await until(lambda: len(held) == 3)
            assert server.counters.throttled_connections == 0
            held[2][2](echo_response(FLEXIBLE, "c"))
            assert await client.next_echo() == (3, "c")

    run(test())


def test_a_throttled_connection_ends_when_it_is_idle_too_long(run: RunTest) -> None:
    """Its client may be gone, which only reading would show."""

    async def test() -> None:
        limits = ServerLimits(max_idle_ms=IDLE_MS, drain_timeout_ms=200)
        async with serving(throttling, limits=limits) as server, raw_client(server) as client:
            client.writer.write(echo_request(str(LONG_MS), 1) + echo_request("0", 2))
            assert await client.next_echo() == (1, str(LONG_MS))
            look_at_deadlines(server, after_s=IDLE_MS / 1_000 + 1)
            assert await client.is_closed_by_server()
            assert server.counters.idle_connections_closed == 1
            assert server.counters.throttled_connections == 0

    run(test())


def test_a_server_that_stops_does_not_wait_for_throttles(run: RunTest) -> None:
    async def test() -> None:
        async with serving(throttling) as server, raw_client(server) as client:
            client.writer.write(echo_request(str(LONG_MS), 1))
            assert await client.next_echo() == (1, str(LONG_MS))
            await asyncio.wait_for(server.stop(), 30)
            assert server.counters.throttled_connections == 0
            assert await client.is_closed_by_server()

    run(test())
