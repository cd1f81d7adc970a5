"""ApiVersions as the server answers it: every version, the error that says which version to ask in, and features."""

from typing import Any

import pytest

from kquorum.network.api_versions import (
    ApiVersionsAnswers,
    FinalizedFeature,
    ServerFeatures,
    SupportedFeature,
)
from kquorum.network.authentication import SASL_VERSIONS
from kquorum.wire.message_codec import decode
from kquorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kquorum.wire.protocol.apis import ApiKey, supported_versions
from kquorum.wire.protocol.frames import encode_frame
from tests.support.api_calls import request_of
from tests.support.kio.frames import decode_response, encode_request
from tests.support.network.peers import (
    SUPPORTED,
    RawClient,
    RunTest,
    correlation_id_of,
    echo_request,
    header_bytes,
    raw_client,
    serving,
)

NEWEST = supported_versions(ApiKey.API_VERSIONS)[1]
OFFERED = SUPPORTED | SASL_VERSIONS | {ApiKey.API_VERSIONS: (0, NEWEST)}

FEATURES = ServerFeatures(
    supported=(SupportedFeature("metadata.version", 7, 27), SupportedFeature("kraft.version", 0, 1)),
    finalized=(FinalizedFeature("metadata.version", 25), FinalizedFeature("kraft.version", 0)),
    finalized_epoch=1234,
)


async def _ask(client: RawClient, version: int, correlation_id: int = 3, name: str = "librdkafka") -> Any:
    values = {"client_software_name": name, "client_software_version": "2.8.0"}
    entity = request_of(ApiKey.API_VERSIONS, version, values)
    request = encode_request(ApiKey.API_VERSIONS, version, correlation_id, "c", entity)
    client.writer.write(encode_frame(request))
    return await _answer(client, version, correlation_id)


async def _answer(client: RawClient, version: int, correlation_id: int) -> Any:
    frame = await client.next_frame()
    assert correlation_id_of(frame) == correlation_id
    assert frame is not None
    return decode_response(ApiKey.API_VERSIONS, version, frame)[1]


def _ranges(response: Any) -> dict[int, tuple[int, int]]:
    return {item.api_key: (item.min_version, item.max_version) for item in response.api_keys}


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_every_version_is_answered_with_what_is_offered(run: RunTest, version: int) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            response = await _ask(client, version)
            assert response.__version__ == version
            assert response.error_code == 0
            assert _ranges(response) == OFFERED

    run(test())


@pytest.mark.parametrize("version", [NEWEST + 1, 32_000])
def test_an_unsupported_version_is_answered_in_version_zero_and_the_connection_lives(
    run: RunTest, version: int
) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            unknown = header_bytes(ApiKey.API_VERSIONS, version, 11) + b"\x00future body"
            client.writer.write(encode_frame(unknown))
            response = await _answer(client, version, 11)
            assert response.__version__ == 0
            assert response.error_code == 35
            assert _ranges(response) == OFFERED
            assert (await _ask(client, NEWEST)).error_code == 0

    run(test())


@pytest.mark.parametrize("name", ["", "-dash first", "with space", "ends-with-dot."])
def test_a_client_name_that_is_not_well_formed_is_an_invalid_request(run: RunTest, name: str) -> None:
    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            assert (await _ask(client, 3, name=name)).error_code == 42
            assert (await _ask(client, 2, name=name)).error_code == 0  # carries no name yet

    run(test())


def test_features_are_encoded_as_each_version_allows(run: RunTest) -> None:
    async def test() -> None:
        async with serving(features=lambda: FEATURES) as server, raw_client(server) as client:
            third, fourth = await _ask(client, 3), await _ask(client, 4)
            assert [feature.name for feature in third.supported_features] == ["metadata.version"]
            assert [_range(feature) for feature in fourth.supported_features] == [
                ("metadata.version", 7, 27),
                ("kraft.version", 0, 1),
            ]
            (finalized,) = fourth.finalized_features
            assert (finalized.name, finalized.min_version_level, finalized.max_version_level) == (
                "metadata.version",
                25,
                25,
            )
            assert fourth.finalized_features_epoch == 1234

    run(test())


def _range(feature: Any) -> tuple[str, int, int]:
    return feature.name, feature.min_version, feature.max_version


def test_changed_features_are_in_the_next_response(run: RunTest) -> None:
    features = [ServerFeatures(finalized_epoch=1)]

    async def test() -> None:
        async with serving(features=lambda: features[-1]) as server, raw_client(server) as client:
            assert (await _ask(client, 3)).finalized_features_epoch == 1
            features.append(ServerFeatures(finalized_epoch=2))
            assert (await _ask(client, 3)).finalized_features_epoch == 2

    run(test())


def test_a_fault_of_the_features_ends_only_that_connection(run: RunTest) -> None:
    def features() -> ServerFeatures:
        raise RuntimeError("no image yet")

    async def test() -> None:
        async with serving(features=features) as server, raw_client(server) as good:
            for version in (NEWEST, NEWEST + 1):
                async with raw_client(server) as client:
                    client.writer.write(encode_frame(_bare_request(version)))
                    assert await client.is_closed_by_server()
            good.writer.write(echo_request("good", 1))
            assert await good.next_echo() == (1, "good")
            assert server.counters.failed_requests == 2

    run(test())


def _bare_request(version: int) -> bytes:
    return header_bytes(ApiKey.API_VERSIONS, version, 1) + b"\x00\x02a\x021\x00"


def test_what_another_node_answers_is_offered_in_the_versions_of_both() -> None:
    elsewhere: dict[int, tuple[int, int]] | None = None
    supported = {ApiKey.UPDATE_FEATURES: (0, 2), ApiKey.CREATE_TOPICS: (2, 7), ApiKey.FETCH: (4, 18)}
    answers = ApiVersionsAnswers(supported, lambda: elsewhere)

    def offered() -> dict[int, tuple[int, int]]:
        body = answers.answer(ApiVersionsRequest(), 0, FEATURES)
        response = decode(ApiVersionsResponse, 0, body.data)[0]
        found = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        del found[ApiKey.API_VERSIONS]
        return found

    assert offered() == supported
    elsewhere = {ApiKey.UPDATE_FEATURES: (0, 1), ApiKey.CREATE_TOPICS: (0, -1)}
    assert offered() == {ApiKey.UPDATE_FEATURES: (0, 1), ApiKey.FETCH: (4, 18)}
    elsewhere = {ApiKey.UPDATE_FEATURES: (1, 9)}
    assert offered() == supported | {ApiKey.UPDATE_FEATURES: (1, 2)}
