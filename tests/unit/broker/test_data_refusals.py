"""Every version of every refused API gets an answer that can be encoded and that no client retries."""

import pytest
from kio.schema.errors import ErrorCode

from broker.handlers.data_refusals import REFUSALS
from tests.support.wire_values import fullest
from wire.codec import decode, encode
from wire.codegen.kio_plans import plan_of
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import request_class, response_class, supported_versions
from wire.protocol.entities import build

# What clients give up on, each tried with a real client; authorization is not asked for again.
FINAL = {
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
}
VERSIONS = [
    (api_key, version)
    for api_key in REFUSALS
    for version in range(supported_versions(api_key)[0], supported_versions(api_key)[1] + 1)
]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_version_is_refused_for_good(api_key: ApiKey, version: int) -> None:
    request = fullest(plan_of(request_class(api_key, version)))
    values = REFUSALS[api_key](request, version)
    assert values is not None
    cls = response_class(api_key, version)
    answer, _ = decode(cls, encode(build(cls, values)))
    codes = set(error_codes(answer)) - {ErrorCode.none}
    assert codes
    assert codes <= FINAL


@pytest.mark.parametrize("version", range(7))
def test_each_kind_of_coordinator_is_refused_with_its_own_code(version: int) -> None:
    """librdkafka's transactional producer asks again and again when the refusal is that of a group."""
    cls = request_class(ApiKey.FIND_COORDINATOR, version)
    kinds = {0: ErrorCode.group_authorization_failed}
    if version > 0:
        kinds[1] = ErrorCode.transactional_id_authorization_failed
    for key_type, code in kinds.items():
        request = build(cls, {"key": "mine", "key_type": key_type, "coordinator_keys": ("mine",)})
        values = REFUSALS[ApiKey.FIND_COORDINATOR](request, version)
        assert values is not None
        answer = build(response_class(ApiKey.FIND_COORDINATOR, version), values)
        assert set(error_codes(answer)) - {ErrorCode.none} == {code}


def error_codes(entity: object) -> list[ErrorCode]:
    found = []
    for name in getattr(entity, "__dataclass_fields__", ()):
        value = getattr(entity, name)
        if isinstance(value, ErrorCode):
            found.append(value)
        for item in value if isinstance(value, tuple) else (value,):
            found += error_codes(item)
    return found
