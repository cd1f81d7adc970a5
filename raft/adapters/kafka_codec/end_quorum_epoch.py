"""EndQuorumEpoch (54), versions 0 and 1: 1 names the successors with their directories (KIP-853)."""

from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.raft.adapters.kafka_codec.partition import (
    ApiCodec,
    Refusal,
    Values,
    directory_id,
    find_partition,
    leader_endpoints,
    listener_values,
    listeners_of,
    node_endpoints,
    response_partition,
    top_level_error,
    topics_of,
)
from kquorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(entity: Any) -> EndQuorumEpochRequest | Refusal:
    partition = find_partition(entity.topics)
    if partition is None:
        return Refusal(top_level_error(ErrorCode.invalid_request))
    return EndQuorumEpochRequest(
        cluster_id=entity.cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        preferred_candidates=_preferred_candidates(partition),
        leader_endpoints=listeners_of(getattr(entity, "leader_endpoints", ())),
    )


def _preferred_candidates(partition: Any) -> tuple[ReplicaKey, ...]:
    if hasattr(partition, "preferred_candidates"):
        return tuple(
            ReplicaKey(item.candidate_id, directory_id(item.candidate_directory_id))
            for item in partition.preferred_candidates
        )
    return tuple(ReplicaKey(node_id) for node_id in partition.preferred_successors)


def encode_request(request: EndQuorumEpochRequest, _version: int) -> Values:
    partition = {
        "leader_id": request.leader_id,
        "leader_epoch": request.leader_epoch,
        "preferred_successors": [key.id for key in request.preferred_candidates],
        "preferred_candidates": [
            {"candidate_id": key.id, "candidate_directory_id": key.directory_id}
            for key in request.preferred_candidates
        ],
    }
    return {
        "cluster_id": request.cluster_id,
        "topics": topics_of(partition),
        "leader_endpoints": listener_values(request.leader_endpoints),
    }


def decode_response(entity: Any, listener: str) -> EndQuorumEpochResponse:
    if entity.error_code is not ErrorCode.none:
        return EndQuorumEpochResponse(error=entity.error_code, is_top_level=True)
    partition = response_partition(entity.topics)
    return EndQuorumEpochResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=leader_endpoints(entity, partition.leader_id, listener),
    )


def encode_response(response: EndQuorumEpochResponse, leader: Endpoint | None) -> Values:
    if response.is_top_level:
        return top_level_error(response.error)
    partition = {
        "error_code": response.error,
        "leader_id": response.leader_id,
        "leader_epoch": response.leader_epoch,
    }
    return {
        "error_code": ErrorCode.none,
        "topics": topics_of(partition),
        "node_endpoints": node_endpoints(response.leader_id, leader),
    }


CODEC = ApiCodec(
    ApiKey.END_QUORUM_EPOCH, (0, 1), decode_request, encode_request, decode_response, encode_response
)
