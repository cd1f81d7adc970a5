"""DescribeConfigs in slices is what it is in one piece, in every version."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.metadata.describe.configs import RESOURCES_AT_ONCE, describe_configs, describe_configs_in_slices
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.configs import GROUP, TOPIC
from kquorum.wire.message_codec import encode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import request_of
from tests.unit.metadata.describe.test_describe_configs import IMAGE, STATIC

LOWEST, HIGHEST = supported_versions(ApiKey.DESCRIBE_CONFIGS)


def question(version: int, count: int) -> DescribeRequest:
    resources = [
        {
            "resource_type": GROUP if number % 7 == 0 else TOPIC,
            "resource_name": ("alpha", "beta", "not there", "ä !")[number % 4],
            "configuration_keys": ["retention.ms"] if number % 5 == 0 else None,
        }
        for number in range(count)
    ]
    values: dict[str, Any] = {
        "resources": resources,
        "include_synonyms": True,
        "include_documentation": version >= 3,
    }
    return DescribeRequest(
        body=request_of(ApiKey.DESCRIBE_CONFIGS, version, values),
        version=version,
        image=IMAGE,
        principal="User:alice",
        node_id=1,
        node_configs=STATIC,
    )


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
@pytest.mark.parametrize("count", [0, 1, RESOURCES_AT_ONCE, 2 * RESOURCES_AT_ONCE + 3])
def test_the_slices_make_the_whole(version: int, count: int) -> None:
    asked = question(version, count)
    *rests, last = describe_configs_in_slices(asked)
    assert last is not None
    assert len(rests) == max(0, (count - 1) // RESOURCES_AT_ONCE)
    assert not any(rests)
    assert last.data == encode(describe_configs(asked), version)


def test_more_than_a_byte_can_count() -> None:
    asked = question(HIGHEST, 130)
    (*_, last) = describe_configs_in_slices(replace(asked))
    assert last is not None
    assert last.data == encode(describe_configs(asked), HIGHEST)
