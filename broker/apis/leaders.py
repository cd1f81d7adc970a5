"""Where a client finds the leader of a partition that it asked the wrong broker about (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.replica.partition import TopicPartition
from kquorum.metadata.image.cluster import Endpoint
from kquorum.wire.messages.error_codes import ErrorCode

_NO_LEADER: Final = -1
MOVED: Final = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class LeaderNode:
    node_id: int
    endpoint: Endpoint
    rack: str | None


def current_leader(services: BrokerServices, topic: str, partition: int) -> CurrentLeader | None:
    """As the partition here has it, else as the image has it; None where neither knows one."""
    found = services.data.partitions.online(TopicPartition(topic, partition))
    if found is not None:
        known = CurrentLeader(found.leader_id, found.leader_epoch)
    else:
        in_image = services.cache.image.topics.by_name.get(topic)
        state = None if in_image is None else in_image.partitions.get(partition)
        known = (
            CurrentLeader(_NO_LEADER, _NO_LEADER)
            if state is None
            else CurrentLeader(state.leader, state.leader_epoch)
        )
    return known if known.leader_id >= 0 else None


def leader_nodes(
    services: BrokerServices, listener_name: str, leaders: Iterable[CurrentLeader]
) -> list[LeaderNode]:
    """Each broker once; one that is fenced, or has no endpoint on the client's listener, is left out."""
    brokers = services.cache.image.cluster.brokers
    nodes = []
    for broker_id in dict.fromkeys(each.leader_id for each in leaders):
        broker = brokers.get(broker_id)
        endpoint = None if broker is None or broker.fenced else broker.end_point(listener_name)
        if broker is not None and endpoint is not None:
            nodes.append(LeaderNode(broker_id, endpoint, broker.rack))
    return nodes
