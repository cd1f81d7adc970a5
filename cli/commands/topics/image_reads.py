"""Topics as the metadata image of a node has them, read over gRPC with a stated promise (`--consistency`)."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import grpc

from kquorum.cli.clients.grpc_client import CHANNEL_OPTIONS, Failures, open_channel
from kquorum.cli.commands.topics.topic_client import PartitionView, TopicView
from kquorum.cli.failures import CliError
from kquorum.cli.output import complain
from kquorum.network.connection import MAX_RESPONSE_BYTES, MAX_RESPONSE_ELEMENTS
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub

CONSISTENCIES = ("linearizable", "committed", "local")
PAUSE_S = 0.1


async def read_topics(
    addresses: Sequence[HostPort], names: Sequence[str] | None, consistency: str, timeout_ms: int
) -> tuple[TopicView, ...]:
    """The topics asked for, or all of them (None), by name. Raises CliError for one that is not there, and when no
    node keeps the promise in time: a linearizable read is the leader's."""
    request = pb.ImageRequest(topics=names or (), consistency=consistency.upper())
    chunks = await _chunks(addresses, request, timeout_ms)
    maybe_warn_of_age(chunks[0].header)
    offline = {broker.id for chunk in chunks for broker in chunk.header.brokers if broker.fenced}
    known = {broker.id for chunk in chunks for broker in chunk.header.brokers}
    topics: dict[str, TopicView] = {}
    for topic in (topic for chunk in chunks for topic in chunk.topics.topics):
        before = topics[topic.name].partitions if topic.name in topics else ()
        partitions = (*before, *_partitions(topic.partitions, known - offline))
        topics[topic.name] = TopicView(name=topic.name, topic_id=topic.id, partitions=partitions)
    for name in names or ():
        if name not in topics:
            raise CliError(f"there is no topic {name} (`kquorum topics list` shows those there are)")
    return tuple(topics[name] for name in sorted(topics))


def maybe_warn_of_age(header: pb.ImageHeader) -> None:
    """What a node tells that no longer hears the quorum is marked as such."""
    if header.is_cut_off:
        complain(
            f"node {header.node_id} is cut off from the quorum: this is what it knew "
            f"{header.ms_since_commit / 1000:.1f} s ago, up to offset {header.provenance.offset}",
            style="yellow",
            label="note",
        )


async def _chunks(
    addresses: Sequence[HostPort], request: pb.ImageRequest, timeout_ms: int
) -> list[pb.ImageChunk]:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    failures = Failures("the topics cannot be read")
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


def _partitions(partitions: Iterable[pb.Partition], online: set[int]) -> tuple[PartitionView, ...]:
    return tuple(
        PartitionView(
            partition_id=partition.partition_id,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replicas),
            isr=tuple(partition.isr),
            offline_replicas=tuple(replica for replica in partition.replicas if replica not in online),
        )
        for partition in partitions
    )
