"""In which versions clients may send what the active controller answers."""

from kquorum.broker.adapters.forwarding import ForwardedRanges
from kquorum.broker.apis.registry import FORWARDED_APIS
from kquorum.wire.protocol.api_keys import ApiKey


def test_the_controllers_versions_of_what_is_forwarded() -> None:
    known: dict[int, tuple[int, int]] | None = None
    ranges = ForwardedRanges(lambda: known)
    assert ranges() is None
    known = {ApiKey.UPDATE_FEATURES: (0, 1), ApiKey.FETCH: (4, 17)}
    first = ranges()
    assert first is not None
    assert first[ApiKey.UPDATE_FEATURES] == (0, 1)
    assert ApiKey.FETCH not in first
    assert first.keys() == FORWARDED_APIS
    # An API that the controller lacks is in no version.
    assert first[ApiKey.CREATE_TOPICS] == (0, -1)
    known = dict(known)
    assert ranges() is first
    known = None
    assert ranges() is first
    known = {ApiKey.UPDATE_FEATURES: (0, 2)}
    assert ranges() == dict.fromkeys(FORWARDED_APIS, (0, -1)) | {ApiKey.UPDATE_FEATURES: (0, 2)}
