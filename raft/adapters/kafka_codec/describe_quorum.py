"""DescribeQuorum (55), versions 0 to 2: 1 adds timestamps (KIP-836), 2 directories and listeners (KIP-853).

Responses may carry an annotation of our own in all of them (`wire.protocol.extensions`).
"""

from collections.abc import Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.raft.adapters.kafka_codec.partition import (
    ApiCodec,
    Refusal,
    Values,
    directory_id,
    find_partition,
    listener_values,
    listeners_of,
    response_partition,
    topics_of,
)
from kquorum.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaStatus
from kquorum.raft.voters import Endpoint
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(entity: Any) -> DescribeQuorumRequest | Refusal:
    if find_partition(entity.topics) is not None:
        return DescribeQuorumRequest()
    topics = [_unknown_topic(topic) for topic in entity.topics]
    return Refusal(_response_values(ErrorCode.none, topics))


def _response_values(error: ErrorCode, topics: Sequence[Values], nodes: Sequence[Values] = ()) -> Values:
    return {"error_code": error, "error_message": None, "topics": topics, "nodes": nodes}


def _unknown_topic(topic: Any) -> Values:
    return {
        "topic_name": topic.topic_name,
        "partitions": [
            _partition_values(partition.partition_index, ErrorCode.unknown_topic_or_partition)
            for partition in topic.partitions
        ],
    }


def _partition_values(index: int, error: ErrorCode) -> Values:
    """A partition that says nothing but its error."""
    return {
        "partition_index": index,
        "error_code": error,
        "error_message": None if error is ErrorCode.none else error.name,
        "leader_id": -1,
        "leader_epoch": -1,
        "high_watermark": -1,
        "current_voters": [],
        "observers": [],
    }


def encode_request(_request: DescribeQuorumRequest, _version: int) -> Values:
    return {"topics": topics_of({})}


def decode_response(entity: Any, _listener: str) -> DescribeQuorumResponse:
    if entity.error_code is not ErrorCode.none:
        return DescribeQuorumResponse(error=entity.error_code, is_top_level=True)
    partition = response_partition(entity.topics)
    return DescribeQuorumResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        current_voters=_statuses(partition.current_voters),
        observers=_statuses(partition.observers),
        nodes={node.node_id: listeners_of(node.listeners) for node in getattr(entity, "nodes", ())},
        annotation=bytes(entity.annotation),
    )


def _statuses(states: Sequence[Any]) -> tuple[ReplicaStatus, ...]:
    return tuple(
        ReplicaStatus(
            replica_id=state.replica_id,
            directory_id=directory_id(getattr(state, "replica_directory_id", None)),
            log_end_offset=state.log_end_offset,
            last_fetch_timestamp_ms=getattr(state, "last_fetch_timestamp", -1),
            last_caught_up_timestamp_ms=getattr(state, "last_caught_up_timestamp", -1),
        )
        for state in states
    )


def encode_response(response: DescribeQuorumResponse, _leader: Endpoint | None) -> Values:
    if response.is_top_level:
        return _response_values(response.error, [])
    partition = _partition_values(0, response.error) | {
        "leader_id": response.leader_id,
        "leader_epoch": response.leader_epoch,
        "high_watermark": response.high_watermark,
        "current_voters": [_status_values(status) for status in response.current_voters],
        "observers": [_status_values(status) for status in response.observers],
    }
    nodes: list[Values] = [
        {"node_id": node_id, "listeners": listener_values(endpoints)}
        for node_id, endpoints in response.nodes.items()
    ]
    values = _response_values(ErrorCode.none, topics_of(partition), nodes)
    return values | {"annotation": response.annotation}


def _status_values(status: ReplicaStatus) -> Values:
    return {
        "replica_id": status.replica_id,
        "replica_directory_id": status.directory_id,
        "log_end_offset": status.log_end_offset,
        "last_fetch_timestamp": status.last_fetch_timestamp_ms,
        "last_caught_up_timestamp": status.last_caught_up_timestamp_ms,
    }


CODEC = ApiCodec(
    ApiKey.DESCRIBE_QUORUM, (0, 2), decode_request, encode_request, decode_response, encode_response
)
