"""Requests are decoded only as far as their reader takes their elements, however deep these are nested."""

from typing import Any

import pytest

from kquorum.wire.errors import TooManyElements
from kquorum.wire.primitives import write_uvarint
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.kio.classes import request_class
from tests.support.kio.codec import decode, decode_bounded, encode
from tests.support.kio.entities import build
from tests.support.kio.plans import plan_of
from tests.support.wire_values import fullest, least

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


def tagged(count: int) -> bytes:
    """Unknown tagged fields, empty; as they stand behind a body that ends in none."""
    out = bytearray()
    write_uvarint(out, count)
    for tag in range(1000, 1000 + count):
        write_uvarint(out, tag)
        out.append(0)
    return bytes(out)


@pytest.mark.parametrize("api_key", [ApiKey.API_VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH])
def test_unknown_tagged_fields_count(api_key: ApiKey) -> None:
    cls = request_class(api_key, 4)
    bare = encode(least(plan_of(cls)))[:-1]
    assert decode_bounded(cls, bare + tagged(300), 0, 300) == (least(plan_of(cls)), len(bare + tagged(300)))
    with pytest.raises(TooManyElements, match="more than 299 elements of arrays and unknown tagged fields"):
        decode_bounded(cls, bare + tagged(300), 0, 299)
    # The count alone ends it, whatever is behind.
    with pytest.raises(TooManyElements):
        decode_bounded(cls, bare + b"\xff\xff\xff\xff\x0f", 0, 200_000)


def test_unknown_tagged_fields_of_elements_count_with_them() -> None:
    whole = encode(nested(1, 1))
    at_end_of_partition = whole[:-3] + tagged(9) + whole[-2:]
    assert decode_bounded(NESTED, at_end_of_partition, 0, 11)[0] == nested(1, 1)
    with pytest.raises(TooManyElements):
        decode_bounded(NESTED, at_end_of_partition, 0, 10)


def test_tagged_fields_that_are_known_are_free() -> None:
    cls = request_class(ApiKey.FETCH, 17)
    data = encode(fullest(plan_of(cls)))
    elements = 2 + 2 * 2 + 2 + 2 * 2  # topics, their partitions, and the same of those to be forgotten
    assert decode_bounded(cls, data, 0, elements)[0] == fullest(plan_of(cls))
    with pytest.raises(TooManyElements):
        decode_bounded(cls, data, 0, elements - 1)


def test_each_request_has_the_whole_allowance() -> None:
    data = encode(nested(5, 1))
    for _ in range(3):
        decode_bounded(NESTED, data, 0, 10)
