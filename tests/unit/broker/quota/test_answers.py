"""The throttle time of every answer that has one, as a message and encoded."""

import pytest

from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.quota.answers import throttle_time_of, with_throttle_time
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.message_schema import plan_of
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import NO_ANSWER, EncodedBody

VERSIONS = [
    (int(key), version)
    for key, api in BROKER_APIS.items()
    for version in range(api.versions[0], api.versions[1] + 1)
]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_answer_of_a_broker_tells_its_throttle_time(api_key: int, version: int) -> None:
    response_type = message_types(api_key)[1]
    names = [each.name for each in plan_of(response_type, version).fields]
    message = with_throttle_time(response_type(), api_key, version, 1_234)
    encoded = with_throttle_time(EncodedBody(encode(response_type(), version)), api_key, version, 1_234)
    if "throttle_time_ms" not in names:
        assert encoded.data == encode(response_type(), version)
        return
    read = decode(response_type, version, encode(message, version))[0]
    assert read.throttle_time_ms == 1_234  # type: ignore[attr-defined]
    if names[0] == "throttle_time_ms":
        assert encoded.data == encode(message, version)
        assert throttle_time_of(encoded, api_key, version) == 1_234


def test_the_longer_time_stays() -> None:
    response_type = message_types(19)[1]
    own = response_type(throttle_time_ms=900)  # type: ignore[call-arg]
    assert with_throttle_time(own, 19, 7, 100) is own
    body = EncodedBody(encode(own, 7))
    assert with_throttle_time(body, 19, 7, 100) is body
    longer = with_throttle_time(body, 19, 7, 1_000)
    assert throttle_time_of(longer, 19, 7) == 1_000
    assert own.throttle_time_ms == 900, "a message that others may hold is not changed"  # type: ignore[attr-defined]


def test_the_end_of_a_connection_and_no_answer_have_none() -> None:
    assert with_throttle_time(None, 0, 9, 5) is None
    assert with_throttle_time(NO_ANSWER, 0, 9, 5) is NO_ANSWER
    assert throttle_time_of(None, 0, 9) == 0
