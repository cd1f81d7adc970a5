"""What KIP-853 added: where the leader listens, changes of the voters, and the question which levels a node knows."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kquorum.network.api_versions import ApiVersionsAnswers, ServerFeatures, SupportedFeature
from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochResponse,
    ChangeVotersResponse,
    EndQuorumEpochResponse,
    FetchResponse,
    Response,
    TransferLeadershipRequest,
    VoteResponse,
)
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.message_codec import decode
from kquorum.wire.messages import api_versions as messages
from kquorum.wire.messages import update_raft_voter
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import read_answer, response_of
from tests.support.raft.codec import over_the_wire, versions

KEY = ReplicaKey(2, UUID(int=22))
LISTENERS = (Endpoint("CONTROLLER", "c1", 9093),)
ENDPOINTS = {1: LISTENERS[0]}
WITHOUT_WAITING = AddRaftVoterRequest(
    cluster_id="c", timeout_ms=1500, voter=KEY, endpoints=LISTENERS, ack_when_committed=False
)

LEADER_NAMING: list[tuple[ApiKey, int, Any]] = [
    (ApiKey.VOTE, 1, VoteResponse(leader_id=1, leader_epoch=6)),
    (ApiKey.BEGIN_QUORUM_EPOCH, 1, BeginQuorumEpochResponse(leader_id=1, leader_epoch=6)),
    (ApiKey.END_QUORUM_EPOCH, 1, EndQuorumEpochResponse(leader_id=1, leader_epoch=6)),
    (ApiKey.FETCH, 16, FetchResponse(leader_id=1, leader_epoch=6)),
    (ApiKey.FETCH, 16, FetchResponse(error=ErrorCode.not_leader_or_follower, leader_id=1, leader_epoch=6)),
    (ApiKey.UPDATE_RAFT_VOTER, 0, ChangeVotersResponse(leader_id=1, leader_epoch=6)),
]


def answered(api_key: ApiKey, version: int, response: Response, **given: Any) -> Any:
    """What the asking side reads out of the bytes."""
    answer = codec.encode_response(
        api_key, version, response, given.get("endpoints", {}), given.get("listener", "")
    )
    return codec.decode_response(api_key, read_answer(api_key, version, answer), "CONTROLLER")


@pytest.mark.parametrize(("api_key", "first", "response"), LEADER_NAMING)
def test_an_answer_says_where_the_leader_listens(api_key: ApiKey, first: int, response: Any) -> None:
    knowing = replace(response, leader_endpoints=LISTENERS)
    for version in versions(api_key):
        expected = LISTENERS if version >= first else ()
        assert answered(api_key, version, knowing).leader_endpoints == expected
        assert answered(api_key, version, response, endpoints=ENDPOINTS).leader_endpoints == expected
        assert answered(api_key, version, response).leader_endpoints == ()


@pytest.mark.parametrize(("api_key", "first", "response"), LEADER_NAMING)
def test_what_the_replica_knows_wins_over_the_table_and_the_listener_chooses(
    api_key: ApiKey, first: int, response: Any
) -> None:
    outside = Endpoint("OUTSIDE", "c1.example", 19093)
    knowing = replace(response, leader_endpoints=(*LISTENERS, outside))
    table = {1: Endpoint("CONTROLLER", "stale", 1)}
    for version in range(first, versions(api_key)[-1] + 1):
        for listener, host in (("OUTSIDE", "c1.example"), ("CONTROLLER", "c1"), ("ELSE", "c1")):
            (found,) = answered(
                api_key, version, knowing, endpoints=table, listener=listener
            ).leader_endpoints
            assert found.host == host


@pytest.mark.parametrize(("api_key", "first", "response"), LEADER_NAMING)
def test_without_a_leader_there_is_no_endpoint(api_key: ApiKey, first: int, response: Any) -> None:
    unknown = replace(response, leader_id=-1)
    table = ENDPOINTS | {-1: LISTENERS[0]}
    assert answered(api_key, first, unknown, endpoints=table).leader_endpoints == ()


def test_the_endpoint_of_another_node_is_not_the_leaders() -> None:
    values = {
        "error_code": ErrorCode.none,
        "topics": [
            {
                "topic_name": "__cluster_metadata",
                "partitions": [
                    {
                        "partition_index": 0,
                        "error_code": ErrorCode.none,
                        "leader_id": 1,
                        "leader_epoch": 6,
                        "vote_granted": False,
                    }
                ],
            }
        ],
        "node_endpoints": [{"node_id": 2, "host": "c2", "port": 9093}],
    }
    answer = read_answer(ApiKey.VOTE, 2, response_of(ApiKey.VOTE, 2, values))
    decoded = codec.decode_response(ApiKey.VOTE, answer)
    assert isinstance(decoded, VoteResponse)
    assert decoded == VoteResponse(leader_id=1, leader_epoch=6)


def test_a_replica_that_must_not_wait_for_the_commit_needs_a_leader_that_understands_it() -> None:
    message = over_the_wire(codec.encode_request(WITHOUT_WAITING, 1), 1)
    assert codec.decode_request(ApiKey.ADD_RAFT_VOTER, message) == WITHOUT_WAITING
    with pytest.raises(UnsupportedVersion):
        codec.encode_request(WITHOUT_WAITING, 0)


def test_an_update_refused_before_the_epoch_was_looked_at_stands_outside() -> None:
    """Kafka's answer then has no leader in it at all: the tagged field is absent."""
    bare = decode(update_raft_voter.UpdateRaftVoterResponse, 0, bytes.fromhex("00000000 0023 00"))[0]
    assert codec.decode_response(ApiKey.UPDATE_RAFT_VOTER, bare) == ChangeVotersResponse(
        error=ErrorCode.unsupported_version, is_top_level=True
    )


def test_api_versions_is_asked_and_never_served() -> None:
    assert codec.api_key_of(ApiVersionsRequest()) is ApiKey.API_VERSIONS
    assert ApiKey.API_VERSIONS in codec.CALLED_APIS
    assert ApiKey.API_VERSIONS not in codec.RAFT_APIS
    lowest, highest = codec.CALLED_APIS[ApiKey.API_VERSIONS]
    for version in range(lowest, highest + 1):
        request = codec.encode_request(ApiVersionsRequest(), version)
        assert isinstance(request, messages.ApiVersionsRequest)
        name = over_the_wire(request, version).client_software_name
        assert name == ("kquorum" if version >= 3 else "")


def test_a_listener_tells_the_kraft_versions_that_the_leader_asks_for() -> None:
    """The server's own answer, with the features that a controller has."""
    answers = ApiVersionsAnswers(codec.RAFT_APIS)
    features = ServerFeatures(
        supported=(SupportedFeature("a", 1, 2), SupportedFeature("kraft.version", 0, 1))
    )
    lowest, highest = codec.CALLED_APIS[ApiKey.API_VERSIONS]
    for version in range(lowest, highest + 1):
        request = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
        told = read_answer(ApiKey.API_VERSIONS, version, answers.answer(request, version, features))
        expected = VersionRange(0, 1) if version >= 4 else None
        found = codec.decode_response(ApiKey.API_VERSIONS, told)
        assert found == ApiVersionsResponse(kraft_versions=expected)


def test_a_node_that_does_not_name_kraft_version_or_refuses_says_none() -> None:
    version = codec.CALLED_APIS[ApiKey.API_VERSIONS][1]
    request = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    for features in (ServerFeatures(), ServerFeatures(supported=(SupportedFeature("x", 0, 1),))):
        answer = ApiVersionsAnswers({}).answer(request, version, features)
        told = read_answer(ApiKey.API_VERSIONS, version, answer)
        assert codec.decode_response(ApiKey.API_VERSIONS, told) == ApiVersionsResponse()
    refused = messages.ApiVersionsResponse(error_code=ErrorCode.invalid_request)
    assert codec.decode_response(ApiKey.API_VERSIONS, refused) == ApiVersionsResponse(
        error=ErrorCode.invalid_request
    )


def test_a_transfer_of_leadership_is_no_kafka_request() -> None:
    with pytest.raises(KeyError):
        codec.api_key_of(TransferLeadershipRequest(target_id=2))
