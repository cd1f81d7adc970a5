"""DescribeConfigs of many resources, made in slices: in every version what each resource's own answer holds."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.metadata.configs.table import BROKER_CONFIGS, TOPIC_CONFIGS
from kquorum.metadata.describe.configs import (
    ENTRIES_AT_ONCE,
    MOST_BYTES,
    MOST_ENTRIES,
    Entry,
    describe_configs,
)
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.configs import BROKER, GROUP, TOPIC, ConfigResource, ConfigsImage
from kquorum.wire import message_codec
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.api_calls import request_of
from tests.support.metadata.described_configs import IMAGE, STATIC

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


def results_of(version: int, answer: EncodedBody | None) -> tuple[DescribeConfigsResult, ...]:
    assert answer is not None
    return message_codec.decode(DescribeConfigsResponse, version, answer.data)[0].results


def made_one_by_one(asked: DescribeRequest) -> bytes:
    """The answers of each resource in a request of its own, put together."""
    results: list[DescribeConfigsResult] = []
    for resource in asked.body.resources:
        (alone,) = describe_configs(replace(asked, body=replace(asked.body, resources=(resource,))))
        results += results_of(asked.version, alone)
    return encode(DescribeConfigsResponse(results=tuple(results)), asked.version)


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
@pytest.mark.parametrize("count", [0, 1, 20, 43])
def test_the_slices_make_the_whole(version: int, count: int) -> None:
    asked = question(version, count)
    *rests, last = describe_configs(asked)
    assert last is not None
    entries = len(TOPIC_CONFIGS) * count  # about: those of groups are fewer
    assert entries // (2 * ENTRIES_AT_ONCE) <= len(rests) <= entries // ENTRIES_AT_ONCE
    assert not any(rests)
    assert last.data == made_one_by_one(asked)


def test_more_than_a_byte_can_count() -> None:
    asked = question(HIGHEST, 130)
    *_, last = describe_configs(asked)
    assert last is not None
    assert last.data == made_one_by_one(asked)


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
@pytest.mark.parametrize("count", [0, 20])
@pytest.mark.parametrize("refusals", [1, 2 * ENTRIES_AT_ONCE + 1])
def test_what_is_refused_stands_behind_the_rest_and_is_in_slices_too(
    version: int, count: int, refusals: int
) -> None:
    asked = question(version, count)
    refused = [
        DescribeConfigsResult(
            error_code=ErrorCode.topic_authorization_failed,
            error_message=None,
            resource_type=TOPIC,
            resource_name=f"refused {number}",
        )
        for number in range(refusals)
    ]
    *_, described = describe_configs(asked)
    *rests, last = describe_configs(asked, refused)
    assert results_of(version, last) == (*results_of(version, described), *refused)
    assert len(rests) >= refusals // ENTRIES_AT_ONCE


def same_broker_again(count: int) -> DescribeRequest:
    """Some bytes of request for each resource, and all configs of a broker in the answer."""
    resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": None}
    values = {"resources": [resource] * count, "include_synonyms": True, "include_documentation": True}
    return replace(question(HIGHEST, 0), body=request_of(ApiKey.DESCRIBE_CONFIGS, HIGHEST, values))


def test_a_slice_has_one_broker() -> None:
    assert len(BROKER_CONFIGS) > ENTRIES_AT_ONCE
    assert len(list(describe_configs(same_broker_again(5)))) == 5


def test_one_answer_has_a_bounded_number_of_configs() -> None:
    fitting = MOST_ENTRIES // len(BROKER_CONFIGS)
    *_, last = describe_configs(same_broker_again(fitting + 3))
    assert last is not None
    results = results_of(HIGHEST, last)
    assert [each.error_code for each in results] == [ErrorCode.none] * fitting + [
        ErrorCode.policy_violation
    ] * 3
    assert results[-1].configs == ()
    assert "ask for fewer" in (results[-1].error_message or "")


@pytest.mark.parametrize("character", ["x", "€"])
@pytest.mark.parametrize("synonyms", [True, False])
def test_one_answer_has_a_bounded_number_of_bytes(
    character: str, synonyms: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic with two values of 32 KB, named 2,000 times in 22 KB, made an answer of 260 MB."""
    value = character * (32_000 // len(character.encode()))
    long = {"leader.replication.throttled.replicas": value, "follower.replication.throttled.replicas": value}
    image = replace(IMAGE, configs=ConfigsImage(resources={ConfigResource(TOPIC, "alpha"): long}))
    resource = {"resource_type": TOPIC, "resource_name": "alpha", "configuration_keys": None}
    values = {
        "resources": [resource] * 2_000,
        "include_synonyms": synonyms,
        "include_documentation": False,
    }
    made, describe = [0], Entry.described

    def counted(entry: Entry, *rest: Any) -> Any:
        made[0] += 1
        return describe(entry, *rest)

    monkeypatch.setattr(Entry, "described", counted)
    body = request_of(ApiKey.DESCRIBE_CONFIGS, HIGHEST, values)
    *_, last = describe_configs(replace(question(HIGHEST, 0), image=image, body=body))
    assert last is not None
    results = results_of(HIGHEST, last)
    codes = [each.error_code for each in results]
    fitting = codes.count(ErrorCode.none)
    assert codes == [ErrorCode.none] * fitting + [ErrorCode.policy_violation] * (2_000 - fitting)
    assert 0.95 * MOST_BYTES < len(last.data) <= MOST_BYTES + 2_000 * 100
    assert f"at most {MOST_BYTES} bytes" in (results[-1].error_message or "")
    assert made[0] == sum(len(each.configs) for each in results), "what is refused is not made"


def test_the_bytes_of_the_slices_are_told_as_they_are_made() -> None:
    made: list[int] = []
    *rests, last = describe_configs(replace(question(HIGHEST, 43), note_made=made.append))
    assert last is not None
    assert len(made) == len(rests)
    assert 0.5 * len(last.data) < sum(made) < len(last.data)
