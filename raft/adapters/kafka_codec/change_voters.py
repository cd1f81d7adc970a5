"""AddRaftVoter (80), versions 0 and 1, RemoveRaftVoter (81) and UpdateRaftVoter (82), version 0 (KIP-853).

Unlike the other quorum APIs these name no partition. The answers of the first two say neither who leads nor in which
epoch, so a stale answer cannot be distinguished from a fresh one: the caller has to look elsewhere.
"""

from kquorum.raft.adapters.kafka_codec.partition import ApiCodec, listeners_from, listeners_of
from kquorum.raft.messages import (
    NO_LEADER,
    AddRaftVoterRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.messages import add_raft_voter, remove_raft_voter, update_raft_voter
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

_FIRST_WITH_ACK_WHEN_COMMITTED = 1
_UNKNOWN_EPOCH = -1


def decode_add_request(request: add_raft_voter.AddRaftVoterRequest) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=request.cluster_id,
        timeout_ms=request.timeout_ms,
        voter=ReplicaKey(request.voter_id, request.voter_directory_id),
        endpoints=listeners_of(request.listeners),
        ack_when_committed=request.ack_when_committed,
    )


def encode_add_request(request: AddRaftVoterRequest, version: int) -> add_raft_voter.AddRaftVoterRequest:
    if not request.ack_when_committed and version < _FIRST_WITH_ACK_WHEN_COMMITTED:
        # The leader would wait for a commit that may need this replica's next Fetch.
        raise UnsupportedVersion(f"version {version} of AddRaftVoter is always answered after the commit")
    return add_raft_voter.AddRaftVoterRequest(
        cluster_id=request.cluster_id,
        timeout_ms=request.timeout_ms,
        voter_id=request.voter.id,
        voter_directory_id=request.voter.directory_id,
        listeners=listeners_from(add_raft_voter.Listener, request.endpoints),
        ack_when_committed=request.ack_when_committed,
    )


def decode_add_response(
    response: add_raft_voter.AddRaftVoterResponse, _listener: str
) -> ChangeVotersResponse:
    """Leader and epoch stay unknown."""
    return ChangeVotersResponse(error=response.error_code, message=response.error_message)


def encode_add_response(
    response: ChangeVotersResponse, _leader: Endpoint | None
) -> add_raft_voter.AddRaftVoterResponse:
    return add_raft_voter.AddRaftVoterResponse(error_code=response.error, error_message=response.message)


def decode_remove_request(request: remove_raft_voter.RemoveRaftVoterRequest) -> RemoveRaftVoterRequest:
    voter = ReplicaKey(request.voter_id, request.voter_directory_id)
    return RemoveRaftVoterRequest(cluster_id=request.cluster_id, voter=voter)


def encode_remove_request(
    request: RemoveRaftVoterRequest, _version: int
) -> remove_raft_voter.RemoveRaftVoterRequest:
    return remove_raft_voter.RemoveRaftVoterRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.id,
        voter_directory_id=request.voter.directory_id,
    )


def decode_remove_response(
    response: remove_raft_voter.RemoveRaftVoterResponse, _listener: str
) -> ChangeVotersResponse:
    """Leader and epoch stay unknown."""
    return ChangeVotersResponse(error=response.error_code, message=response.error_message)


def encode_remove_response(
    response: ChangeVotersResponse, _leader: Endpoint | None
) -> remove_raft_voter.RemoveRaftVoterResponse:
    return remove_raft_voter.RemoveRaftVoterResponse(
        error_code=response.error, error_message=response.message
    )


def decode_update_request(request: update_raft_voter.UpdateRaftVoterRequest) -> UpdateRaftVoterRequest:
    feature = request.k_raft_version_feature
    return UpdateRaftVoterRequest(
        cluster_id=request.cluster_id,
        current_leader_epoch=request.current_leader_epoch,
        voter=ReplicaKey(request.voter_id, request.voter_directory_id),
        endpoints=listeners_of(request.listeners),
        kraft_versions=VersionRange(feature.min_supported_version, feature.max_supported_version),
    )


def encode_update_request(
    request: UpdateRaftVoterRequest, _version: int
) -> update_raft_voter.UpdateRaftVoterRequest:
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=request.cluster_id,
        current_leader_epoch=request.current_leader_epoch,
        voter_id=request.voter.id,
        voter_directory_id=request.voter.directory_id,
        listeners=listeners_from(update_raft_voter.Listener, request.endpoints),
        k_raft_version_feature=update_raft_voter.KRaftVersionFeature(
            min_supported_version=request.kraft_versions.lowest,
            max_supported_version=request.kraft_versions.highest,
        ),
    )


def decode_update_response(
    response: update_raft_voter.UpdateRaftVoterResponse, listener: str
) -> ChangeVotersResponse:
    """An error without an epoch was found before the epoch was checked, so it stands outside."""
    error, current = response.error_code, response.current_leader
    has_leader = current.leader_id != NO_LEADER and bool(current.host)
    return ChangeVotersResponse(
        error=error,
        is_top_level=error is not ErrorCode.none and current.leader_epoch == _UNKNOWN_EPOCH,
        leader_id=current.leader_id,
        leader_epoch=current.leader_epoch,
        leader_endpoints=(Endpoint(listener, current.host, current.port),) if has_leader else (),
    )


def encode_update_response(
    response: ChangeVotersResponse, leader: Endpoint | None
) -> update_raft_voter.UpdateRaftVoterResponse:
    """This API has no place for `message`."""
    if response.is_top_level:
        return update_raft_voter.UpdateRaftVoterResponse(error_code=response.error)
    current = update_raft_voter.CurrentLeader(
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
        host="" if leader is None else leader.host,
        port=0 if leader is None else leader.port,
    )
    return update_raft_voter.UpdateRaftVoterResponse(error_code=response.error, current_leader=current)


ADD_CODEC = ApiCodec(
    ApiKey.ADD_RAFT_VOTER,
    (0, 1),
    decode_add_request,
    encode_add_request,
    decode_add_response,
    encode_add_response,
)
REMOVE_CODEC = ApiCodec(
    ApiKey.REMOVE_RAFT_VOTER,
    (0, 0),
    decode_remove_request,
    encode_remove_request,
    decode_remove_response,
    encode_remove_response,
)
UPDATE_CODEC = ApiCodec(
    ApiKey.UPDATE_RAFT_VOTER,
    (0, 0),
    decode_update_request,
    encode_update_request,
    decode_update_response,
    encode_update_response,
)
