"""What all quorum APIs share: exactly one topic with one partition, and the leader's endpoint beside the answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from kquorum.raft.messages import NO_LEADER
from kquorum.raft.voters import ZERO_DIRECTORY, Endpoint
from kquorum.wire.errors import DecodeError
from kquorum.wire.uuids import METADATA_TOPIC_ID

TOPIC_NAME = "__cluster_metadata"
PARTITION = 0
Values = dict[str, object]
Endpoints = Mapping[int, Endpoint]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request which the core cannot be asked, as values for `wire.protocol.entities.build`."""

    values: Values


@dataclass(frozen=True, slots=True)
class ApiCodec:
    """One API between entities (of any version in `versions`, both ends included) and the core's messages.

    `encode_request` raises UnsupportedVersion when the version cannot say what the request means;
    `decode_response` raises DecodeError when the answer is not about the metadata partition; its text is the
    listener that the leader's endpoint belongs to, which no response names. `encode_response` is told where the
    leader listens, None while that is unknown.
    """

    api_key: int
    versions: tuple[int, int]
    decode_request: Callable[[Any], Any]
    encode_request: Callable[[Any, int], Values]
    decode_response: Callable[[Any, str], Any]
    encode_response: Callable[[Any, Endpoint | None], Values]


def find_partition(topics: Sequence[Any], index_field: str = "partition_index") -> Any | None:
    """The metadata partition of a request or response; None unless it is the only one named."""
    if len(topics) != 1 or len(topics[0].partitions) != 1 or not _is_metadata_topic(topics[0]):
        return None
    partition = topics[0].partitions[0]
    return partition if getattr(partition, index_field) == PARTITION else None


def _is_metadata_topic(topic: Any) -> bool:
    for name in ("topic_name", "topic", "name"):
        if (value := getattr(topic, name, None)) is not None:
            return bool(value == TOPIC_NAME)
    return bool(topic.topic_id == METADATA_TOPIC_ID)


def response_partition(topics: Sequence[Any], index_field: str = "partition_index") -> Any:
    """As `find_partition`, of a response; raises DecodeError."""
    partition = find_partition(topics, index_field)
    if partition is None:
        raise DecodeError("the response is not about the metadata partition alone")
    return partition


def topics_of(partition: Mapping[str, object]) -> list[Values]:
    return [{"topic_name": TOPIC_NAME, "partitions": [{"partition_index": PARTITION, **partition}]}]


def top_level_error(error: ErrorCode) -> Values:
    return {"error_code": error, "topics": []}


def directory_id(value: UUID | None) -> UUID:
    """kio reads the zero uuid as None."""
    return ZERO_DIRECTORY if value is None else value


def node_endpoints(leader_id: int, endpoint: Endpoint | None) -> list[Values]:
    """Where the leader listens (KIP-853); nothing while it is unknown. Versions before have no such field."""
    if endpoint is None or leader_id == NO_LEADER:
        return []
    return [{"node_id": leader_id, "host": endpoint.host, "port": endpoint.port}]


def leader_endpoints(entity: Any, leader_id: int, listener: str) -> tuple[Endpoint, ...]:
    """The leader's entry among the nodes of a response, if there is one; versions before KIP-853 name none."""
    for node in getattr(entity, "node_endpoints", ()):
        if node.node_id == leader_id:
            return (Endpoint(listener, node.host, node.port),)
    return ()


def endpoint_of_leader(response: Any, endpoints: Endpoints, listener: str) -> Endpoint | None:
    """Where to send a peer that asked through `listener`: as the core says, else as the table does.

    Of several endpoints the one of that listener is named, as Kafka does.
    """
    leader_id = getattr(response, "leader_id", NO_LEADER)
    if leader_id == NO_LEADER:
        return None
    known: tuple[Endpoint, ...] = getattr(response, "leader_endpoints", ())
    for endpoint in known:
        if endpoint.listener == listener:
            return endpoint
    return known[0] if known else endpoints.get(leader_id)


def listener_values(endpoints: Sequence[Endpoint]) -> list[Values]:
    return [{"name": item.listener, "host": item.host, "port": item.port} for item in endpoints]


def listeners_of(entities: Sequence[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(item.name, item.host, item.port) for item in entities)
