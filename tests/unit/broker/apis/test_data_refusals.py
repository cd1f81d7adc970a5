"""Every version of every refused API gets an answer that can be encoded and that no client retries."""

import pytest

from kquorum.broker.apis.api import Refused
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types, supported_versions
from tests.support.api_calls import as_read, read_answer
from tests.support.kio.classes import request_class
from tests.support.kio.plans import plan_of
from tests.support.many_entries import longest_answer, requests_of_many_entries
from tests.support.wire_values import fullest

# What clients give up on, each tried with a real client; authorization is not asked for again.
FINAL = {
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
    ErrorCode.group_id_not_found,
    ErrorCode.invalid_request,
    ErrorCode.transactional_id_not_found,
    ErrorCode.unsupported_version,
}
REFUSALS = {api_key: api.refuse for api_key, api in BROKER_APIS.items() if isinstance(api, Refused)}
VERSIONS = [
    (api_key, version)
    for api_key in REFUSALS
    for version in range(supported_versions(api_key)[0], supported_versions(api_key)[1] + 1)
]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_version_is_refused_for_good(api_key: ApiKey, version: int) -> None:
    request = as_read(api_key, version, fullest(plan_of(request_class(api_key, version))))
    refused = REFUSALS[api_key](request, version)
    assert refused is not None
    answer = read_answer(api_key, version, refused)
    codes = set(error_codes(answer)) - {ErrorCode.none}
    assert codes
    assert codes <= FINAL


def error_codes(entity: object) -> list[ErrorCode]:
    found = []
    for name in getattr(entity, "__dataclass_fields__", ()):
        value = getattr(entity, name)
        if isinstance(value, ErrorCode):
            found.append(value)
        for item in value if isinstance(value, tuple) else (value,):
            found += error_codes(item)
    return found


@pytest.mark.parametrize("api_key", REFUSALS)
def test_a_refusal_is_not_many_times_as_long_as_what_it_refuses(api_key: ApiKey) -> None:
    """190,000 empty group ids, a byte each, had an answer of 16 MB: the reason stood beside each."""
    version = supported_versions(api_key)[1]
    for name, request in requests_of_many_entries(message_types(api_key)[0], 2_000):
        answer = REFUSALS[api_key](request, version)
        if answer is not None:
            assert len(encode(answer, version)) < longest_answer(2_000), name
