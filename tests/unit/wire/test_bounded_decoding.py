"""Requests are decoded only as far as their reader takes their elements, however deep these are nested."""

from typing import Any

import pytest

from tests.support.wire_values import fullest, least
from wire.codec import decode, decode_bounded, encode
from wire.codegen.kio_plans import plan_of
from wire.errors import TooManyElements
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import request_class
from wire.protocol.entities import build

NESTED = request_class(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4)


def nested(topics: int, partitions: int) -> Any:
    partition = {"partition": 0, "current_leader_epoch": 0, "leader_epoch": 0}
    topic = {"topic": "x", "partitions": [partition] * partitions}
    return build(NESTED, {"replica_id": -1, "topics": [topic] * topics})


@pytest.mark.parametrize("api_key", [ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.FETCH, ApiKey.PRODUCE])
def test_what_is_not_too_much_is_read_as_always(api_key: ApiKey) -> None:
    cls = request_class(api_key, {ApiKey.METADATA: 12, ApiKey.CREATE_TOPICS: 7}.get(api_key, 12))
    for entity in (least(plan_of(cls)), fullest(plan_of(cls))):
        data = encode(entity)
        assert decode_bounded(cls, data, 0, 1_000) == decode(cls, data)


@pytest.mark.parametrize(("topics", "partitions"), [(1, 11), (12, 0), (3, 4), (11, 1)])
def test_elements_count_together_with_those_inside_of_them(topics: int, partitions: int) -> None:
    data = encode(nested(topics, partitions))
    count = topics + topics * partitions
    assert decode_bounded(NESTED, data, 0, count)[0] == nested(topics, partitions)
    with pytest.raises(TooManyElements, match=f"more than {count - 1} elements of arrays"):
        decode_bounded(NESTED, data, 0, count - 1)


def test_arrays_of_strings_and_of_numbers_count() -> None:
    cls = request_class(ApiKey.DELETE_GROUPS, 2)
    data = encode(build(cls, {"groups_names": [""] * 9}))
    decode_bounded(cls, data, 0, 9)
    with pytest.raises(TooManyElements):
        decode_bounded(cls, data, 0, 8)
    cls = request_class(ApiKey.DESCRIBE_PRODUCERS, 0)
    data = encode(build(cls, {"topics": [{"name": "x", "partition_indexes": range(9)}]}))
    decode_bounded(cls, data, 0, 10)
    with pytest.raises(TooManyElements):
        decode_bounded(cls, data, 0, 9)


def test_each_request_has_the_whole_allowance() -> None:
    data = encode(nested(5, 1))
    for _ in range(3):
        decode_bounded(NESTED, data, 0, 10)
