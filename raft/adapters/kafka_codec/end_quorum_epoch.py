"""EndQuorumEpoch (54), versions 0 and 1: 1 names the successors with their directories (KIP-853)."""

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
from kquorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.messages import end_quorum_epoch as kafka
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(request: kafka.EndQuorumEpochRequest) -> EndQuorumEpochRequest | Refusal:
    partition = find_partition(request.topics)
    if partition is None:
        return Refusal(kafka.EndQuorumEpochResponse(error_code=ErrorCode.invalid_request))
    return EndQuorumEpochRequest(
        cluster_id=request.cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        preferred_candidates=_preferred_candidates(partition),
        leader_endpoints=listeners_of(request.leader_endpoints),
    )


def _preferred_candidates(partition: kafka.RequestPartitionData) -> tuple[ReplicaKey, ...]:
    """A version has one of the two fields; the other is empty."""
    return (
        *(
            ReplicaKey(item.candidate_id, item.candidate_directory_id)
            for item in partition.preferred_candidates
        ),
        *map(ReplicaKey, partition.preferred_successors),
    )


def encode_request(request: EndQuorumEpochRequest, _version: int) -> kafka.EndQuorumEpochRequest:
    candidates = request.preferred_candidates
    partition = kafka.RequestPartitionData(
        partition_index=PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.leader_epoch,
        preferred_successors=tuple(key.id for key in candidates),
        preferred_candidates=tuple(
            kafka.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in candidates
        ),
    )
    return kafka.EndQuorumEpochRequest(
        cluster_id=request.cluster_id,
        topics=(kafka.RequestTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
        leader_endpoints=listeners_from(kafka.LeaderEndpoint, request.leader_endpoints),
    )


def decode_response(response: kafka.EndQuorumEpochResponse, listener: str) -> EndQuorumEpochResponse:
    if response.error_code is not ErrorCode.none:
        return EndQuorumEpochResponse(error=response.error_code, is_top_level=True)
    partition = known(find_partition(response.topics))
    return EndQuorumEpochResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=leader_endpoints(response.node_endpoints, partition.leader_id, listener),
    )


def encode_response(
    response: EndQuorumEpochResponse, leader: Endpoint | None
) -> kafka.EndQuorumEpochResponse:
    if response.is_top_level:
        return kafka.EndQuorumEpochResponse(error_code=response.error)
    partition = kafka.ResponsePartitionData(
        partition_index=PARTITION,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
    )
    return kafka.EndQuorumEpochResponse(
        topics=(kafka.ResponseTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
        node_endpoints=node_endpoints(kafka.NodeEndpoint, response.leader_id, leader),
    )


CODEC = ApiCodec(
    ApiKey.END_QUORUM_EPOCH, (0, 1), decode_request, encode_request, decode_response, encode_response
)
