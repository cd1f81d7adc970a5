"""What a controller's answer says of throttling is read from answers that may be nonsense."""

import pytest

from kquorum.broker.quota.answers import throttle_time_of
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody


@pytest.mark.parametrize("length", range(4))
def test_an_answer_too_short_for_a_throttle_time_has_none(length: int) -> None:
    assert throttle_time_of(EncodedBody(bytes(length)), ApiKey.CREATE_TOPICS, 7) == 0
