"""Answers that are as long as the cluster has ACLs, users, quotas or names: each slice looks at a few hundred."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from kquorum.metadata.controller_apis import QUESTIONS, SlicedQuestion
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.slices import AT_ONCE, ordered
from kquorum.metadata.image.configs import GROUP, ConfigResource, ConfigsImage
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.quotas import ClientQuotasImage
from kquorum.metadata.image.security import AccessControlEntry, ScramCredential, ScramUser
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import read_answer, request_of
from tests.support.calls import calls_of

MANY = 5_000
ACL_FILTER = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def acl(number: int, name: str) -> AccessControlEntry:
    return AccessControlEntry(
        id=UUID(int=number + 1),
        resource_type=2,
        resource_name=name,
        pattern_type=3,
        principal=f"User:{number}",
        host="*",
        operation=3,
        permission_type=3,
    )


def crowded() -> MetadataImage:
    """Many ACLs, half of them of one topic, and many users, quotas, and groups with configs."""
    acls = [acl(number, "one" if number % 2 else f"t{number}") for number in range(MANY)]
    credential = ScramCredential(salt=b"s" * 16, stored_key=b"k" * 32, server_key=b"k" * 32, iterations=4_096)
    empty = MetadataImage.empty()
    return replace(
        empty,
        security=replace(
            empty.security,
            acls=Map({each.id: each for each in acls}),
            scram=Map({ScramUser(1 + number % 2, f"u{number}"): credential for number in range(MANY)}),
        ),
        client_quotas=ClientQuotasImage(
            Map({(("user", f"u{number}"),): Map({"request_percentage": 1.0}) for number in range(MANY)})
        ),
        configs=ConfigsImage(
            Map({ConfigResource(GROUP, f"g{number}"): Map({"a": "b"}) for number in range(MANY)})
        ),
    )


CROWDED = crowded()
ASKED: tuple[tuple[ApiKey, dict[str, Any], str, int], ...] = (
    # The 2,500 entries of one topic stand in pieces.
    (ApiKey.DESCRIBE_ACLS, ACL_FILTER, "resources", MANY // 2 + 13),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": None}, "results", MANY),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}, "entries", MANY),
    (ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": []}, "config_resources", MANY),
)


def question_of(api_key: ApiKey, version: int, values: dict[str, Any]) -> DescribeRequest:
    return DescribeRequest(
        body=request_of(api_key, version, values),
        version=version,
        image=CROWDED,
        principal="User:admin",
        node_id=1,
    )


@pytest.mark.parametrize(("api_key", "values", "name", "count"), ASKED, ids=[each[0].name for each in ASKED])
def test_each_slice_looks_at_some_hundreds_and_the_answer_has_all(
    api_key: ApiKey, values: dict[str, Any], name: str, count: int
) -> None:
    """60,000 ACLs in one piece held a leader's loop for 650 ms, and three clients deposed it."""
    declared = QUESTIONS[api_key]
    assert isinstance(declared, SlicedQuestion)
    lowest, highest = supported_versions(api_key)
    # Version 0 of ListConfigResources knows of no groups.
    for version in range(1 if api_key is ApiKey.LIST_CONFIG_RESOURCES else lowest, highest + 1):
        answers, calls = list[Any](), list[int]()
        slices = declared.slices(question_of(api_key, version, values), ())
        add = partial(_add_next, slices, answers)
        while not answers or answers[-1] is None:
            calls.append(calls_of(add))
        assert len(answers) > MANY // AT_ONCE
        # Of Python functions: some tens for an item at most.
        assert max(calls) < 50 * AT_ONCE
        assert len(getattr(read_answer(api_key, version, answers[-1]), name)) == count


def _add_next(slices: Iterator[Any], answers: list[Any]) -> None:
    answers.append(next(slices))


@given(st.lists(st.integers(0, 50), max_size=20).map(lambda numbers: numbers * 40))
def test_in_slices_the_order_is_that_of_sorted(numbers: list[int]) -> None:
    steps = list(ordered(numbers, key=lambda number: -number, is_wanted=lambda number: number % 3 > 0))
    wanted = [number for number in numbers if number % 3]
    assert [each for each in steps if each is not None] == sorted(wanted, reverse=True)
    assert steps.count(None) == len(numbers) // AT_ONCE + len(wanted) // AT_ONCE
