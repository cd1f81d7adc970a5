"""What each replica's log holds: every broker is asked for its own, followers too."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.live_brokers import live_brokers
from kquorum.cli.commands.topics.topic_client import PartitionView, ReplicaLog, TopicView
from kquorum.cli.failures import CliError
from kquorum.node.config.addresses import HostPort
from kquorum.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kquorum.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

# A follower answers the replica id of debugging tools, with the end of its log.
_DEBUGGING_REPLICA = -2
_LATEST, _EARLIEST = -1, -2

Place = tuple[str, int]


async def with_replica_logs(client: ClusterClient, topics: Sequence[TopicView]) -> tuple[TopicView, ...]:
    """The topics with the logs of their replicas. What a broker does not answer, or refuses (sizes need DESCRIBE on the
    cluster), is left out."""
    addresses = {broker_id: each.address for broker_id, each in (await live_brokers(client)).items()}
    held: dict[int, dict[str, list[int]]] = {}
    for topic in topics:
        for partition in topic.partitions:
            for broker_id in partition.replicas:
                held.setdefault(broker_id, {}).setdefault(topic.name, []).append(partition.partition_id)
    asked = [broker_id for broker_id in held if broker_id in addresses]
    timeout_ms = client.remaining_ms
    answers = await asyncio.gather(
        *(_logs_of(addresses[broker_id], broker_id, held[broker_id], timeout_ms) for broker_id in asked)
    )
    found = dict(zip(asked, answers, strict=True))
    return tuple(
        replace(topic, partitions=tuple(_with_logs(topic.name, each, found) for each in topic.partitions))
        for topic in topics
    )


def _with_logs(
    topic: str, partition: PartitionView, found: Mapping[int, Mapping[Place, ReplicaLog]]
) -> PartitionView:
    """The lag is that behind the log of the leader, as both were a moment ago."""
    place = topic, partition.partition_id
    logs = [found[each][place] for each in partition.replicas if place in found.get(each, {})]
    end = next((each.log_end_offset for each in logs if each.broker_id == partition.leader), None)
    if end is None:
        return replace(partition, logs=tuple(logs))
    return replace(
        partition, logs=tuple(replace(each, lag=max(end - each.log_end_offset, 0)) for each in logs)
    )


async def _logs_of(
    address: HostPort, broker_id: int, held: Mapping[str, Sequence[int]], timeout_ms: int
) -> Mapping[Place, ReplicaLog]:
    async with ClusterClient((address,), timeout_ms) as client:
        try:
            starts = await _offsets(client, held, _EARLIEST)
            ends = await _offsets(client, held, _LATEST)
            sizes = await _sizes(client, held)
        except CliError:
            return {}
    return {
        place: ReplicaLog(
            broker_id=broker_id,
            log_start_offset=starts[place],
            log_end_offset=end,
            size_bytes=sizes.get(place),
        )
        for place, end in ends.items()
        if place in starts
    }


async def _offsets(
    client: ClusterClient, held: Mapping[str, Sequence[int]], timestamp: int
) -> dict[Place, int]:
    topics = tuple(
        ListOffsetsTopic(
            name=name,
            partitions=tuple(
                ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in partitions
            ),
        )
        for name, partitions in held.items()
    )
    answer = await client.ask(ListOffsetsRequest(replica_id=_DEBUGGING_REPLICA, topics=topics))
    return {
        (topic.name, each.partition_index): each.offset
        for topic in answer.topics
        for each in topic.partitions
        if int(each.error_code) == 0
    }


async def _sizes(client: ClusterClient, held: Mapping[str, Sequence[int]]) -> dict[Place, int]:
    """Of the logs that clients use, not of those that are copied to another directory."""
    topics = tuple(
        DescribableLogDirTopic(topic=name, partitions=tuple(partitions)) for name, partitions in held.items()
    )
    answer = await client.ask(DescribeLogDirsRequest(topics=topics))
    return {
        (topic.name, each.partition_index): each.partition_size
        for directory in answer.results
        for topic in directory.topics
        for each in topic.partitions
        if not each.is_future_key
    }
