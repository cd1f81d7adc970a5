"""How long the requests are that Kafka's tools make of a large cluster, and which are refused."""

from typing import Any

import pytest

from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.metadata.adapters.request_bounds import RequestBounds
from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller_apis import CONTROLLER_APIS
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.kio.classes import request_class
from tests.support.kio.codec import decode_bounded, elements_read, encode
from tests.support.kio.entities import build

TOPICS = 5_000


def elements_of(api_key: ApiKey, values: dict[str, Any]) -> int:
    cls = request_class(api_key, supported_versions(api_key)[1])
    decode_bounded(cls, encode(build(cls, values)), 0, 1_000_000)
    return elements_read()


def excess(api_key: ApiKey, elements: int, *, is_of_broker: bool) -> ApiError | None:
    api = BROKER_APIS[api_key] if is_of_broker else CONTROLLER_APIS[api_key]
    return RequestBounds().excess(api.entry_limit, elements)


def all_configs() -> dict[str, Any]:
    """kafka-topics --describe, of all topics."""
    asked = [
        {"resource_type": 2, "resource_name": f"t{number}", "configuration_keys": None}
        for number in range(TOPICS)
    ]
    return {"resources": asked, "include_synonyms": True, "include_documentation": False}


def moves_of_a_broker() -> dict[str, Any]:
    """kafka-reassign-partitions --execute, of what a broker has that is to be taken out of service."""
    topics = [
        {"name": f"t{number}", "partitions": [{"partition_index": 0, "replicas": [1, 2, 3]}]}
        for number in range(TOPICS // 2)
    ]
    return {"topics": topics, "timeout_ms": 60_000}


@pytest.mark.parametrize(
    ("api_key", "values"),
    [
        (ApiKey.DESCRIBE_CONFIGS, all_configs()),
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, moves_of_a_broker()),
    ],
    ids=["DescribeConfigs", "AlterPartitionReassignments"],
)
def test_what_kafkas_tools_do_not_divide_passes(api_key: ApiKey, values: dict[str, Any]) -> None:
    assert excess(api_key, elements_of(api_key, values), is_of_broker=True) is None


@pytest.mark.parametrize(
    ("api_key", "is_of_broker", "most", "key"),
    [
        (ApiKey.DELETE_TOPICS, True, 2_000, "2000 (kquorum.request.max.entries)"),
        (ApiKey.DESCRIBE_CONFIGS, False, 2_000, "2000 (kquorum.request.max.entries)"),
        (ApiKey.DESCRIBE_CONFIGS, True, 20_000, "20000 (10 times kquorum.request.max.entries)"),
        (
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            False,
            20_000,
            "20000 (10 times kquorum.request.max.entries)",
        ),
    ],
)
def test_more_is_refused_with_the_key_that_says_how_many(
    api_key: ApiKey, is_of_broker: bool, most: int, key: str
) -> None:
    assert excess(api_key, most, is_of_broker=is_of_broker) is None
    refused = excess(api_key, most + 1, is_of_broker=is_of_broker)
    assert refused is not None
    assert refused.code is ErrorCode.policy_violation
    assert f"at most {key}" in str(refused)


def test_what_no_administrator_sends_is_not_bounded_here() -> None:
    assert excess(ApiKey.METADATA, 100_000, is_of_broker=True) is None
