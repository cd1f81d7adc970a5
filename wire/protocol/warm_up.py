"""Imports and compiles what the first message of an API would otherwise wait for: some 10 to 60 ms for each version."""

import gc
import struct
from collections.abc import Iterable
from typing import Final

from kquorum.wire.protocol.apis import is_supported, supported_versions
from kquorum.wire.protocol.bodies import prepare

_API_AND_VERSION: Final = struct.Struct(">hh")
# (API key, version) of those that need no more importing.
_WARM: Final[set[tuple[int, int]]] = set()


def warm_up(api_keys: Iterable[int]) -> None:
    """The newest version of each API, as that is what peers of our own agree on.

    A node calls it before it opens its listener: a loop that stands still while a Vote is imported is late to answer.
    """
    for api_key in api_keys:
        _warm(api_key, supported_versions(api_key)[1])


def cold_version(request: bytes) -> tuple[int, int] | None:
    """The API key and version of a request, headers and all, that `warm_version` is to be called for first; None where
    they are warm, or not known at all."""
    if len(request) < _API_AND_VERSION.size:
        return None
    asked: tuple[int, int] = _API_AND_VERSION.unpack_from(request)
    return None if asked in _WARM or not is_supported(*asked) else asked


def warm_version(api_key: int, version: int) -> None:
    """An older version, once a client has asked in it. In any thread but that of a loop."""
    if (api_key, version) in _WARM:
        return  # several clients asked at once
    _warm(api_key, version)
    # What was imported stays: the garbage collector need not go through it while requests wait. The young garbage of
    # all others is collected before, or it would stay, too.
    gc.collect(1)
    gc.freeze()


def _warm(api_key: int, version: int) -> None:
    prepare(api_key, version)
    _WARM.add((api_key, version))
