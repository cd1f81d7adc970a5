"""A server over real loopback gRPC, and calls that cannot hang."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import uvloop

from kquorum.metadata.grpc.server import InspectServer, start_inspect_server
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.names import PROTOCOLS
from kquorum.network.security.reloading import reloading_context
from kquorum.network.security.tls import http2_context
from kquorum.wire.proto import inspect_pb2_grpc
from tests.support.grpc_source import FakeSource

# Of a test that hangs: the longest takes 2 s on a machine at rest, and took more than 20 s at a load of 20.
DEADLINE_SECONDS = 120.0

# A client that stops reading holds back its server after 64 KiB, not after as much as the line would bear.
_SMALL_WINDOW = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536))
T = TypeVar("T")


@dataclass(frozen=True)
class Rig:
    source: FakeSource
    server: InspectServer
    channel: grpc.aio.Channel
    stub: Any


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in an uvloop, as a node does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(main(), DEADLINE_SECONDS))


@asynccontextmanager
async def serving(source: FakeSource, **options: Any) -> AsyncIterator[Rig]:
    server = await start_inspect_server("127.0.0.1", 0, source, **options)
    try:
        async with grpc.aio.insecure_channel(
            f"127.0.0.1:{server.bound_port}", options=_SMALL_WINDOW
        ) as channel:
            make_stub: Callable[[grpc.aio.Channel], Any] = inspect_pb2_grpc.InspectStub
            yield Rig(source, server, channel, make_stub(channel))
    finally:
        await server.stop(0.1)


def tls_of(keys: Mapping[str, str]) -> ListenerSecurity:
    """Of a listener with these keys, with the time for a handshake that a test can wait for."""
    context = reloading_context("grpc", keys, http2_context)
    return ListenerSecurity(protocol=PROTOCOLS["SSL"], ssl_context=context, handshake_timeout_ms=300)


async def take(call: Any, count: int) -> list[Any]:
    """The next `count` messages of a stream."""
    return [await call.read() for _ in range(count)]


async def take_all(call: Any) -> list[Any]:
    return [message async for message in call]


async def failure_of(work: Awaitable[object]) -> grpc.aio.AioRpcError:
    try:
        await work
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError("the call did not fail")


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait, in turns of the loop, until the condition holds; the run's deadline bounds it."""
    while not condition():  # noqa: ASYNC110 - the condition belongs to the code under test, which signals nothing
        await asyncio.sleep(0.005)
    assert condition(), what
