"""Which codec serves which API and which message, and the way from values to entities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

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
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import request_class, response_class
from kquorum.wire.protocol.entities import build
from kquorum.wire.protocol.headers import EncodedBody

if TYPE_CHECKING:
    from kio.static.protocol import RequestPayload, ResponsePayload

_BY_MESSAGE: Mapping[type[Request], ApiCodec] = {
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
_BY_API_KEY: Mapping[int, ApiCodec] = {codec.api_key: codec for codec in _BY_MESSAGE.values()}

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


def encode_request(request: Request, version: int) -> "RequestPayload":
    """The entity of one version; raises UnsupportedVersion when that version cannot say what is meant."""
    codec = _BY_MESSAGE[type(request)]
    return build(request_class(codec.api_key, version), codec.encode_request(request, version))


def decode_request(api_key: int, entity: "RequestPayload") -> Request | Refusal:
    """The core's message, or the answer to be given when the request is not about the metadata partition."""
    return cast(Request | Refusal, _BY_API_KEY[api_key].decode_request(entity))


def encode_response(
    api_key: int, version: int, response: Response, endpoints: Endpoints, listener: str = ""
) -> "ResponsePayload | EncodedBody":
    """The answer in one version, to a peer that asked through `listener`.

    Where the leader listens is the response's to say; `endpoints`, by node id, is asked if it does not.
    """
    if isinstance(response, FetchResponse):
        body = encode_ordinary(version, response, endpoint_of_leader(response, endpoints, listener))
        if body is not None:
            return EncodedBody(body)
    return build_response(api_key, version, response, endpoints, listener)


def build_response(
    api_key: int, version: int, response: Response, endpoints: Endpoints, listener: str = ""
) -> "ResponsePayload":
    """As `encode_response`, always as an entity."""
    leader = endpoint_of_leader(response, endpoints, listener)
    values = _BY_API_KEY[api_key].encode_response(response, leader)
    return build(response_class(api_key, version), values)


def encode_refusal(api_key: int, version: int, refusal: Refusal) -> "ResponsePayload":
    return build(response_class(api_key, version), refusal.values)


def decode_response(api_key: int, entity: "ResponsePayload", listener: str = "") -> Response:
    """`listener` is the quorum's, by which the leader's endpoint goes. Raises DecodeError when the answer is not about
    the metadata partition."""
    return cast(Response, _BY_API_KEY[api_key].decode_response(entity, listener))
