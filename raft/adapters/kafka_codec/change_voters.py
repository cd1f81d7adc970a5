"""AddRaftVoter (80), versions 0 and 1, RemoveRaftVoter (81) and UpdateRaftVoter (82), version 0 (KIP-853).

Unlike the other quorum APIs these name no partition. The answers of the first two say neither who leads nor in which
epoch, so a stale answer cannot be distinguished from a fresh one: the caller has to look elsewhere.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.raft.adapters.kafka_codec.partition import (
    ApiCodec,
    Values,
    directory_id,
    listener_values,
    listeners_of,
)
from kquorum.raft.messages import (
    NO_LEADER,
    AddRaftVoterRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.protocol.api_keys import ApiKey

_FIRST_WITH_ACK_WHEN_COMMITTED = 1
_UNKNOWN_EPOCH = -1


def decode_add_request(entity: Any) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=entity.cluster_id,
        timeout_ms=round(entity.timeout.total_seconds() * 1000),
        voter=_voter_of(entity),
        endpoints=listeners_of(entity.listeners),
        ack_when_committed=getattr(entity, "ack_when_committed", True),
    )


def encode_add_request(request: AddRaftVoterRequest, version: int) -> Values:
    if not request.ack_when_committed and version < _FIRST_WITH_ACK_WHEN_COMMITTED:
        # The leader would wait for a commit that may need this replica's next Fetch.
        raise UnsupportedVersion(f"version {version} of AddRaftVoter is always answered after the commit")
    return {
        "cluster_id": request.cluster_id,
        "timeout_ms": request.timeout_ms,
        **_voter_values(request.voter),
        "listeners": listener_values(request.endpoints),
        "ack_when_committed": request.ack_when_committed,
    }


def decode_remove_request(entity: Any) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=entity.cluster_id, voter=_voter_of(entity))


def encode_remove_request(request: RemoveRaftVoterRequest, _version: int) -> Values:
    return {"cluster_id": request.cluster_id, **_voter_values(request.voter)}


def decode_update_request(entity: Any) -> UpdateRaftVoterRequest:
    feature = entity.k_raft_version_feature
    return UpdateRaftVoterRequest(
        cluster_id=entity.cluster_id,
        current_leader_epoch=entity.current_leader_epoch,
        voter=_voter_of(entity),
        endpoints=listeners_of(entity.listeners),
        kraft_versions=VersionRange(feature.min_supported_version, feature.max_supported_version),
    )


def encode_update_request(request: UpdateRaftVoterRequest, _version: int) -> Values:
    return {
        "cluster_id": request.cluster_id,
        "current_leader_epoch": request.current_leader_epoch,
        **_voter_values(request.voter),
        "listeners": listener_values(request.endpoints),
        "k_raft_version_feature": {
            "min_supported_version": request.kraft_versions.lowest,
            "max_supported_version": request.kraft_versions.highest,
        },
    }


def _voter_of(entity: Any) -> ReplicaKey:
    return ReplicaKey(entity.voter_id, directory_id(entity.voter_directory_id))


def _voter_values(voter: ReplicaKey) -> Values:
    return {"voter_id": voter.id, "voter_directory_id": voter.directory_id}


def decode_plain_response(entity: Any, _listener: str) -> ChangeVotersResponse:
    """Of AddRaftVoter and RemoveRaftVoter; leader and epoch stay unknown."""
    return ChangeVotersResponse(error=entity.error_code, message=entity.error_message)


def encode_plain_response(response: ChangeVotersResponse, _leader: Endpoint | None) -> Values:
    return {"error_code": response.error, "error_message": response.message}


def decode_update_response(entity: Any, listener: str) -> ChangeVotersResponse:
    """An error without an epoch was found before the epoch was checked, so it stands outside."""
    current = entity.current_leader
    has_leader = current.leader_id != NO_LEADER and bool(current.host)
    return ChangeVotersResponse(
        error=entity.error_code,
        is_top_level=entity.error_code is not ErrorCode.none and current.leader_epoch == _UNKNOWN_EPOCH,
        leader_id=current.leader_id,
        leader_epoch=current.leader_epoch,
        leader_endpoints=(Endpoint(listener, current.host, current.port),) if has_leader else (),
    )


def encode_update_response(response: ChangeVotersResponse, leader: Endpoint | None) -> Values:
    """This API has no place for `message`."""
    current = {
        "leader_id": NO_LEADER if response.is_top_level else response.leader_id,
        "leader_epoch": _UNKNOWN_EPOCH if response.is_top_level else response.leader_epoch,
        "host": "",
        "port": 0,
    }
    if leader is not None and not response.is_top_level:
        current |= {"host": leader.host, "port": leader.port}
    return {"error_code": response.error, "current_leader": current}


ADD_CODEC = ApiCodec(
    ApiKey.ADD_RAFT_VOTER,
    (0, 1),
    decode_add_request,
    encode_add_request,
    decode_plain_response,
    encode_plain_response,
)
REMOVE_CODEC = ApiCodec(
    ApiKey.REMOVE_RAFT_VOTER,
    (0, 0),
    decode_remove_request,
    encode_remove_request,
    decode_plain_response,
    encode_plain_response,
)
UPDATE_CODEC = ApiCodec(
    ApiKey.UPDATE_RAFT_VOTER,
    (0, 0),
    decode_update_request,
    encode_update_request,
    decode_update_response,
    encode_update_response,
)
