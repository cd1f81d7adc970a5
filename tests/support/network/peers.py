"""A server with a small handler, and a client that writes bytes as it likes."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from kquorum.network.limits import ServerLimits
from kquorum.network.requests import Handler, Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import FrameDecoder, encode_frame
from kquorum.wire.protocol.headers import decode_response, read_correlation_id
from tests.support.api_calls import request_of, response_of
from tests.support.kio.frames import encode_request

HOST = "127.0.0.1"
DEADLINE_S = 60

# FindCoordinator is a small API with a string to echo: version 0 has the old headers, version 3 the flexible ones.
ECHO = ApiKey.FIND_COORDINATOR
OLD, FLEXIBLE = 0, 3
SUPPORTED = {ECHO: (OLD, FLEXIBLE), ApiKey.HEARTBEAT: (0, 4)}

Held = list[tuple[RequestContext, Any, Reply]]
RunTest = Callable[[Coroutine[Any, Any, None]], None]


def echo_handler(_context: RequestContext, request: FindCoordinatorRequest, reply: Reply) -> None:
    """Answers with the key of the request as the host."""
    reply(FindCoordinatorResponse(error_message=None, node_id=1, host=request.key, port=9))


def echo_response(version: int, text: str) -> Any:
    values = {"error_code": 0, "error_message": None, "node_id": 1, "host": text, "port": 9}
    return response_of(ECHO, version, values)


def holding_handler(held: Held) -> Handler:
    """Keeps the replies for the test to give, in whichever order it likes."""
    return lambda context, request, reply: held.append((context, request, reply))


def echo_request(
    text: str, correlation_id: int, version: int = FLEXIBLE, client_id: str | None = "test"
) -> bytes:
    """A whole frame."""
    entity = request_of(ECHO, version, {"key": text, "key_type": 0})
    return encode_frame(encode_request(ECHO, version, correlation_id, client_id, entity))


@asynccontextmanager
async def serving(handler: Handler = echo_handler, **arguments: Any) -> AsyncIterator[KafkaServer]:
    limits = arguments.pop("limits", ServerLimits(drain_timeout_ms=200))
    arguments = {"supported": SUPPORTED, "listener_name": "TEST"} | arguments
    server = KafkaServer(host=HOST, port=0, handler=handler, limits=limits, **arguments)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class RawClient:
    """Frames by hand. `next_frame` is None at the end of the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._decoder = FrameDecoder(1 << 28)
        self._frames: list[bytes] = []

    async def next_frame(self) -> bytes | None:
        while not self._frames:
            data = await asyncio.wait_for(self._read(), DEADLINE_S)
            if not data:
                return None
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)

    async def _read(self) -> bytes:
        try:
            return await self.reader.read(1 << 16)
        except ConnectionResetError:
            return b""

    async def next_echo(self, version: int = FLEXIBLE) -> tuple[int, str]:
        frame = await self.next_frame()
        assert frame is not None, "the server closed the connection"
        response = decode_response(FindCoordinatorRequest, version, frame)
        return read_correlation_id(frame), response.host

    async def is_closed_by_server(self) -> bool:
        return await self.next_frame() is None


@asynccontextmanager
async def raw_client(server: KafkaServer) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection(HOST, server.bound_port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that the loop will bring about; fails when it does not."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - a condition, not an event of ours
            await asyncio.sleep(0.001)


async def settled(value: Callable[[], int]) -> int:
    """The value once a hundred turns of the loop, which both ends share, have left it as it was."""
    last, turns = value(), 0
    async with asyncio.timeout(DEADLINE_S):
        while turns < 100:
            await asyncio.sleep(0.001)
            last, turns = value(), turns + 1 if value() == last else 0
    return last


def look_at_deadlines(server: KafkaServer, *, after_s: float) -> None:
    """As the server itself does now and then, once so much time has gone."""
    now_s = asyncio.get_running_loop().time() + after_s
    for connection in tuple(server._state.connections):
        connection.check_deadlines(now_s)


def header_bytes(api_key: int, version: int, correlation_id: int, client_id: bytes = b"test") -> bytes:
    """The fields which every request header has, for requests that no encoder of ours would write."""
    return struct.pack(">hhih", api_key, version, correlation_id, len(client_id)) + client_id


def correlation_id_of(frame: bytes | None) -> int:
    assert frame is not None, "the server closed the connection"
    return read_correlation_id(frame)
