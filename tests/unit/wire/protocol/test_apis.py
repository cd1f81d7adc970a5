"""The table of APIs against kio's index, and the header rules against Kafka's."""

import pytest
from kio.schema.index import api_key_map

from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.protocol.apis import (
    ApiKey,
    api_name,
    api_version,
    is_flexible,
    is_supported,
    request_header_version,
    response_header_version,
    supported_versions,
)
from tests.support.kio.classes import request_class, response_class

REMOVED_IN_4_0 = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}

QUORUM_APIS = (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.FETCH, ApiKey.BROKER_HEARTBEAT, ApiKey.ENVELOPE)


def test_every_api_that_can_be_read_has_a_key_of_its_name() -> None:
    assert {key for key in ApiKey if key not in REMOVED_IN_4_0} == set(api_key_map)
    for key, name in api_key_map.items():
        assert ApiKey(key).name.lower() == name


@pytest.mark.parametrize("api_key", QUORUM_APIS)
def test_every_version_in_range_has_its_two_classes(api_key: ApiKey) -> None:
    lowest, highest = supported_versions(api_key)
    for version in range(lowest, highest + 1):
        assert request_class(api_key, version).__version__ == version
        assert response_class(api_key, version).__version__ == version
        assert int(request_class(api_key, version).__api_key__) == int(api_key)
        assert is_supported(api_key, version)


@pytest.mark.parametrize("version_offset", [-1, 1])
def test_versions_outside_of_the_range_are_refused_by_name(version_offset: int) -> None:
    lowest, highest = supported_versions(ApiKey.FETCH)
    version = lowest - 1 if version_offset < 0 else highest + 1
    assert not is_supported(ApiKey.FETCH, version)
    with pytest.raises(UnsupportedVersion, match=f"version {version} of Fetch is not known; versions 4 to"):
        api_version(ApiKey.FETCH, version)


@pytest.mark.parametrize("api_key", [*REMOVED_IN_4_0, 93, 999, -1])
def test_an_api_without_versions_is_refused(api_key: int) -> None:
    assert not is_supported(api_key, 0)
    with pytest.raises(UnsupportedVersion, match="no version of"):
        supported_versions(api_key)
    with pytest.raises(UnsupportedVersion):
        request_class(api_key, 0)


@pytest.mark.parametrize(
    ("api_key", "version", "flexible", "request_header", "response_header"),
    [
        (ApiKey.FETCH, 11, False, 1, 0),
        (ApiKey.FETCH, 12, True, 2, 1),
        (ApiKey.VOTE, 0, True, 2, 1),
        (ApiKey.SASL_HANDSHAKE, 1, False, 1, 0),
        (ApiKey.API_VERSIONS, 2, False, 1, 0),
        (ApiKey.API_VERSIONS, 3, True, 2, 0),  # KIP-511: no tagged fields before the version is agreed on
        (ApiKey.API_VERSIONS, 4, True, 2, 0),
    ],
)
def test_headers_follow_the_version(
    api_key: ApiKey, version: int, flexible: bool, request_header: int, response_header: int
) -> None:
    assert is_flexible(api_key, version) is flexible
    assert request_header_version(api_key, version) == request_header
    assert response_header_version(api_key, version) == response_header


def test_names_are_those_that_operators_know() -> None:
    assert api_name(18) == "ApiVersions"
    assert api_name(4) == "LeaderAndIsr"
    assert api_name(999) == "unknown API 999"
    assert str(api_version(ApiKey.BROKER_HEARTBEAT, 1)) == "BrokerHeartbeat version 1"
