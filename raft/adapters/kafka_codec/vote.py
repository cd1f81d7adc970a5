"""Vote (52), versions 0 to 2: 1 adds directory ids (KIP-853), 2 the pre-vote (KIP-996)."""

from kquorum.raft.adapters.kafka_codec.partition import (
    PARTITION,
    TOPIC_NAME,
    ApiCodec,
    Refusal,
    find_partition,
    known,
    leader_endpoints,
    node_endpoints,
)
from kquorum.raft.messages import VoteRequest, VoteResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.messages import vote as kafka
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

_FIRST_WITH_PRE_VOTE = 2


def decode_request(request: kafka.VoteRequest) -> VoteRequest | Refusal:
    partition = find_partition(request.topics)
    if partition is None:
        return Refusal(kafka.VoteResponse(error_code=ErrorCode.invalid_request))
    return VoteRequest(
        cluster_id=request.cluster_id,
        replica_epoch=partition.replica_epoch,
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        voter=ReplicaKey(request.voter_id, partition.voter_directory_id),
        last_offset=partition.last_offset,
        last_offset_epoch=partition.last_offset_epoch,
        pre_vote=partition.pre_vote,
    )


def encode_request(request: VoteRequest, version: int) -> kafka.VoteRequest:
    if request.pre_vote and version < _FIRST_WITH_PRE_VOTE:
        # Sent without its flag it would be a real vote.
        raise UnsupportedVersion(f"version {version} of Vote has no pre-votes")
    partition = kafka.RequestPartitionData(
        partition_index=PARTITION,
        replica_epoch=request.replica_epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.last_offset_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    return kafka.VoteRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.id,
        topics=(kafka.RequestTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
    )


def decode_response(response: kafka.VoteResponse, listener: str) -> VoteResponse:
    if response.error_code is not ErrorCode.none:
        return VoteResponse(error=response.error_code, is_top_level=True)
    partition = known(find_partition(response.topics))
    return VoteResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=leader_endpoints(response.node_endpoints, partition.leader_id, listener),
        vote_granted=partition.vote_granted,
    )


def encode_response(response: VoteResponse, leader: Endpoint | None) -> kafka.VoteResponse:
    if response.is_top_level:
        return kafka.VoteResponse(error_code=response.error)
    partition = kafka.ResponsePartitionData(
        partition_index=PARTITION,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
        vote_granted=response.vote_granted,
    )
    return kafka.VoteResponse(
        topics=(kafka.ResponseTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
        node_endpoints=node_endpoints(kafka.NodeEndpoint, response.leader_id, leader),
    )


CODEC = ApiCodec(ApiKey.VOTE, (0, 2), decode_request, encode_request, decode_response, encode_response)
