"""The three peers of benchmarks.metadata_requests: a broker's listener, a bare framed echo, and gRPC's echo.

Each is served by a process of its own and asked by the benchmark's. The echoes have the answer ready: they give back
as many bytes as the broker's answer has, whatever they are asked.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import islice
from multiprocessing.connection import Connection
from random import Random
from typing import Any, cast

import grpc
import uvloop

from benchmarks.controller_failover import image_of
from kquorum.broker.adapters.delayed_operation import LoopDelayedOperation
from kquorum.broker.adapters.forwarding import Forwarder
from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.metadata.adapters.controller_channel import ControllerChannel
from kquorum.metadata.image.cluster import ClusterImage, Endpoint
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.server import KafkaServer
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import FrameDecoder, encode_frame
from kquorum.wire.protocol.warm_up import warm_up

HOST = "127.0.0.1"
LISTENER = "PLAINTEXT"
MOST_BYTES = 256 * 1024 * 1024
GRPC_METHOD = "/benchmark.Echo/Echo"
GRPC_OPTIONS = [
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
]
CHANGED_TOPICS = 10
_LENGTH = struct.Struct(">i")

RoundTrip = Callable[[], Awaitable[object]]


def cluster_image(topics: int, partitions: int, brokers: int) -> MetadataImage:
    """With a listener at each broker."""
    image = image_of(topics, partitions, brokers)
    cluster = ClusterImage()
    for broker in image.cluster.brokers.values():
        end_point = Endpoint(LISTENER, f"broker-{broker.id}.example", 9092, 0)
        cluster = cluster.with_broker(replace(broker, end_points=(end_point,)))
    return replace(image, cluster=cluster)


def changed(image: MetadataImage, number: int) -> MetadataImage:
    """Ten other topic objects, as after a change of one partition in each."""
    start = number * CHANGED_TOPICS % len(image.topics.by_id)
    topics = [replace(each) for each in islice(image.topics.by_id.values(), start, start + CHANGED_TOPICS)]
    return replace(image, topics=image.topics.with_partitions(topics))


# The serving sides. Each sends its port through the pipe and serves until it receives a message.


def serve_broker(pipe: Connection, size: tuple[int, int, int], changes_per_second: float) -> None:
    uvloop.run(_serve_broker(pipe, size, changes_per_second))


def serve_bare(pipe: Connection, answer_bytes: int) -> None:
    uvloop.run(_serve_bare(pipe, answer_bytes))


def serve_grpc(pipe: Connection, answer_bytes: int) -> None:
    uvloop.run(_serve_grpc(pipe, answer_bytes))


async def _serve_broker(pipe: Connection, size: tuple[int, int, int], changes_per_second: float) -> None:
    """The listener, as a broker has it, over an image that is made rather than read from a log."""
    warm_up((ApiKey.METADATA,))
    cache = MetadataCache()
    cache.swap(cluster_image(*size))
    channel = ControllerChannel(
        lambda: None, client_id="benchmark", request_timeout_ms=1000, retry_timeout_ms=1000
    )
    services = BrokerServices(
        cache=cache,
        forwarder=Forwarder(channel, RepeatedRequests(lambda _image, _topic: ())),
        cluster_id="benchmark",
        random_source=Random(1),
        new_delayed_operation=LoopDelayedOperation,
    )
    listener = BrokerListener(services)
    server = KafkaServer(
        host=HOST,
        port=0,
        handler=listener.handle,
        supported=listener.supported,
        listener_name=LISTENER,
    )
    await server.start()
    changing = asyncio.create_task(_change(cache, changes_per_second))
    await _serve_until_told(pipe, server.bound_port)
    changing.cancel()
    await server.stop()


async def _change(cache: MetadataCache, per_second: float) -> None:
    number = 0
    while per_second > 0:
        await asyncio.sleep(1 / per_second)
        number += 1
        cache.swap(changed(cache.image, number))


class _BareEcho(asyncio.Protocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._decoder = FrameDecoder(MOST_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for _ in self._decoder.feed(data):
            self._transport.write(self._answer)


async def _serve_bare(pipe: Connection, answer_bytes: int) -> None:
    answer = encode_frame(bytes(answer_bytes))
    server = await asyncio.get_running_loop().create_server(lambda: _BareEcho(answer), HOST, 0)
    await _serve_until_told(pipe, server.sockets[0].getsockname()[1])


async def _serve_grpc(pipe: Connection, answer_bytes: int) -> None:
    answer = bytes(answer_bytes)

    async def echo(_request: bytes, _context: object) -> bytes:
        return answer

    server = grpc.aio.server(options=GRPC_OPTIONS)
    handler = grpc.method_handlers_generic_handler(
        "benchmark.Echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    await _serve_until_told(pipe, port)
    await server.stop(None)


async def _serve_until_told(pipe: Connection, port: int) -> None:
    pipe.send(port)
    await asyncio.get_running_loop().run_in_executor(None, pipe.recv)


# The asking sides


class FramedClient(asyncio.Protocol):
    """One request at a time; the answer is counted, not read, as it is for the echoes."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._head = bytearray()
        self._missing = 0
        self.answer_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()

    def round_trip(self) -> asyncio.Future[None]:
        self._answered: asyncio.Future[None] = self._loop.create_future()
        self._head.clear()
        self._missing = _LENGTH.size
        self._transport.write(self._request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        if len(self._head) < _LENGTH.size:
            taken = data[: _LENGTH.size - len(self._head)]
            self._head += taken
            data = data[len(taken) :]
            if len(self._head) < _LENGTH.size:
                return
            self.answer_bytes = self._missing = _LENGTH.unpack(self._head)[0]
        self._missing -= len(data)
        if self._missing == 0:
            self._answered.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the peer hung up"))

    def close(self) -> None:
        self._transport.close()


async def framed_clients(port: int, request: bytes, count: int) -> list[FramedClient]:
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(count):
        _, client = await loop.create_connection(lambda: FramedClient(request), HOST, port)
        clients.append(client)
    return clients


def grpc_clients(port: int, request: bytes, count: int) -> tuple[list[Any], list[RoundTrip]]:
    """Channels with connections of their own, and the call of each."""
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(f"{HOST}:{port}", options=options) for _ in range(count)]
    calls = [channel.unary_unary(GRPC_METHOD) for channel in channels]

    def round_trip_of(call: Any) -> RoundTrip:
        return lambda: call(request)

    return channels, [round_trip_of(call) for call in calls]
