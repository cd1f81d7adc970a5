"""The questions of `kquorum doctor` to a cluster: all at once, and none fails the others."""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from kquorum.cli.clients.addresses import broker_addresses, grpc_listeners, known_controllers
from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.quorum_client import describe_quorum
from kquorum.cli.commands.brokers.members import ask_members
from kquorum.cli.commands.doctor.certificates import find_certificates
from kquorum.cli.commands.doctor.facts import (
    Broker,
    ClusterFacts,
    Node,
    Partition,
    Quorum,
    Replica,
    Space,
)
from kquorum.cli.commands.doctor.folders import folders_of, is_folder, space_of
from kquorum.cli.commands.features.features_client import look as look_at_features
from kquorum.cli.commands.topics.topic_client import describe_topics
from kquorum.cli.failures import CliError
from kquorum.node.config.addresses import HostPort, reachable
from kquorum.node.config.model import ClusterConfig, NodeConfig
from kquorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

T = TypeVar("T")
_TOPIC: Final = 2
_NO_ANSWER: Final = "no answer to ApiVersions: "
_MIN_ISR: Final = "min.insync.replicas"
_TOPICS_AT_ONCE: Final = 500
_NO_BROKER: Final = "the config has no broker: name some with --bootstrap-server"


async def gather(
    cluster: ClusterConfig, path: Path, bootstrap_server: str | None, timeout_ms: int
) -> ClusterFacts:
    """What the nodes of the config tell. Raises nothing for nodes that are away."""
    nodes, quorum, features, members, partitions, certificates = await asyncio.gather(
        asyncio.gather(*(_node(node, timeout_ms) for node in cluster.nodes)),
        _or_reason(_quorum(cluster, path, timeout_ms)),
        _or_reason(_features(cluster, timeout_ms)),
        _or_reason(_members(cluster, path, bootstrap_server, timeout_ms)),
        _or_reason(_partitions(cluster, path, bootstrap_server, timeout_ms)),
        find_certificates(cluster, timeout_ms),
    )
    ranges, finalized, silent = features if isinstance(features, tuple) else ({}, {}, {})
    return ClusterFacts(
        now_ms=time.time_ns() // 1_000_000,
        config=str(path),
        cluster_id=cluster.cluster_id,
        nodes=tuple(_with_silence(node, silent, features) for node in nodes),
        quorum=None if isinstance(quorum, str) else quorum,
        quorum_fault=quorum if isinstance(quorum, str) else "",
        supported=ranges,
        finalized=finalized,
        brokers=None if isinstance(members, str) else members,
        brokers_fault=members if isinstance(members, str) else "",
        partitions=None if isinstance(partitions, str) else partitions,
        partitions_fault=partitions if isinstance(partitions, str) else "",
        certificates=certificates,
    )


async def _or_reason(asking: Awaitable[T]) -> T | str:
    """Or in words why there is no answer."""
    try:
        return await asking
    except CliError as error:
        return str(error)


# Nodes


async def _node(config: NodeConfig, timeout_ms: int) -> Node:
    """What the node tells over gRPC, and of its folders that are on this machine. Whether it answers over Kafka's
    protocol comes later."""
    address = _address_of(config)
    node = Node(node_id=config.node_id, roles=config.process_roles, address=str(address))
    now_s = time.time()
    # Of folders that another user's folder hides, the check of folders tells.
    here = [folder for folder in folders_of(config) if is_folder(folder)]
    local = {
        str(folder): space for folder in here for space in [await asyncio.to_thread(space_of, folder, now_s)]
    }
    told = await _described(config, timeout_ms)
    if told is None:
        return replace(node, spaces=tuple(local.values()))
    answer, sent_ms, received_ms = told
    host = answer.host if answer.HasField("host") else None
    changes: dict[str, Any] = {"cluster_id": answer.cluster_id, "not_ready": answer.reason or None}
    if host is not None:
        error_ms = max((received_ms - sent_ms) / 2, 1)
        changes |= {
            "version": host.version,
            "clock_ms": round(host.now_ms - (sent_ms + received_ms) / 2),
            "clock_error_ms": round(error_ms),
            "open_files": host.open_files if host.open_files >= 0 else None,
            "max_open_files": host.max_open_files if host.max_open_files >= 0 else None,
        }
        for each in host.folders:
            known = local.get(each.path)
            local[each.path] = Space(
                path=each.path,
                total_bytes=each.total_bytes,
                usable_bytes=each.usable_bytes,
                total_inodes=each.total_inodes,
                usable_inodes=each.usable_inodes,
                fault=each.fault or None,
                written_per_day=None if known is None else known.written_per_day,
            )
    return replace(node, spaces=tuple(local.values()), **changes)


def _address_of(config: NodeConfig) -> HostPort:
    """Its first listener, as others reach it."""
    advertised = {each.name: each for each in config.advertised_listeners}
    listener = config.listeners[0]
    found = advertised.get(listener.name, listener)
    return reachable(found.host, found.port)


async def _described(config: NodeConfig, timeout_ms: int) -> tuple[Any, float, float] | None:
    """The answer, and this machine's time before and after; None without one."""
    if config.kquorum_grpc_listener is None:
        return None
    import grpc

    from kquorum.cli.clients.grpc_client import call
    from kquorum.wire.proto import quorum_pb2 as pb

    address = reachable(*config.kquorum_grpc_listener)
    request = pb.DescribeNodeRequest(with_host=True)

    async def ask(stub: Any) -> tuple[Any, float, float]:
        sent_ms = time.time() * 1000
        answer = await stub.DescribeNode(request, timeout=timeout_ms / 1000)
        received_ms = time.time() * 1000
        return answer, sent_ms, received_ms

    async def twice(stub: Any) -> tuple[Any, float, float]:
        # The first call also makes the connection, and imports on the other side: its time says little of the clock.
        first = await ask(stub)
        second = await ask(stub)
        return min(first, second, key=lambda each: each[2] - each[1])

    try:
        return await call(address, twice)
    except grpc.aio.AioRpcError:
        return None


def _with_silence(node: Node, silent: Mapping[str, str], features: object) -> Node:
    """A node that answers over neither protocol is silent; `silent` names those that do not answer over Kafka's."""
    if node.cluster_id is not None:
        return node
    reason = silent.get(_name(node.node_id))
    if reason is None and isinstance(features, str):
        reason = f"no answer from {node.address}"
    return node if reason is None else replace(node, silence=reason.removeprefix(_NO_ANSWER))


def _name(node_id: int) -> str:
    return f"node {node_id}"


# The quorum, features, brokers


async def _quorum(cluster: ClusterConfig, path: Path, timeout_ms: int) -> Quorum:
    addresses = tuple(dict.fromkeys(reachable(*address) for address in cluster.controller_addresses))
    known = known_controllers(path, None)
    async with ClusterClient(addresses, timeout_ms, known=known, leader_timeout_ms=timeout_ms) as client:
        status = await describe_quorum(client)
    voters = {each.replica_id for each in status.voters}
    return Quorum(
        leader_id=status.leader_id,
        replicas=tuple(
            Replica(
                node_id=each.replica_id,
                is_voter=each.replica_id in voters,
                alive=each.alive,
                lag=each.lag,
                state_differs_at=None if each.state is None else each.state.differs_at,
            )
            for each in (*status.voters, *status.observers)
        ),
    )


async def _features(
    cluster: ClusterConfig, timeout_ms: int
) -> tuple[dict[str, dict[str, tuple[int, int]]], dict[str, int], dict[str, str]]:
    """What each node supports, which levels are in force, and which nodes do not answer."""
    names = {_address_of(node): _name(node.node_id) for node in cluster.nodes}
    view = await look_at_features(names, timeout_ms)
    return (
        {node.node: dict(node.ranges) for node in view.nodes},
        dict(view.newest.finalized),
        dict(view.silent),
    )


async def _members(
    cluster: ClusterConfig, path: Path, bootstrap_server: str | None, timeout_ms: int
) -> list[Broker]:
    if not cluster.brokers and bootstrap_server is None:
        raise CliError(_NO_BROKER)
    listeners = grpc_listeners(cluster.nodes)
    members = await ask_members(listeners, path, bootstrap_server, None, timeout_ms, falls_back=True)
    return [Broker(broker_id=each.broker_id, state=each.state, lag=each.lag) for each in members.brokers]


# Partitions


async def _partitions(
    cluster: ClusterConfig, path: Path, bootstrap_server: str | None, timeout_ms: int
) -> list[Partition]:
    """From a node's image, which a node tells over gRPC also when it has lost the quorum; else from a broker."""
    listeners = grpc_listeners((*cluster.controllers, *cluster.brokers))
    if listeners and bootstrap_server is None:
        with suppress(CliError):
            return await _from_image(tuple(dict.fromkeys(listeners)), timeout_ms)
    if not cluster.brokers and bootstrap_server is None:
        raise CliError(_NO_BROKER)
    return await _from_broker(path, bootstrap_server, timeout_ms)


async def _from_image(listeners: Sequence[HostPort], timeout_ms: int) -> list[Partition]:
    """The leader's if there is one, else that of any node. Raises CliError."""
    from kquorum.cli.clients.image_client import read_image
    from kquorum.wire.proto import inspect_pb2 as pb

    try:
        request = pb.ImageRequest(consistency=pb.LINEARIZABLE)
        chunks = await read_image(listeners, request, timeout_ms // 2)
    except CliError:
        chunks = await read_image(listeners, pb.ImageRequest(consistency=pb.COMMITTED), timeout_ms // 2)
    return [
        Partition(
            name=f"{topic.name}-{each.partition_id}",
            leader=each.leader,
            replicas=tuple(each.replicas),
            isr=tuple(each.isr),
            min_isr=topic.min_insync_replicas or None,
        )
        for chunk in chunks
        for topic in chunk.topics.topics
        for each in topic.partitions
    ]


async def _from_broker(path: Path, bootstrap_server: str | None, timeout_ms: int) -> list[Partition]:
    async with ClusterClient(broker_addresses(path, bootstrap_server), timeout_ms) as client:
        topics = await describe_topics(client, None)
        min_isr = await _min_isr(client, [topic.name for topic in topics])
    return [
        Partition(
            name=f"{topic.name}-{each.partition_id}",
            leader=each.leader,
            replicas=each.replicas,
            isr=each.isr,
            min_isr=min_isr.get(topic.name),
        )
        for topic in topics
        for each in topic.partitions
    ]


async def _min_isr(client: ClusterClient, topics: Sequence[str]) -> dict[str, int]:
    """What a broker does not tell, for want of a right, is left out."""
    found: dict[str, int] = {}
    for start in range(0, len(topics), _TOPICS_AT_ONCE):
        resources = tuple(
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=(_MIN_ISR,))
            for name in topics[start : start + _TOPICS_AT_ONCE]
        )
        answer = await client.ask(DescribeConfigsRequest(resources=resources))
        for result in answer.results:
            for config in result.configs:
                if config.name == _MIN_ISR and config.value and config.value.isdigit():
                    found[result.resource_name] = int(config.value)
    return found
