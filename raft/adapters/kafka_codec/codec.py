"""Which codec serves which API and which message."""

from collections.abc import Mapping
from typing import Any, Final, cast

from kquorum.raft.adapters.kafka_codec import (
    api_versions,
    begin_quorum_epoch,
    change_voters,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from kquorum.raft.adapters.kafka_codec.fetch_encoding import encode_ordinary
from kquorum.raft.adapters.kafka_codec.partition import ApiCodec, Endpoints, Refusal, endpoint_of_leader
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    Request,
    Response,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from kquorum.wire import message_schema
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody

KafkaRequest = message_schema.Request[message_schema.Response]
KafkaResponse = message_schema.Response
_AnyCodec = ApiCodec[Any, Any, Any, Any]

_BY_MESSAGE: Final[Mapping[type[Request], _AnyCodec]] = {
    VoteRequest: vote.CODEC,
    BeginQuorumEpochRequest: begin_quorum_epoch.CODEC,
    EndQuorumEpochRequest: end_quorum_epoch.CODEC,
    FetchRequest: fetch.CODEC,
    FetchSnapshotRequest: fetch_snapshot.CODEC,
    DescribeQuorumRequest: describe_quorum.CODEC,
    AddRaftVoterRequest: change_voters.ADD_CODEC,
    RemoveRaftVoterRequest: change_voters.REMOVE_CODEC,
    UpdateRaftVoterRequest: change_voters.UPDATE_CODEC,
    ApiVersionsRequest: api_versions.CODEC,
}
_BY_API_KEY: Final[Mapping[int, _AnyCodec]] = {codec.api_key: codec for codec in _BY_MESSAGE.values()}

# The versions of each API that a transport may use.
CALLED_APIS: Mapping[ApiKey, tuple[int, int]] = {
    ApiKey(codec.api_key): codec.versions for codec in _BY_MESSAGE.values()
}
# The versions of each API that a listener may offer and give to the replica; ApiVersions its server answers itself.
RAFT_APIS: Mapping[ApiKey, tuple[int, int]] = {
    api_key: versions for api_key, versions in CALLED_APIS.items() if api_key is not ApiKey.API_VERSIONS
}


def api_key_of(request: Request) -> ApiKey:
    return ApiKey(_BY_MESSAGE[type(request)].api_key)


def encode_request(request: Request, version: int) -> KafkaRequest:
    """For one version; raises UnsupportedVersion when that version cannot say what is meant."""
    return cast(KafkaRequest, _BY_MESSAGE[type(request)].encode_request(request, version))


def decode_request(api_key: int, request: KafkaRequest) -> Request | Refusal:
    """The core's message, or the answer to be given when the request is not about the metadata partition."""
    return cast(Request | Refusal, _BY_API_KEY[api_key].decode_request(request))


def encode_response(
    api_key: int, version: int, response: Response, endpoints: Endpoints, listener: str = ""
) -> KafkaResponse | EncodedBody:
    """The answer in one version, to a peer that asked through `listener`.

    Where the leader listens is the response's to say; `endpoints`, by node id, is asked if it does not.
    """
    if isinstance(response, FetchResponse):
        body = encode_ordinary(version, response, endpoint_of_leader(response, endpoints, listener))
        if body is not None:
            return EncodedBody(body)
    return build_response(api_key, response, endpoints, listener)


def build_response(
    api_key: int, response: Response, endpoints: Endpoints, listener: str = ""
) -> KafkaResponse:
    """As `encode_response`, always as a message."""
    leader = endpoint_of_leader(response, endpoints, listener)
    return cast(KafkaResponse, _BY_API_KEY[api_key].encode_response(response, leader))


def decode_response(api_key: int, response: KafkaResponse, listener: str = "") -> Response:
    """`listener` is the quorum's, by which the leader's endpoint goes. Raises DecodeError when the answer is not about
    the metadata partition."""
    return cast(Response, _BY_API_KEY[api_key].decode_response(response, listener))
