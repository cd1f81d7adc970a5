"""The metadata image of a node, read over gRPC."""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc

from kquorum.cli.clients.grpc_client import CHANNEL_OPTIONS, Failures, open_channel
from kquorum.cli.failures import CliError
from kquorum.network.connection import MAX_RESPONSE_BYTES, MAX_RESPONSE_ELEMENTS
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub

PAUSE_S = 0.1


async def read_image(
    addresses: Sequence[HostPort],
    request: pb.ImageRequest,
    timeout_ms: int,
    what: str = "the topics cannot be read",
) -> list[pb.ImageChunk]:
    """The chunks of one image, from the first node that keeps the promise of `request`. Raises CliError, which begins
    with `what`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    failures = Failures(what)
    while True:
        for index, address in enumerate(addresses):
            left_s = max(deadline - loop.time(), 0.01)
            try:
                return await _image(address, request, left_s, left_s / (len(addresses) - index))
            except grpc.aio.AioRpcError as error:
                failures.note(address, error)
            except TimeoutError:
                failures.note_silence(address)
            failures.check_refused()
        if loop.time() >= deadline:
            raise failures.error()
        await asyncio.sleep(PAUSE_S)


async def _image(
    address: HostPort, request: pb.ImageRequest, timeout_s: float, share_s: float
) -> list[pb.ImageChunk]:
    """A mute node has its share of the time; one that has begun to answer has all that is left."""
    async with open_channel(address, CHANNEL_OPTIONS) as channel:
        stub: Any = InspectStub(channel)  # type: ignore[no-untyped-call]
        call = stub.Image(request, timeout=timeout_s)
        chunks = list[pb.ImageChunk]()
        size_in_bytes = partitions = 0
        chunk = await asyncio.wait_for(call.read(), share_s)
        while chunk is not grpc.aio.EOF:
            size_in_bytes += chunk.ByteSize()
            partitions += sum(1 + len(topic.partitions) for topic in chunk.topics.topics)
            if size_in_bytes > MAX_RESPONSE_BYTES or partitions > MAX_RESPONSE_ELEMENTS:
                raise CliError(
                    f"{address} sends an image of more than {MAX_RESPONSE_BYTES:,} bytes or {MAX_RESPONSE_ELEMENTS:,} "
                    "partitions; name topics to read fewer"
                )
            chunks.append(chunk)
            chunk = await call.read()
        return chunks
