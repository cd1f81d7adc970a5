"""The node's budget over real sockets: reading pauses and goes on, and what is held is given back."""

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from kquorum.network.limits import BudgetLimits, ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import SharedLimits
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.frames import encode_frame
from tests.support.api_calls import request_of, response_of
from tests.support.kio.frames import encode_request
from tests.support.network.peers import (
    FLEXIBLE,
    SUPPORTED,
    Held,
    RawClient,
    RunTest,
    echo_handler,
    echo_request,
    echo_response,
    holding_handler,
    raw_client,
    serving,
    settled,
    until,
)

SMALL_BUDGET = BudgetLimits(max_bytes=1_000_000, guaranteed_bytes=2000, guaranteed_requests=2)
LARGE = "x" * 30_000  # as large as a string may be in this request is 32,767


def pushing(client: RawClient, requests: int) -> None:
    client.writer.write(b"".join(echo_request(LARGE, number) for number in range(requests)))


def test_reading_pauses_while_unanswered_requests_fill_the_budget_and_goes_on_after(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        shared = SharedLimits(budget=SMALL_BUDGET)
        limits = ServerLimits(max_in_flight_requests=5000, drain_timeout_ms=200)
        async with (
            serving(holding_handler(held), shared=shared, limits=limits) as server,
            raw_client(server) as client,
        ):
            pushing(client, 200)
            await until(lambda: server.counters.muted_connections == 1)
            assert await settled(lambda: len(held)) < 200
            # A chunk is read as a whole before it counts.
            assert shared.budget.held_bytes < SMALL_BUDGET.max_bytes + 400_000
            for number in range(200):
                await until(partial(has_come, held, number))
                held[number][2](echo_response(FLEXIBLE, str(number)))
            assert [await client.next_echo() for _ in range(200)] == [(n, str(n)) for n in range(200)]
            assert server.counters.mutings >= 1
            assert server.counters.muted_connections == server.counters.pending_requests == 0
            await until(lambda: shared.budget.held_bytes == 0)

    run(test())


def test_peers_with_small_requests_are_served_while_others_fill_the_budget(run: RunTest) -> None:
    held: Held = []

    def handler(context: Any, request: Any, reply: Any) -> None:
        if request.key == LARGE:
            held.append((context, request, reply))
        else:
            echo_handler(context, request, reply)

    async def test() -> None:
        shared = SharedLimits(budget=SMALL_BUDGET)
        async with (
            serving(handler, shared=shared) as server,
            serving(handler, shared=shared) as other_listener,
            raw_client(server) as greedy,
            raw_client(server) as modest,
            raw_client(other_listener) as elsewhere,
        ):
            pushing(greedy, 100)
            await until(lambda: server.counters.muted_connections == 1)
            for number in range(5):
                for client in (modest, elsewhere):
                    client.writer.write(echo_request("small", number))
                    assert await client.next_echo() == (number, "small")
            assert server.counters.muted_connections == 1

    run(test())


def test_a_request_larger_than_the_budget_is_answered(run: RunTest) -> None:
    async def test() -> None:
        shared = SharedLimits(budget=BudgetLimits(max_bytes=1000, guaranteed_bytes=10))
        async with serving(shared=shared) as server, raw_client(server) as one, raw_client(server) as two:
            for client in (one, two):
                client.writer.write(echo_request(LARGE, 1)[:20_000])
            await until(lambda: shared.budget.held_bytes == 40_000)
            for client in (one, two):
                client.writer.write(echo_request(LARGE, 1)[20_000:])
            for client in (one, two):
                assert await client.next_echo() == (1, LARGE)
            await until(lambda: shared.budget.held_bytes == 0)

    run(test())


def test_no_more_requests_are_handled_at_once_than_the_node_allows_beyond_the_guaranteed(
    run: RunTest,
) -> None:
    async def test() -> None:
        held: Held = []
        shared = SharedLimits(budget=BudgetLimits(max_requests=5, guaranteed_requests=2))
        async with (
            serving(holding_handler(held), shared=shared) as server,
            raw_client(server) as one,
            raw_client(server) as two,
        ):
            one.writer.write(b"".join(echo_request(str(number), number) for number in range(10)))
            await until(lambda: len(held) == 5)
            two.writer.write(b"".join(echo_request(str(number), number) for number in range(10)))
            assert await settled(lambda: len(held)) == 7, "five, and two that each is guaranteed"
            for number in range(20):
                await until(partial(has_come, held, number))
                _, request, reply = held[number]
                reply(echo_response(FLEXIBLE, request.key))
            for client in (one, two):
                assert [await client.next_echo() for _ in range(10)] == [(n, str(n)) for n in range(10)]
            assert shared.budget.held_requests == 0

    run(test())


def test_many_connections_have_no_more_than_twice_the_requests_under_way(run: RunTest) -> None:
    """The guaranteed shares once had no common limit, and requests filled a broker with 2 GB."""

    async def test() -> None:
        held: Held = []
        shared = SharedLimits(budget=BudgetLimits(max_requests=5, guaranteed_requests=2))
        async with serving(holding_handler(held), shared=shared) as server, AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(raw_client(server)) for _ in range(12)]
            for client in clients:
                client.writer.write(echo_request("a", 0) + echo_request("b", 1))
            assert await settled(lambda: len(held)) == 10
            for number in range(24):
                await until(partial(has_come, held, number))
                _, request, reply = held[number]
                reply(echo_response(FLEXIBLE, request.key))
            for client in clients:
                assert [await client.next_echo() for _ in "ab"] == [(0, "a"), (1, "b")]
            assert shared.budget.held_requests == shared.budget.waiting == 0

    run(test())


def test_requests_of_the_quorum_that_wait_for_their_answers_keep_no_other_waiting(run: RunTest) -> None:
    quorum = ApiKey.END_QUORUM_EPOCH
    request = request_of(quorum, 0, {"cluster_id": None, "topics": ()})
    response = response_of(quorum, 0, {"error_code": 0, "topics": ()})
    frame = encode_frame(encode_request(quorum, 0, 1, None, request))

    async def test() -> None:
        held: Held = []
        shared = SharedLimits(budget=BudgetLimits(max_requests=1, guaranteed_requests=1))
        offered = {**SUPPORTED, quorum: (0, 0)}
        async with (
            serving(holding_handler(held), shared=shared, supported=offered) as server,
            AsyncExitStack() as stack,
        ):
            for number in range(4):
                (await stack.enter_async_context(raw_client(server))).writer.write(frame)
                await until(partial(has_come, held, number))
            (await stack.enter_async_context(raw_client(server))).writer.write(echo_request("a", 1))
            await until(partial(has_come, held, 4))
            await until(lambda: shared.budget.held_first == 4)
            for _, _, reply in held[:4]:
                reply(response)
            await until(lambda: shared.budget.held_requests == 1)
            assert shared.budget.held_first == 0

    run(test())


def test_requests_that_wait_for_an_event_keep_no_other_waiting(run: RunTest) -> None:
    """Before: 1,000 Fetches or joins that waited for five minutes kept all other clients waiting for as long, also when
    their own had gone."""

    async def test() -> None:
        held: Held = []
        shared = SharedLimits(budget=BudgetLimits(max_requests=1, guaranteed_requests=1))

        def handler(context: RequestContext, request: Any, reply: Reply) -> None:
            holding_handler(held)(context, request, reply)
            if request.key.startswith("park"):
                context.park()
                context.park()

        async with serving(handler, shared=shared) as server, AsyncExitStack() as stack:
            for number in range(4):
                (await stack.enter_async_context(raw_client(server))).writer.write(
                    echo_request("park", 0) + echo_request("park" + LARGE[:1_000], 1)
                )
                await until(partial(has_come, held, 2 * number + 1))
            await until(lambda: shared.budget.held_requests == shared.budget.held_bytes == 0)
            assert server.counters.pending_requests == 8
            assert all(context.frame == b"" for context, _, _ in held)
            other = await stack.enter_async_context(raw_client(server))
            other.writer.write(echo_request("a", 1))
            await until(partial(has_come, held, 8))
            assert shared.budget.held_requests == 1
            for _, request, reply in held:
                reply(echo_response(FLEXIBLE, request.key[:5]))
            assert await other.next_echo() == (1, "a")
            await until(lambda: server.counters.pending_requests == 0)
            assert shared.budget.held_requests == 0

    run(test())


def test_a_parked_request_whose_client_has_gone_is_let_go(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []

        def handler(context: RequestContext, request: Any, reply: Reply) -> None:
            holding_handler(held)(context, request, reply)
            context.when_gone(lambda: reply(None))
            context.park()

        shared = SharedLimits()
        async with serving(handler, shared=shared) as server:
            async with raw_client(server) as client:
                client.writer.write(echo_request("a", 1))
                await until(partial(has_come, held, 0))
                assert server.counters.pending_requests == 1
            await until(lambda: server.counters.pending_requests == 0)
            assert shared.budget.held_bytes == 0

    run(test())


@pytest.mark.parametrize("elements", [1_000, 10_000])
def test_a_request_that_was_read_counts_with_what_its_elements_take(run: RunTest, elements: int) -> None:
    """Also where it is read aside."""

    async def test() -> None:
        held: Held = []
        version = supported_versions(ApiKey.DELETE_TOPICS)[1]
        topics = [{"name": "t", "topic_id": None} for _ in range(elements)]
        body = request_of(ApiKey.DELETE_TOPICS, version, {"topics": topics, "timeout": 1, "timeout_ms": 1})
        frame = encode_frame(encode_request(ApiKey.DELETE_TOPICS, version, 1, None, body))
        shared = SharedLimits()
        offered = {ApiKey.DELETE_TOPICS: (version, version)}
        async with (
            serving(holding_handler(held), shared=shared, supported=offered) as server,
            raw_client(server) as client,
        ):
            client.writer.write(frame)
            await until(lambda: len(held) == 1)
            await until(lambda: shared.budget.held_bytes >= len(frame) + 200 * elements)
            held[0][2](None)
            assert await client.next_frame() is None
            await until(lambda: shared.budget.held_bytes == 0)

    run(test())


def test_requests_count_until_they_are_answered_though_their_connection_is_gone(run: RunTest) -> None:
    """Else clients that ask and go away would fill the memory with what their requests hold."""

    async def test() -> None:
        held: Held = []
        shared = SharedLimits()
        async with serving(holding_handler(held), shared=shared) as server:
            for taken in (4, 8, 12):
                async with raw_client(server) as client:
                    pushing(client, 4)
                    client.writer.write(echo_request(LARGE, 5)[:100])
                    await until(partial(has_come, held, taken - 1))
                    await until(lambda: shared.budget.half_read_bytes > 0)
                await until(lambda: server.counters.open_connections == 0)
            assert shared.budget.held_requests == server.counters.pending_requests == 12
            assert shared.budget.held_bytes > 12 * 30_000
            assert shared.budget.half_read_bytes == 0, "no sender will complete it"
            for _, _, reply in held:
                reply(echo_response(FLEXIBLE, ""))
            assert (shared.budget.held_bytes, shared.budget.held_requests) == (0, 0)
            assert server.counters.pending_requests == 0

    run(test())


def test_a_request_that_is_never_answered_counts_only_until_it_is_overdue(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        shared = SharedLimits()
        limits = ServerLimits(request_timeout_ms=60, drain_timeout_ms=200)
        async with serving(holding_handler(held), shared=shared, limits=limits) as server:
            async with raw_client(server) as client:
                client.writer.write(echo_request("never", 1))
                await until(lambda: len(held) == 1)
            await until(lambda: server.counters.open_connections == 0)
            await until(lambda: shared.budget.held_requests == 0)
            held[0][2](echo_response(FLEXIBLE, "much too late"))
            assert (shared.budget.held_bytes, server.counters.pending_requests) == (0, 0)

    run(test())


def has_come(held: Held, number: int) -> bool:
    return len(held) > number
