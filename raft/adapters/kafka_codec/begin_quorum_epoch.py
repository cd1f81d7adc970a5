"""BeginQuorumEpoch (53), versions 0 and 1: 1 adds the voter's key and the leader's endpoints (KIP-853)."""

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
from kquorum.raft.messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(entity: Any) -> BeginQuorumEpochRequest | Refusal:
    partition = find_partition(entity.topics)
    if partition is None:
        return Refusal(top_level_error(ErrorCode.invalid_request))
    return BeginQuorumEpochRequest(
        cluster_id=entity.cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=listeners_of(getattr(entity, "leader_endpoints", ())),
        voter=ReplicaKey(
            getattr(entity, "voter_id", -1), directory_id(getattr(partition, "voter_directory_id", None))
        ),
    )


def encode_request(request: BeginQuorumEpochRequest, _version: int) -> Values:
    partition = {
        "voter_directory_id": request.voter.directory_id,
        "leader_id": request.leader_id,
        "leader_epoch": request.leader_epoch,
    }
    return {
        "cluster_id": request.cluster_id,
        "voter_id": request.voter.id,
        "topics": topics_of(partition),
        "leader_endpoints": listener_values(request.leader_endpoints),
    }


def decode_response(entity: Any, listener: str) -> BeginQuorumEpochResponse:
    if entity.error_code is not ErrorCode.none:
        return BeginQuorumEpochResponse(error=entity.error_code, is_top_level=True)
    partition = response_partition(entity.topics)
    return BeginQuorumEpochResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=leader_endpoints(entity, partition.leader_id, listener),
    )


def encode_response(response: BeginQuorumEpochResponse, leader: Endpoint | None) -> Values:
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
    ApiKey.BEGIN_QUORUM_EPOCH, (0, 1), decode_request, encode_request, decode_response, encode_response
)
