"""The client's side: matching, negotiation, and each way in which a peer can fail it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kquorum.network import connection as connection_module
from kquorum.network.connection import MAX_FIRST_RESPONSE_BYTES, KafkaConnection
from kquorum.network.errors import (
    CannotConnect,
    ConnectionLost,
    NoCommonVersion,
    RequestTimedOut,
    UnsupportedField,
)
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.errors import DecodeError, TooManyElements, UnsupportedVersion
from kquorum.wire.message_codec import encode
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kquorum.wire.messages.vote import VoteRequest
from kquorum.wire.primitives import write_uvarint
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import decode_request_header
from tests.support.api_calls import request_of, response_of
from tests.support.kio.frames import encode_response
from tests.support.network.peers import (
    ECHO,
    FLEXIBLE,
    HOST,
    OLD,
    Held,
    RunTest,
    echo_response,
    holding_handler,
    serving,
    until,
)

TIMEOUT_MS = 5000
BODY = {"key": "a", "key_type": 0, "coordinator_keys": ["a"]}


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[KafkaConnection]:
    connection = await KafkaConnection.connect(HOST, port, "tester", TIMEOUT_MS)
    try:
        yield connection
    finally:
        connection.close()


@asynccontextmanager
async def peer(answer: Callable[[bytes], bytes | None]) -> AsyncIterator[int]:
    """A peer that maps each whole frame to bytes of its choice; None makes it close. Answers its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                data = answer(await reader.readexactly(size))
                if data is None:
                    break
                writer.write(data)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _echo_entity(text: str = "a", version: int = FLEXIBLE) -> Any:
    return request_of(ECHO, version, {"key": text, "key_type": 0})


def test_a_message_is_sent_in_the_highest_common_version_and_answered_with_its_response(run: RunTest) -> None:
    def handler(context: RequestContext, _request: Any, reply: Reply) -> None:
        version = context.header.api_version
        coordinator = Coordinator(key="a", node_id=version, host="h", port=9)
        reply(FindCoordinatorResponse(node_id=version, host="h", port=9, coordinators=(coordinator,)))

    async def test() -> None:
        async with serving(handler) as server, connected(server.bound_port) as connection:
            response = await connection.call(FindCoordinatorRequest(key="a"), TIMEOUT_MS)
            assert response == FindCoordinatorResponse(node_id=FLEXIBLE, host="h", port=9)
            old = await connection.send_request(FindCoordinatorRequest(key="a"), OLD)
            assert old == FindCoordinatorResponse(host="h", port=9)
            with pytest.raises(UnsupportedVersion, match="version 0 has no field key_type"):
                connection.send_request(FindCoordinatorRequest(key="a", key_type=1), OLD)
            assert len(connection._pending) == 0

    run(test())


def test_a_call_with_a_field_that_the_peer_does_not_know_is_not_sent(run: RunTest) -> None:
    async def test() -> None:
        async with (
            serving(supported={ECHO: (OLD, OLD)}) as server,
            connected(server.bound_port) as connection,
        ):
            with pytest.raises(
                UnsupportedField, match=r"FindCoordinator cannot be sent to .* no field key_type"
            ):
                await connection.call(FindCoordinatorRequest(key="a", key_type=1), TIMEOUT_MS)
            assert (len(connection._pending), connection.is_lost) == (0, False)

    run(test())


def test_a_call_that_is_not_answered_times_out(run: RunTest) -> None:
    held: Held = []

    async def test() -> None:
        async with serving(holding_handler(held)) as server, connected(server.bound_port) as connection:
            await connection.common_version(ECHO)
            with pytest.raises(RequestTimedOut, match="FindCoordinator"):
                await connection.call(FindCoordinatorRequest(key="a"), 1)

    run(test())


def test_the_versions_are_asked_for_once(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server, connected(server.bound_port) as connection:
            for text in ("a", "b"):
                response = await connection.call(FindCoordinatorRequest(key=text), TIMEOUT_MS)
                assert response.host == text
            assert server.counters.requests == 3

    run(test())


def test_a_request_that_differs_by_version_is_made_for_the_one_that_both_know(run: RunTest) -> None:
    made: list[int] = []

    def make(version: int) -> FindCoordinatorRequest:
        made.append(version)
        return FindCoordinatorRequest(key=f"for {version}")

    async def test() -> None:
        async with serving(supported={ECHO: (OLD, FLEXIBLE)}) as server, connected(server.bound_port) as peer:
            response = await peer.call(ByVersion(FindCoordinatorRequest, make), TIMEOUT_MS)
            assert (response.host, made) == (f"for {FLEXIBLE}", [FLEXIBLE])

    run(test())


def test_pipelined_requests_each_get_their_own_response(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server, connected(server.bound_port) as connection:
            futures = [connection.send_request(_echo_entity(str(number)), FLEXIBLE) for number in range(1000)]
            assert len(connection._pending) == 1000
            responses: list[Any] = await asyncio.gather(*futures)
            assert [response.host for response in responses] == [str(number) for number in range(1000)]
            assert len(connection._pending) == 0

    run(test())


def test_correlation_ids_match_responses_that_come_out_of_order(run: RunTest) -> None:
    """Kafka answers in order; a peer that does not is still understood."""
    frames: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        frames.append(frame)
        if len(frames) < 2:
            return b""
        return b"".join(map(_echo, reversed(frames)))

    async def test() -> None:
        async with peer(answer) as port, connected(port) as connection:
            futures = [connection.send_request(_echo_entity(text), FLEXIBLE) for text in ("one", "other")]
            responses: list[Any] = await asyncio.gather(*futures)
            assert [response.host for response in responses] == ["one", "other"]

    run(test())


def _echo(frame: bytes) -> bytes:
    header, position = decode_request_header(frame)
    text = frame[position + 1 : position + frame[position]].decode()
    entity = echo_response(FLEXIBLE, text)
    return encode_frame(encode_response(ECHO, FLEXIBLE, header.correlation_id, entity))


def test_a_peer_that_knows_only_older_api_versions_is_asked_again(run: RunTest) -> None:
    asked: list[int] = []

    def answer(frame: bytes) -> bytes:
        header, _ = decode_request_header(frame)
        asked.append(header.api_version)
        keys = [
            {"api_key": ApiKey.API_VERSIONS, "min_version": 0, "max_version": 2},
            {"api_key": ECHO, "min_version": 1, "max_version": 2},
        ]
        version = header.api_version if header.api_version <= 2 else 0
        values = {"error_code": 0 if header.api_version <= 2 else 35, "api_keys": keys}
        entity = response_of(ApiKey.API_VERSIONS, version, values)
        return encode_frame(encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, entity))

    async def test() -> None:
        async with peer(answer) as port, connected(port) as connection:
            assert await connection.common_version(ECHO) == 2
            assert asked == [4, 2]

    run(test())


def test_an_api_that_the_peer_does_not_offer_is_named(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server, connected(server.bound_port) as connection:
            with pytest.raises(NoCommonVersion, match=r"Vote cannot be sent .* the peer does not offer it"):
                await connection.call(VoteRequest(), TIMEOUT_MS)
            assert not connection.is_lost

    run(test())


def test_a_request_without_response_times_out_and_its_late_response_is_dropped(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held)) as server, connected(server.bound_port) as connection:
            with pytest.raises(RequestTimedOut, match=r"did not answer FindCoordinator within 30 ms"):
                await connection.call(_echo_entity(), 30)
            await until(lambda: len(held) == 1)
            later = connection.send_request(_echo_entity("later"), FLEXIBLE)
            await until(lambda: len(held) == 2)
            for (_, _, reply), text in zip(held, ("late", "later"), strict=True):
                reply(echo_response(FLEXIBLE, text))
            response: Any = await later
            assert response.host == "later"
            assert len(connection._pending) == 0

    run(test())


def test_a_refused_connection_is_named(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server:
            port = server.bound_port
        with pytest.raises(CannotConnect, match=rf"cannot connect to {HOST}:{port}: .*refused"):
            await KafkaConnection.connect(HOST, port, None, TIMEOUT_MS)

    run(test())


def test_a_connection_that_is_not_accepted_times_out(run: RunTest, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        loop = asyncio.get_running_loop()
        connection = KafkaConnection.connect(HOST, 1, None, 20)
        monkeypatch.setattr(type(loop), "create_connection", never, raising=True)
        with pytest.raises(CannotConnect, match="no answer within 20 ms"):
            await connection

    run(test())


def test_pending_requests_fail_when_the_peer_closes(run: RunTest) -> None:
    async def test() -> None:
        async with peer(lambda _: None) as port, connected(port) as connection:
            futures = [connection.send_request(_echo_entity(), FLEXIBLE) for _ in range(3)]
            for future in futures:
                with pytest.raises(ConnectionLost, match=r"lost the connection to 127\.0\.0\.1"):
                    await future
            assert connection.is_lost
            with pytest.raises(ConnectionLost):
                await connection.send_request(_echo_entity(), FLEXIBLE)

    run(test())


def test_pending_requests_fail_when_this_side_closes(run: RunTest) -> None:
    async def test() -> None:
        held: Held = []
        async with serving(holding_handler(held)) as server, connected(server.bound_port) as connection:
            future = connection.send_request(_echo_entity(), FLEXIBLE)
            connection.close()
            with pytest.raises(ConnectionLost, match="closed on this side"):
                await future

    run(test())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (struct.pack(">i", -1), "announces -1 bytes"),
        (struct.pack(">i", 0x7FFFFFFF), "the limit is"),
        (encode_frame(struct.pack(">i", 4242)), "correlation id 4242, which no request has"),
        (encode_frame(b"\x00"), "a response header needs 4 bytes"),
    ],
)
def test_a_peer_that_breaks_the_protocol_is_dropped(run: RunTest, answer: bytes, words: str) -> None:
    async def test() -> None:
        async with peer(lambda _: answer) as port, connected(port) as connection:
            with pytest.raises(ConnectionLost, match=words):
                await connection.send_request(_echo_entity(), FLEXIBLE)

    run(test())


def test_a_peer_may_not_fill_the_memory_with_the_versions_that_it_offers(run: RunTest) -> None:
    """A file server on that port, or a hostile one: 30 million entries took a command to 2 GB."""

    async def test() -> None:
        async with (
            peer(lambda _: struct.pack(">i", 2 * MAX_FIRST_RESPONSE_BYTES)) as port,
            connected(port) as connection,
        ):
            with pytest.raises(ConnectionLost, match=f"the limit is {MAX_FIRST_RESPONSE_BYTES}"):
                await connection.common_version(ApiKey.FIND_COORDINATOR)

    run(test())


@pytest.mark.parametrize("is_lie", [True, False])
def test_a_peer_may_not_fill_the_memory_with_the_entries_of_an_answer(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, is_lie: bool
) -> None:
    """An answer may have 256 MiB, and an entry a few bytes, which take two hundred in memory."""
    if not is_lie:
        monkeypatch.setattr(connection_module, "MAX_RESPONSE_ELEMENTS", 100)
    most = connection_module.MAX_RESPONSE_ELEMENTS

    def answer(frame: bytes) -> bytes:
        header, _ = decode_request_header(frame)
        body = FindCoordinatorResponse(coordinators=(Coordinator(),) * (most + 1 if not is_lie else 1))
        data = encode(body, 4)
        if is_lie:
            write_uvarint(count := bytearray(), most + 2)
            data = data[:4] + count + data[5:]
        return encode_frame(struct.pack(">i", header.correlation_id) + b"\x00" + data)

    async def test() -> None:
        async with peer(answer) as port, connected(port) as connection:
            request = FindCoordinatorRequest(coordinator_keys=("a",))
            words = f"the answer of {HOST}:{port} to .* has more than {most} entries"
            with pytest.raises(TooManyElements, match=words):
                await connection.send_request(request, 4)

    run(test())


def test_an_unreadable_response_fails_only_its_own_request(run: RunTest) -> None:
    def answer(frame: bytes) -> bytes:
        header, _ = decode_request_header(frame)
        if header.correlation_id == 1:
            return encode_frame(struct.pack(">i", 1) + b"\x00\x00")
        return _echo(frame)

    async def test() -> None:
        async with peer(answer) as port, connected(port) as connection:
            futures = [connection.send_request(_echo_entity("x"), FLEXIBLE) for _ in range(2)]
            with pytest.raises(DecodeError):
                await futures[0]
            response: Any = await futures[1]
            assert response.host == "x"

    run(test())


def test_who_asks_without_a_future_hears_each_outcome_once_and_never_at_once(run: RunTest) -> None:
    heard: list[tuple[Any, Exception | None]] = []

    def answer(frame: bytes) -> bytes | None:
        header, _ = decode_request_header(frame)
        if header.correlation_id == 1:
            return encode_frame(struct.pack(">i", 1) + b"\x00\x00")
        return _echo(frame) if header.correlation_id == 2 else b""

    async def test() -> None:
        async with peer(answer) as port, connected(port) as connection:
            for count in range(3):
                connection.ask(_echo_entity("x"), FLEXIBLE, lambda *outcome: heard.append(outcome))
                assert len(heard) <= count
            await until(lambda: len(heard) == 2)
            connection.close()
            assert len(heard) == 2
            connection.ask(_echo_entity("x"), FLEXIBLE, lambda *outcome: heard.append(outcome))
            assert len(heard) == 2
            await until(lambda: len(heard) == 4)
            await asyncio.sleep(0)
        assert [response is None for response, _ in heard] == [True, False, True, True]
        assert heard[1][0].host == "x"
        assert isinstance(heard[0][1], DecodeError)
        assert [type(error) for _, error in heard[1:]] == [type(None), ConnectionLost, ConnectionLost]

    run(test())


def test_a_response_cut_in_the_middle_fails_its_request(run: RunTest) -> None:
    sent: list[bytes] = []

    def answer(frame: bytes) -> bytes | None:
        sent.append(frame)
        return _echo(frame)[:-3] if len(sent) == 1 else None

    async def test() -> None:
        async with peer(answer) as port, connected(port) as connection:
            cut = connection.send_request(_echo_entity(), FLEXIBLE)
            await until(lambda: len(sent) == 1)
            connection.send_request(_echo_entity(), FLEXIBLE).add_done_callback(asyncio.Future.exception)
            with pytest.raises(ConnectionLost):
                await cut

    run(test())


def test_a_version_that_is_not_known_is_refused_before_anything_is_sent(run: RunTest) -> None:
    async def test() -> None:
        async with serving() as server, connected(server.bound_port) as connection:
            with pytest.raises(UnsupportedVersion, match="version 99 of FindCoordinator"):
                connection.send_request(_echo_entity(), 99)
            assert len(connection._pending) == 0

    run(test())
