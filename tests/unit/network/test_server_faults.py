"""What one bad peer, or one bad handler, may break: its own connection, with one line in the log."""

import logging
import struct
from collections.abc import Callable
from typing import Any

import pytest

from kquorum.network.limits import ServerCounters, ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.wire.messages.heartbeat import HeartbeatResponse
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from tests.support.network.peers import (
    ECHO,
    FLEXIBLE,
    OLD,
    RawClient,
    RunTest,
    echo_handler,
    echo_request,
    echo_response,
    header_bytes,
    raw_client,
    serving,
    until,
)

LIMITS = ServerLimits(max_request_bytes=10_000, drain_timeout_ms=200)

NO_TAGS = b"\x00"
_UNREADABLE = header_bytes(ECHO, FLEXIBLE, 1) + NO_TAGS + b"\xff\xff\xff\xff\x07cut"

# Bytes, the counter that counts them, and what the log says.
BAD_BYTES = {
    "negative length": (struct.pack(">i", -5), "bad_frames", "announces -5 bytes"),
    "zero length": (struct.pack(">i", 0), "bad_frames", "announces 0 bytes"),
    "too large": (struct.pack(">i", 10_001), "bad_frames", "announces 10001 bytes; the limit is 10000"),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "bad_frames", "the limit is 10000"),
    "no whole header": (
        encode_frame(b"\x00\x12\x00"),
        "unparsable_requests",
        "a request header needs 10 bytes",
    ),
    "client id cut": (
        encode_frame(struct.pack(">hhih", ECHO, OLD, 1, 50) + b"short"),
        "unparsable_requests",
        "the client id has 50 bytes, 5 are there",
    ),
    "unknown API": (
        encode_frame(header_bytes(999, 0, 1, b"odd")),
        "unsupported_requests",
        "unknown API 999 version 0 of client 'odd' is not offered",
    ),
    "unknown version": (
        encode_frame(header_bytes(ECHO, 77, 1)),
        "unsupported_requests",
        "FindCoordinator version 77 of client 'test' is not offered",
    ),
    "known API, not offered": (
        encode_frame(header_bytes(ApiKey.FETCH, 12, 1) + NO_TAGS),
        "unsupported_requests",
        "Fetch version 12 of client 'test' is not offered",
    ),
    "known version, not offered": (
        encode_frame(header_bytes(ECHO, FLEXIBLE + 1, 1) + NO_TAGS),
        "unsupported_requests",
        "FindCoordinator version 4 of client 'test' is not offered",
    ),
    "unreadable body": (
        encode_frame(_UNREADABLE),
        "unparsable_requests",
        "FindCoordinator version 3 of client 'test' cannot be read",
    ),
    "a flood of tagged fields in the header": (
        encode_frame(header_bytes(ECHO, FLEXIBLE, 1) + b"\xff\xff\x0f" + bytes(1000)),
        "unparsable_requests",
        "the header has 262143 tagged fields; at most 64 are read",
    ),
    "a flood of tagged fields in the body": (
        encode_frame(header_bytes(ECHO, FLEXIBLE, 1) + b"\x00\x02x\x00\xff\xff\x7f" + bytes(1000)),
        "unparsable_requests",
        "more than 200000 elements of arrays and unknown tagged fields",
    ),
    "a long client id": (
        encode_frame(header_bytes(ECHO, 77, 1, b"c" * 9_000)),
        "unsupported_requests",
        f"FindCoordinator version 77 of client '{'c' * 64}...' is not offered",
    ),
    "body cut": (
        encode_frame(header_bytes(ECHO, OLD, 1) + struct.pack(">h", 40) + b"short"),
        "unparsable_requests",
        "FindCoordinator version 0 of client 'test' cannot be read",
    ),
}


async def _still_serves(server: KafkaServer, client: RawClient, correlation_id: int) -> None:
    client.writer.write(echo_request("still here", correlation_id))
    assert await client.next_echo() == (correlation_id, "still here")


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bad_bytes_end_only_the_connection_they_came_on(
    run: RunTest, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    data, counter, words = BAD_BYTES[name]

    async def test() -> None:
        async with serving(limits=LIMITS) as server, raw_client(server) as good:
            await _still_serves(server, good, 1)
            async with raw_client(server) as bad:
                port = bad.writer.get_extra_info("sockname")[1]
                bad.writer.write(data + echo_request("never read", 9))
                assert await bad.is_closed_by_server()
            await _still_serves(server, good, 2)
            assert _faults(server.counters) == {counter: 1}
        (record,) = [record for record in caplog.records if record.name == "network.server"]
        assert record.levelno == logging.WARNING
        assert record.exc_info is None
        assert record.getMessage().startswith(
            f"closing the connection of 127.0.0.1:{port} on listener TEST: "
        )
        assert words in record.getMessage()

    run(test())


def _faults(counters: ServerCounters) -> dict[str, int]:
    names = ("bad_frames", "unsupported_requests", "unparsable_requests", "failed_requests")
    return {name: value for name in names if (value := getattr(counters, name))}


def test_requests_before_a_bad_one_are_answered(run: RunTest) -> None:
    async def test() -> None:
        async with serving(limits=LIMITS) as server, raw_client(server) as client:
            client.writer.write(echo_request("good", 1) + encode_frame(_UNREADABLE) + echo_request("no", 2))
            assert await client.next_echo() == (1, "good")
            assert await client.is_closed_by_server()

    run(test())


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 20])
def test_a_connection_dropped_within_a_frame_leaves_nothing_behind(run: RunTest, cut: int) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as good:
            async with raw_client(server) as dropped:
                dropped.writer.write(echo_request("whole", 1))
                assert await dropped.next_echo() == (1, "whole")
                dropped.writer.write(echo_request("cut", 2)[:cut])
                await dropped.writer.drain()
            await until(lambda: server.counters.open_connections == 1)
            await _still_serves(server, good, 3)
            assert server.counters.requests == 2
            assert _faults(server.counters) == {}

    run(test())


def test_a_frame_may_arrive_byte_by_byte(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            for byte in echo_request("drip", 1):
                client.writer.write(bytes([byte]))
                await client.writer.drain()
            assert await client.next_echo() == (1, "drip")

    run(test())


def test_an_unknown_tagged_field_is_passed_over(run: RunTest) -> None:
    tags = b"\x01\x2a\x03new"  # one field: tag 42, three bytes
    header = header_bytes(ECHO, FLEXIBLE, 1) + tags
    body = b"\x04key\x00" + tags

    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            client.writer.write(encode_frame(header + body))
            assert await client.next_echo() == (1, "key")

    run(test())


def test_bytes_after_the_body_are_passed_over(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            client.writer.write(encode_frame(echo_request("key", 1)[4:] + b"surplus"))
            assert await client.next_echo() == (1, "key")

    run(test())


def _raise(*_: object) -> None:
    raise RuntimeError("a handler's own fault")


def _answer_another_api(context: RequestContext, request: Any, reply: Reply) -> None:
    reply(HeartbeatResponse())


def _answer_unencodable(context: RequestContext, request: Any, reply: Reply) -> None:
    reply(echo_response(context.header.api_version, 17))  # type: ignore[arg-type]


def _answer_twice(context: RequestContext, request: Any, reply: Reply) -> None:
    echo_handler(context, request, reply)
    echo_handler(context, request, reply)


async def _frames_until_closed(client: RawClient) -> list[bytes]:
    frames = []
    while (frame := await client.next_frame()) is not None:
        frames.append(frame)
    return frames


@pytest.mark.parametrize("fault", [_raise, _answer_another_api, _answer_unencodable, _answer_twice])
def test_a_fault_of_the_handler_ends_only_that_connection(
    run: RunTest, caplog: pytest.LogCaptureFixture, fault: Callable[..., None]
) -> None:
    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        (fault if request.key == "fault" else echo_handler)(context, request, reply)

    async def test() -> None:
        async with serving(handler) as server, raw_client(server) as good:
            async with raw_client(server) as bad:
                bad.writer.write(echo_request("fault", 1))
                frames = await _frames_until_closed(bad)
                assert len(frames) == (1 if fault is _answer_twice else 0)
            await _still_serves(server, good, 2)
            assert _faults(server.counters) == {"failed_requests": 1}
        (record,) = [record for record in caplog.records if record.name == "network.server"]
        assert record.levelno == logging.ERROR
        assert record.exc_info is not None, "the log file is to have the traceback"
        assert "FindCoordinator version 3" in record.getMessage()

    run(test())
