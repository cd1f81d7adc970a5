"""Peers that begin a frame and do not end it, that do not take their output, and requests without a response."""

import asyncio
import logging
import socket
import time
from typing import Any

import pytest

from kquorum.network.limits import ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.wire.message_codec import encode
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.network.peers import (
    FLEXIBLE,
    HOST,
    Held,
    RawClient,
    RunTest,
    echo_handler,
    echo_request,
    echo_response,
    holding_handler,
    look_at_deadlines,
    raw_client,
    serving,
    settled,
    until,
)

LARGE_ANSWER = EncodedBody(encode(echo_response(FLEXIBLE, "x" * 30_000), FLEXIBLE))


def limits(**arguments: Any) -> ServerLimits:
    return ServerLimits(**({"drain_timeout_ms": 200} | arguments))


async def served(client: RawClient, correlation_id: int = 1) -> None:
    client.writer.write(echo_request("good", correlation_id))
    assert await client.next_echo() == (correlation_id, "good")


def only_line(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> str:
    (record,) = [record for record in caplog.records if record.name == "network.server"]
    assert record.levelno == level
    return record.getMessage()


@pytest.mark.parametrize("cut", [1, 4, 20])
def test_a_frame_that_is_not_completed_ends_its_connection(
    run: RunTest, caplog: pytest.LogCaptureFixture, cut: int
) -> None:
    async def test() -> None:
        async with (
            serving(limits=limits(frame_timeout_ms=60)) as server,
            raw_client(server) as silent,
            raw_client(server) as half_open,
        ):
            half_open.writer.write(echo_request("cut", 1)[:cut])
            assert await half_open.is_closed_by_server()
            assert server.counters.unfinished_frames_closed == 1
            await served(silent)

    run(test())
    assert f"it sent {cut} bytes of a frame and did not complete it in time" in only_line(caplog)


def test_a_byte_now_and_then_is_not_enough(run: RunTest) -> None:
    async def drip(client: RawClient) -> None:
        for byte in echo_request("x" * 10_000, 1):
            client.writer.write(bytes([byte]))
            await asyncio.sleep(0.005)  # the peer's pace, which is what the test is about

    async def test() -> None:
        async with serving(limits=limits(frame_timeout_ms=60)) as server, raw_client(server) as slow:
            dripping = asyncio.ensure_future(drip(slow))
            assert await slow.is_closed_by_server()
            dripping.cancel()
            assert server.counters.unfinished_frames_closed == 1

    run(test())


def test_each_frame_has_its_own_time(run: RunTest) -> None:
    """Frames that overlap in chunks keep the decoder busy without end, and none of them is late."""

    async def test() -> None:
        async with serving(limits=limits(frame_timeout_ms=150)) as server, raw_client(server) as client:
            requests = b"".join(echo_request(str(number), number) for number in range(20))
            size = len(requests) // 20
            client.writer.write(requests[: size // 2])
            for number in range(19):
                client.writer.write(requests[size // 2 + number * size :][:size])
                assert (await client.next_echo())[0] == number
                await asyncio.sleep(0.02)  # the peer's pace: all together take longer than one frame may
            assert server.counters.unfinished_frames_closed == 0

    run(test())


def test_time_in_which_the_server_does_not_read_does_not_count(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with (
            serving(
                holding_handler(held), limits=limits(frame_timeout_ms=60, max_in_flight_requests=1)
            ) as server,
            raw_client(server) as client,
            raw_client(server) as late,
        ):
            client.writer.write(echo_request("first", 1) + echo_request("second", 2)[:10])
            await until(lambda: len(held) == 1)
            late.writer.write(b"\x00")  # shows that deadlines are being looked at meanwhile
            assert await late.is_closed_by_server()
            assert server.counters.unfinished_frames_closed == 1
            client.writer.write(echo_request("second", 2)[10:])
            held[0][2](echo_response(FLEXIBLE, "first"))
            await until(lambda: len(held) == 2)
            held[1][2](echo_response(FLEXIBLE, "second"))
            assert [await client.next_echo() for _ in range(2)] == [(1, "first"), (2, "second")]

    run(test())


def answer_largely(_context: RequestContext, request: Any, reply: Reply) -> None:
    reply(LARGE_ANSWER if request.key == "large" else echo_response(FLEXIBLE, request.key))


async def deaf_client(server: KafkaServer, receive_bytes: int = 4096) -> socket.socket:
    """Asks for more than the kernel takes, and reads nothing."""
    loop = asyncio.get_running_loop()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.setblocking(False)
    await loop.sock_connect(client, (HOST, server.bound_port))
    await loop.sock_sendall(client, b"".join(echo_request("large", number) for number in range(500)))
    return client


def test_a_peer_that_takes_no_output_is_cut_off(run: RunTest, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with (
            serving(answer_largely, limits=limits(write_timeout_ms=100)) as server,
            raw_client(server) as good,
        ):
            deaf = await deaf_client(server)
            await until(lambda: server.counters.slow_readers_closed == 1)
            await until(lambda: server.counters.open_connections == 1)
            assert server._state.shared.budget.held_bytes == 0
            await served(good)
            deaf.close()

    run(test())
    assert "bytes of output waiting for 100 ms" in only_line(caplog)


def test_a_peer_that_takes_its_output_slowly_is_left_alone(run: RunTest) -> None:
    async def test() -> None:
        async with serving(answer_largely, limits=limits(write_timeout_ms=400)) as server:
            loop = asyncio.get_running_loop()
            slow = await deaf_client(server, receive_bytes=200_000)
            began_s, read = loop.time(), 0
            while loop.time() - began_s < 0.9:
                read += len(await loop.sock_recv(slow, 20_000))
                await asyncio.sleep(0.005)  # the peer's pace
            assert read > 65_536
            assert server.counters.slow_readers_closed == 0
            slow.close()

    run(test())


def test_a_connection_that_is_to_close_does_not_wait_for_its_peer_for_good(run: RunTest) -> None:
    """Output waits, and the last of the requests is bad: the rest of the output goes first, but not for ever."""

    async def test() -> None:
        async with serving(answer_largely, limits=limits(write_timeout_ms=100)) as server:
            deaf = await deaf_client(server)
            # So many that the output is more than kernel and server take; then nothing is read either.
            assert await settled(lambda: server.counters.requests) < 500
            for connection in tuple(server._state.connections):
                connection.close()  # type: ignore[attr-defined]
            await until(lambda: server.counters.open_connections == 0)
            deaf.close()

    run(test())


def test_a_request_without_an_answer_ends_its_connection_as_our_fault(
    run: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    held: Held = []

    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        if request.key == "never":
            held.append((context, request, reply))
        else:
            echo_handler(context, request, reply)

    async def test() -> None:
        async with (
            serving(handler, limits=limits(request_timeout_ms=60)) as server,
            raw_client(server) as unlucky,
            raw_client(server) as good,
        ):
            unlucky.writer.write(echo_request("never", 1) + echo_request("behind it", 2))
            assert await unlucky.is_closed_by_server()
            assert server.counters.unanswered_requests_closed == 1
            held[0][2](echo_response(FLEXIBLE, "too late"))
            await served(good)

    run(test())
    assert "FindCoordinator version 3 had no answer in time" in only_line(caplog, logging.ERROR)


def test_one_connection_with_many_requests_leaves_the_others_their_turn(run: RunTest) -> None:
    """All of them are in one chunk, and each takes a while."""
    served_slowly: list[str] = []

    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        if request.key == "slow":
            served_slowly.append(request.key)
            end_s = time.monotonic() + 0.002
            while time.monotonic() < end_s:
                pass
        reply(echo_response(context.header.api_version, request.key))

    async def test() -> None:
        async with serving(handler) as server, raw_client(server) as many, raw_client(server) as one:
            many.writer.write(b"".join(echo_request("slow", number) for number in range(150)))
            await until(lambda: bool(served_slowly))
            await served(one)
            assert len(served_slowly) < 120, "all of the other's came first"
            assert [(await many.next_echo())[0] for _ in range(150)] == list(range(150))

    run(test())


def test_a_listener_gives_unauthenticated_clients_limited_time_for_a_whole_request(
    run: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    """One that has sent a request stays, however long it is quiet then."""

    async def test() -> None:
        limits = ServerLimits(evicts_after_idle_ms=10_000, drain_timeout_ms=200)
        async with (
            serving(limits=limits) as server,
            raw_client(server) as silent,
            raw_client(server) as drips,
            raw_client(server) as asks,
        ):
            drips.writer.write(echo_request("a", 1)[:9])
            asks.writer.write(echo_request("a", 1))
            await asks.next_echo()
            await until(lambda: server.counters.received_bytes > len(echo_request("a", 1)))
            look_at_deadlines(server, after_s=9)
            assert server.counters.open_connections == 3
            look_at_deadlines(server, after_s=11)
            assert await silent.is_closed_by_server()
            assert await drips.is_closed_by_server()
            asks.writer.write(echo_request("b", 2))
            assert (await asks.next_echo())[1] == "b"

    run(test())
    assert (
        len([each for each in caplog.records if "no whole request within 10000 ms" in each.getMessage()]) == 2
    )
