"""A server that is asked politely: replies, their order, pipelining, limits that make it wait, and the way it ends."""

import asyncio
import gc
from typing import Any
from weakref import ref

import pytest

from kquorum.network.limits import ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import CannotListen, KafkaServer, PortInUse
from kquorum.wire.message_codec import encode
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.network.peers import (
    ECHO,
    FLEXIBLE,
    HOST,
    OLD,
    SUPPORTED,
    Held,
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


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_a_request_is_answered_in_its_version(run: RunTest, version: int) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            client.writer.write(echo_request("seven", 7, version))
            assert await client.next_echo(version) == (7, "seven")

    run(test())


def test_the_context_tells_where_a_request_came_from(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with (
            serving(holding_handler(held)) as server,
            raw_client(server) as one,
            raw_client(server) as two,
        ):
            one.writer.write(echo_request("a", 5, client_id=None))
            await until(lambda: len(held) == 1)
            two.writer.write(echo_request("b", 6))
            await until(lambda: len(held) == 2)
            first, second = held[0][0], held[1][0]
            assert (first.peer_host, first.listener_name, first.principal) == (HOST, "TEST", "User:ANONYMOUS")
            assert (first.header.api_key, first.header.correlation_id, first.header.client_id) == (
                ECHO,
                5,
                None,
            )
            assert second.header.client_id == "test"
            assert first.connection_id != second.connection_id

    run(test())


def test_replies_out_of_order_go_out_in_the_order_of_requests(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held)) as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request(str(number), number) for number in range(4)))
            await until(lambda: len(held) == 4)
            for number in (2, 3, 1, 0):
                held[number][2](echo_response(FLEXIBLE, f"answer {number}"))
            answers = [await client.next_echo() for _ in range(4)]
            assert answers == [(number, f"answer {number}") for number in range(4)]

    run(test())


def test_an_early_answer_waits_for_the_one_before_it(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held)) as server, raw_client(server) as client:
            client.writer.write(echo_request("0", 0) + echo_request("1", 1))
            await until(lambda: len(held) == 2)
            held[1][2](echo_response(FLEXIBLE, "1"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.reader.readexactly(1), 0.05)
            held[0][2](echo_response(FLEXIBLE, "0"))
            assert [await client.next_echo() for _ in range(2)] == [(0, "0"), (1, "1")]

    run(test())


def test_a_thousand_pipelined_requests_are_answered_in_order(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_in_flight_requests=16, drain_timeout_ms=200)
        async with serving(limits=limits) as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request(f"key {number}", number) for number in range(1000)))
            for number in range(1000):
                assert await client.next_echo() == (number, f"key {number}")
            assert server.counters.requests == 1000

    run(test())


def test_no_more_requests_are_handled_than_the_limit_allows_in_flight(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        limits = ServerLimits(max_in_flight_requests=5, drain_timeout_ms=200)
        async with serving(holding_handler(held), limits=limits) as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request(str(number), number) for number in range(12)))
            await until(lambda: len(held) == 5)
            held[4][2](echo_response(FLEXIBLE, "4"))  # behind four that wait, so nothing goes out
            assert len(held) == 5
            held[0][2](echo_response(FLEXIBLE, "0"))
            await until(lambda: len(held) == 6)
            for number in (1, 2, 3):
                held[number][2](echo_response(FLEXIBLE, str(number)))
            await until(lambda: len(held) == 10)
            assert [await client.next_echo() for _ in range(5)] == [(n, str(n)) for n in range(5)]

    run(test())


def test_an_api_may_have_fewer_requests_in_flight_on_a_connection(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        limits = ServerLimits(max_in_flight_by_api={ECHO: 3}, drain_timeout_ms=200)
        async with (
            serving(holding_handler(held), limits=limits) as server,
            raw_client(server) as client,
            raw_client(server) as other,
        ):
            client.writer.write(b"".join(echo_request(str(number), number) for number in range(6)))
            assert await settled(lambda: server.counters.requests) == 3
            # It is answered, though it goes out behind two others, and so is not in flight any more.
            held[2][2](echo_response(FLEXIBLE, "2"))
            assert await settled(lambda: server.counters.requests) == 4
            other.writer.write(echo_request("other", 9))
            assert await settled(lambda: server.counters.requests) == 5
            for number in (0, 1, 3):
                held[number][2](echo_response(FLEXIBLE, str(number)))
            assert await settled(lambda: server.counters.requests) == 7
            assert [await client.next_echo() for _ in range(4)] == [(n, str(n)) for n in range(4)]

    run(test())


def test_a_peer_that_does_not_read_is_no_longer_served_nor_read_from(run: RunTest) -> None:
    async def test() -> None:
        text = "x" * 30_000
        limits = ServerLimits(max_unsent_bytes=100_000, drain_timeout_ms=200)
        async with serving(limits=limits) as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request(text, number) for number in range(2000)))
            assert await settled(client.writer.transport.get_write_buffer_size) > 0, "it read on regardless"
            assert 0 < await settled(lambda: server.counters.requests) < 2000
            for number in range(2000):
                assert await client.next_echo() == (number, text)

    run(test())


def test_small_requests_for_large_replies_do_not_pile_up(run: RunTest) -> None:
    """All of them arrive in one chunk, so it is not enough to stop reading."""
    body = EncodedBody(encode(echo_response(FLEXIBLE, "x" * 30_000), FLEXIBLE))
    limits = ServerLimits(max_unsent_bytes=100_000, max_in_flight_requests=2000, drain_timeout_ms=200)

    def answer(_context: RequestContext, _request: Any, reply: Reply) -> None:
        reply(body)

    async def test() -> None:
        async with serving(answer, limits=limits) as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request("", number) for number in range(2000)))
            assert 0 < await settled(lambda: server.counters.requests) < 2000
            assert [(await client.next_echo())[0] for _ in range(2000)] == list(range(2000))

    run(test())


def test_early_answers_that_wait_for_the_first_are_bounded_by_their_bytes(run: RunTest) -> None:
    held: Held = []

    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        if context.header.correlation_id == 0:
            held.append((context, request, reply))
        else:
            reply(echo_response(FLEXIBLE, "x" * 30_000))

    async def test() -> None:
        limits = ServerLimits(max_unsent_bytes=100_000, drain_timeout_ms=200)
        async with serving(handler, limits=limits) as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request("", number) for number in range(20)))
            assert (
                await settled(lambda: server.counters.requests) == 5
            )  # one that waits, four of 30,000 bytes
            held[0][2](echo_response(FLEXIBLE, "first"))
            assert [(await client.next_echo())[0] for _ in range(20)] == list(range(20))

    run(test())


def test_an_encoded_body_is_sent_as_it_is(run: RunTest) -> None:
    body = EncodedBody(encode(echo_response(FLEXIBLE, "once"), FLEXIBLE))

    async def test() -> None:
        async with (
            serving(lambda _context, _request, reply: reply(body)) as server,
            raw_client(server) as client,
        ):
            client.writer.write(echo_request("a", 1) + echo_request("b", 2))
            assert [await client.next_echo() for _ in range(2)] == [(1, "once"), (2, "once")]

    run(test())


def test_the_answer_none_closes_after_the_answers_before_it(run: RunTest) -> None:
    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        if request.key == "close":
            reply(None)
        else:
            echo_handler(context, request, reply)

    async def test() -> None:
        async with serving(handler) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1) + echo_request("close", 2) + echo_request("b", 3))
            assert await client.next_echo() == (1, "a")
            assert await client.is_closed_by_server()

    run(test())


def test_an_answer_to_a_connection_that_is_gone_is_dropped(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held)) as server:
            async with raw_client(server) as client:
                client.writer.write(echo_request("a", 1))
                await until(lambda: len(held) == 1)
            await until(lambda: server.counters.open_connections == 0)
            held[0][2](echo_response(FLEXIBLE, "a"))
            assert server.counters.failed_requests == 0

    run(test())


def test_an_idle_connection_is_closed_but_not_one_that_waits_for_a_reply(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        limits = ServerLimits(max_idle_ms=60, drain_timeout_ms=200)
        async with serving(holding_handler(held), limits=limits) as server, raw_client(server) as waiting:
            waiting.writer.write(echo_request("a", 1))
            for closed in (1, 2):
                async with raw_client(server) as idle:
                    assert await idle.is_closed_by_server()
                assert server.counters.idle_connections_closed == closed
            held[0][2](echo_response(FLEXIBLE, "late"))
            assert await waiting.next_echo() == (1, "late")

    run(test())


def test_a_connection_above_the_limit_is_closed(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_connections=1, drain_timeout_ms=200)
        async with serving(limits=limits) as server, raw_client(server) as first:
            first.writer.write(echo_request("a", 1))
            assert await first.next_echo() == (1, "a")
            async with raw_client(server) as second:
                assert await second.is_closed_by_server()
            first.writer.write(echo_request("b", 2))
            assert await first.next_echo() == (2, "b")
            assert server.counters.refused_connections == 1

    run(test())


def test_stop_lets_the_replies_under_way_go_out(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        limits = ServerLimits(drain_timeout_ms=5000)
        async with serving(holding_handler(held), limits=limits) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1))
            await until(lambda: len(held) == 1)
            stopping = asyncio.ensure_future(server.stop())
            await asyncio.sleep(0)  # lets `stop` begin
            client.writer.write(echo_request("too late", 2))
            asyncio.get_running_loop().call_later(0.05, held[0][2], echo_response(FLEXIBLE, "a"))
            assert await client.next_echo() == (1, "a")
            assert await client.is_closed_by_server()
            await stopping
            assert len(held) == 1
            assert server.counters.open_connections == 0

    run(test())


def test_stop_does_not_wait_longer_than_its_bound(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        limits = ServerLimits(drain_timeout_ms=50)
        async with serving(holding_handler(held), limits=limits) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1))
            await until(lambda: len(held) == 1)
            await asyncio.wait_for(server.stop(), 60)
            assert await client.is_closed_by_server()

    run(test())


def test_a_stopped_server_accepts_no_connection(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server:
            port = server.bound_port
            await server.stop()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(HOST, port)

    run(test())


def test_a_port_in_use_is_named_with_the_remedy(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server:
            port = server.bound_port
            second = KafkaServer(
                host=HOST, port=port, handler=echo_handler, supported=SUPPORTED, listener_name="TEST"
            )
            with pytest.raises(
                PortInUse, match=f"{HOST}:{port}: the port is already in use; stop the process"
            ):
                await second.start()

    run(test())


def test_an_address_of_another_machine_is_refused_by_name(run: RunTest) -> None:
    async def test() -> None:
        server = KafkaServer(
            host="192.0.2.1", port=0, handler=echo_handler, supported=SUPPORTED, listener_name="TEST"
        )
        with pytest.raises(CannotListen, match=r"192\.0\.2\.1:0: .*; check the host"):
            await server.start()

    run(test())


def test_a_version_that_cannot_be_read_may_not_be_offered() -> None:
    with pytest.raises(ValueError, match="FETCH is offered in versions"):
        KafkaServer(
            host=HOST, port=0, handler=echo_handler, supported={ApiKey.FETCH: (4, 99)}, listener_name="TEST"
        )


def test_a_closed_connection_is_freed_without_the_garbage_collector(run: RunTest) -> None:
    """`node.state_freeze` would keep it for good otherwise, 4 KB each."""

    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held)) as server:
            gc.disable()
            try:
                async with raw_client(server) as one, raw_client(server) as two:
                    one.writer.write(echo_request("a", 1))
                    await until(lambda: len(held) == 1)
                    held.pop()[2](echo_response(FLEXIBLE, "a"))
                    assert await one.next_echo() == (1, "a")
                    two.writer.write(echo_request("b", 2))
                    await until(lambda: len(held) == 1)
                    connections = [ref(each) for each in server._state.connections]
                await until(lambda: not server._state.connections)
                await until(lambda: [each() for each in connections].count(None) == 1)
                held.pop()[2](echo_response(FLEXIBLE, "b"))
                await until(lambda: [each() for each in connections] == [None, None])
            finally:
                gc.enable()

    run(test())
