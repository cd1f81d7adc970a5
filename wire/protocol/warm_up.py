"""Imports and compiles what the first message of an API would otherwise wait for, some 10 to 30 ms each."""

from collections.abc import Iterable

from wire.codec import bounded_codec_of, codec_of
from wire.protocol.apis import api_version, supported_versions


def warm_up(api_keys: Iterable[int]) -> None:
    """The newest version of each API, as that is what peers of our own agree on.

    A node calls it before it opens its listener: a loop that stands still while a Vote is imported is late to answer.
    """
    for api_key in api_keys:
        api = api_version(api_key, supported_versions(api_key)[1])
        codec_of(api.request_class)
        bounded_codec_of(api.request_class)
        codec_of(api.response_class)
