"""What the Kafka protocol costs on top of a bare socket: round trips on loopback, server and client in two processes.

    python -m benchmarks.network_round_trip [--round-trips 20000] [--loop uvloop|asyncio]

Three peers in turn, in the same run and on the same loop: a bare asyncio Protocol that sends back what it gets (same
bytes, no framing), a KafkaServer whose handler replies with an encoded body, and one whose handler replies with an
entity. The ratio to the bare Protocol is the figure to watch; microseconds depend on the machine.
"""

import argparse
import asyncio
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, cast

import uvloop

from kquorum.network.connection import KafkaConnection
from kquorum.network.requests import Handler, Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.wire import message_codec
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import EncodedBody, encode_request
from tests.support.api_calls import request_of, response_of

HOST = "127.0.0.1"
API, VERSION = ApiKey.BROKER_HEARTBEAT, 1
REQUEST = {
    "broker_id": 1,
    "broker_epoch": 12345,
    "current_metadata_offset": 67890,
    "want_fence": False,
    "want_shut_down": False,
}
RESPONSE = {
    "error_code": 0,
    "is_caught_up": True,
    "is_fenced": False,
    "should_shut_down": False,
}
PIPELINED = 64

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.new_event_loop,
}


class BareEcho(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


class BareClient(asyncio.Protocol):
    """One message at a time; a future per round trip, as the real client has one per request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()

    def round_trip(self, data: bytes) -> asyncio.Future[None]:
        self._missing = len(data)
        self._answered: asyncio.Future[None] = self._loop.create_future()
        self._transport.write(data)
        return self._answered

    def data_received(self, data: bytes) -> None:
        self._missing -= len(data)
        if self._missing == 0:
            self._answered.set_result(None)


def _handler(kind: str) -> Handler:
    message = response_of(API, VERSION, RESPONSE)
    answer: Any = EncodedBody(message_codec.encode(message, VERSION)) if kind == "encoded" else message

    def handle(_context: RequestContext, _request: object, reply: Reply) -> None:
        reply(answer)

    return handle


async def _serve(kind: str, pipe: Connection) -> None:
    if kind == "bare":
        server = await asyncio.get_running_loop().create_server(BareEcho, HOST, 0)
        pipe.send(server.sockets[0].getsockname()[1])
    else:
        kafka = KafkaServer(
            host=HOST, port=0, handler=_handler(kind), supported={API: (0, VERSION)}, listener_name="BENCH"
        )
        await kafka.start()
        pipe.send(kafka.bound_port)
    await asyncio.get_running_loop().run_in_executor(None, pipe.recv)


def _serve_process(loop_name: str, kind: str, pipe: Connection) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
        runner.run(_serve(kind, pipe))


async def _time_each(round_trip: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Microseconds of each, sorted; a tenth as many go first unmeasured."""
    for _ in range(count // 10):
        await round_trip()
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        await round_trip()
        times.append((time.perf_counter_ns() - start) / 1000)
    return sorted(times)


async def _measure_bare(port: int, count: int) -> list[float]:
    entity = request_of(API, VERSION, REQUEST)
    data = encode_frame(encode_request(API, VERSION, 1, "bench", entity))
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(BareClient, HOST, port)
    return await _time_each(lambda: client.round_trip(data), count)


async def _measure_kafka(port: int, count: int) -> tuple[list[float], float]:
    """The sorted times, and requests per second with PIPELINED of them in flight."""
    connection = await KafkaConnection.connect(HOST, port, "bench", 5000)
    entity = request_of(API, VERSION, REQUEST)
    times = await _time_each(lambda: connection.send_request(entity, VERSION), count)
    start = time.perf_counter()
    for _ in range(count // PIPELINED):
        await asyncio.gather(*(connection.send_request(entity, VERSION) for _ in range(PIPELINED)))
    rate = count // PIPELINED * PIPELINED / (time.perf_counter() - start)
    connection.close()
    return times, rate


def _run(kind: str, loop_name: str, count: int) -> tuple[list[float], float]:
    pipe, child_pipe = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve_process, args=(loop_name, kind, child_pipe)
    )
    process.start()
    try:
        port: int = pipe.recv()
        with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
            if kind == "bare":
                return runner.run(_measure_bare(port, count)), 0.0
            return runner.run(_measure_kafka(port, count))
    finally:
        pipe.send("stop")
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--round-trips", type=int, default=20_000)
    parser.add_argument("--loop", choices=sorted(LOOPS), default="uvloop")
    arguments = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {arguments.loop}"
    )
    print(f"{arguments.round_trips} round trips of BrokerHeartbeat version {VERSION} on loopback\n")
    print(f"{'peer':<28}{'p50 us':>9}{'p99 us':>9}{'ratio':>8}{f'{PIPELINED} in flight, /s':>22}")
    bare_p50 = 0.0
    for kind, title in (("bare", "bare Protocol"), ("encoded", "encoded body"), ("entity", "entity")):
        times, rate = _run(kind, arguments.loop, arguments.round_trips)
        p50, p99 = statistics.median(times), times[len(times) * 99 // 100]
        bare_p50 = bare_p50 or p50
        rate_text = f"{rate:,.0f}" if rate else "-"
        print(f"{title:<28}{p50:>9.1f}{p99:>9.1f}{p50 / bare_p50:>8.2f}{rate_text:>22}")


if __name__ == "__main__":
    main()
