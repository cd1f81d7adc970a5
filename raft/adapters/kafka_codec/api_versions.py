"""ApiVersions (18) as the leader asks it of a node that is to become a voter: which kraft.version levels it knows.

Only the asking side: a listener's server answers ApiVersions itself (`network.api_versions`). The response has features
from version 3 on, and those that begin at level 0, such as kraft.version, from version 4 on.
"""

from typing import NoReturn

from kquorum.raft.adapters.kafka_codec.partition import ApiCodec
from kquorum.raft.messages import ApiVersionsRequest, ApiVersionsResponse
from kquorum.raft.voters import Endpoint, VersionRange
from kquorum.wire.messages import api_versions as kafka
from kquorum.wire.protocol.api_keys import ApiKey

_FEATURE = "kraft.version"


def encode_request(_request: ApiVersionsRequest, _version: int) -> kafka.ApiVersionsRequest:
    return kafka.ApiVersionsRequest(client_software_name="kquorum", client_software_version="unknown")


def decode_response(response: kafka.ApiVersionsResponse, _listener: str) -> ApiVersionsResponse:
    ranges = {
        feature.name: VersionRange(feature.min_version, feature.max_version)
        for feature in response.supported_features
    }
    return ApiVersionsResponse(error=response.error_code, kraft_versions=ranges.get(_FEATURE))


def _decode_request(_request: kafka.ApiVersionsRequest) -> NoReturn:
    raise AssertionError("the replica is never asked for ApiVersions: its listener answers")


def _encode_response(_response: ApiVersionsResponse, _leader: Endpoint | None) -> NoReturn:
    raise AssertionError("the replica never answers ApiVersions: its listener does")


CODEC = ApiCodec(
    ApiKey.API_VERSIONS, (0, 4), _decode_request, encode_request, decode_response, _encode_response
)
