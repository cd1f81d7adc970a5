"""Topics as the metadata image of a node has them, read over gRPC with a stated promise (`--consistency`)."""

from collections.abc import Iterable, Sequence

from kquorum.cli.clients.image_client import read_image
from kquorum.cli.commands.topics.topic_client import PartitionView, TopicView
from kquorum.cli.failures import CliError
from kquorum.cli.output import complain
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import inspect_pb2 as pb

CONSISTENCIES = ("linearizable", "committed", "local")


async def read_topics(
    addresses: Sequence[HostPort], names: Sequence[str] | None, consistency: str, timeout_ms: int
) -> tuple[TopicView, ...]:
    """The topics asked for, or all of them (None), by name. Raises CliError for one that is not there, and when no
    node keeps the promise in time: a linearizable read is the leader's."""
    request = pb.ImageRequest(topics=names or (), consistency=consistency.upper())
    chunks = await read_image(addresses, request, timeout_ms)
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
