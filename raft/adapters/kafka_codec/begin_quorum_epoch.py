"""BeginQuorumEpoch (53), versions 0 and 1: 1 adds the voter's key and the leader's endpoints (KIP-853)."""

from kquorum.raft.adapters.kafka_codec.partition import (
    PARTITION,
    TOPIC_NAME,
    ApiCodec,
    Refusal,
    find_partition,
    known,
    leader_endpoints,
    listeners_from,
    listeners_of,
    node_endpoints,
)
from kquorum.raft.messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.messages import begin_quorum_epoch as kafka
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(request: kafka.BeginQuorumEpochRequest) -> BeginQuorumEpochRequest | Refusal:
    partition = find_partition(request.topics)
    if partition is None:
        return Refusal(kafka.BeginQuorumEpochResponse(error_code=ErrorCode.invalid_request))
    return BeginQuorumEpochRequest(
        cluster_id=request.cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=listeners_of(request.leader_endpoints),
        voter=ReplicaKey(request.voter_id, partition.voter_directory_id),
    )


def encode_request(request: BeginQuorumEpochRequest, _version: int) -> kafka.BeginQuorumEpochRequest:
    partition = kafka.RequestPartitionData(
        partition_index=PARTITION,
        voter_directory_id=request.voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.leader_epoch,
    )
    return kafka.BeginQuorumEpochRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.id,
        topics=(kafka.RequestTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
        leader_endpoints=listeners_from(kafka.LeaderEndpoint, request.leader_endpoints),
    )


def decode_response(response: kafka.BeginQuorumEpochResponse, listener: str) -> BeginQuorumEpochResponse:
    if response.error_code is not ErrorCode.none:
        return BeginQuorumEpochResponse(error=response.error_code, is_top_level=True)
    partition = known(find_partition(response.topics))
    return BeginQuorumEpochResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=leader_endpoints(response.node_endpoints, partition.leader_id, listener),
    )


def encode_response(
    response: BeginQuorumEpochResponse, leader: Endpoint | None
) -> kafka.BeginQuorumEpochResponse:
    if response.is_top_level:
        return kafka.BeginQuorumEpochResponse(error_code=response.error)
    partition = kafka.ResponsePartitionData(
        partition_index=PARTITION,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
    )
    return kafka.BeginQuorumEpochResponse(
        topics=(kafka.ResponseTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
        node_endpoints=node_endpoints(kafka.NodeEndpoint, response.leader_id, leader),
    )


CODEC = ApiCodec(
    ApiKey.BEGIN_QUORUM_EPOCH, (0, 1), decode_request, encode_request, decode_response, encode_response
)
