"""Vote (52), versions 0 to 2: 1 adds directory ids (KIP-853), 2 the pre-vote (KIP-996)."""

from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.raft.adapters.kafka_codec.partition import (
    ApiCodec,
    Refusal,
    Values,
    directory_id,
    find_partition,
    leader_endpoints,
    node_endpoints,
    response_partition,
    top_level_error,
    topics_of,
)
from kquorum.raft.messages import VoteRequest, VoteResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.protocol.api_keys import ApiKey

_FIRST_WITH_PRE_VOTE = 2


def decode_request(entity: Any) -> VoteRequest | Refusal:
    partition = find_partition(entity.topics)
    if partition is None:
        return Refusal(top_level_error(ErrorCode.invalid_request))
    return VoteRequest(
        cluster_id=entity.cluster_id,
        replica_epoch=partition.replica_epoch,
        candidate=ReplicaKey(
            partition.replica_id, directory_id(getattr(partition, "replica_directory_id", None))
        ),
        voter=ReplicaKey(
            getattr(entity, "voter_id", -1), directory_id(getattr(partition, "voter_directory_id", None))
        ),
        last_offset=partition.last_offset,
        last_offset_epoch=partition.last_offset_epoch,
        pre_vote=getattr(partition, "pre_vote", False),
    )


def encode_request(request: VoteRequest, version: int) -> Values:
    if request.pre_vote and version < _FIRST_WITH_PRE_VOTE:
        # Sent without its flag it would be a real vote.
        raise UnsupportedVersion(f"version {version} of Vote has no pre-votes")
    partition = {
        "replica_epoch": request.replica_epoch,
        "replica_id": request.candidate.id,
        "replica_directory_id": request.candidate.directory_id,
        "voter_directory_id": request.voter.directory_id,
        "last_offset_epoch": request.last_offset_epoch,
        "last_offset": request.last_offset,
        "pre_vote": request.pre_vote,
    }
    return {"cluster_id": request.cluster_id, "voter_id": request.voter.id, "topics": topics_of(partition)}


def decode_response(entity: Any, listener: str) -> VoteResponse:
    if entity.error_code is not ErrorCode.none:
        return VoteResponse(error=entity.error_code, is_top_level=True)
    partition = response_partition(entity.topics)
    return VoteResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=leader_endpoints(entity, partition.leader_id, listener),
        vote_granted=partition.vote_granted,
    )


def encode_response(response: VoteResponse, leader: Endpoint | None) -> Values:
    if response.is_top_level:
        return top_level_error(response.error)
    partition = {
        "error_code": response.error,
        "leader_id": response.leader_id,
        "leader_epoch": response.leader_epoch,
        "vote_granted": response.vote_granted,
    }
    return {
        "error_code": ErrorCode.none,
        "topics": topics_of(partition),
        "node_endpoints": node_endpoints(response.leader_id, leader),
    }


CODEC = ApiCodec(ApiKey.VOTE, (0, 2), decode_request, encode_request, decode_response, encode_response)
