"""A response whose last field is an array, encoded part by part between other work."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from kquorum.wire.message_codec import encode
from kquorum.wire.message_schema import Response, Struct
from kquorum.wire.primitives import write_uvarint
from kquorum.wire.protocol.headers import EncodedBody

_COUNT: Final = struct.Struct(">i")
_NO_TAGGED_FIELDS: Final = b"\x00"


class GrowingBody:
    """`response_of` makes the response with these entries in the array; all else of it stays the same, and no tagged
    field of it is set. `note_made` gets the size of each part."""

    def __init__(
        self,
        response_of: Callable[[tuple[Any, ...]], Response],
        version: int,
        note_made: Callable[[int], None],
    ) -> None:
        self._response_of = response_of
        self._version = version
        self._note_made = note_made
        empty = response_of(())
        self._end = _NO_TAGGED_FIELDS if type(empty).is_flexible(version) else b""
        encoded = encode(empty, version)
        self._start = encoded[: len(encoded) - len(self._end) - len(self._count(0))]
        self._parts: list[bytes] = []
        self._entries = 0

    def _count(self, entries: int) -> bytes:
        if not self._end:
            return _COUNT.pack(entries)
        out = bytearray()
        write_uvarint(out, entries + 1)
        return bytes(out)

    def add(self, entries: Sequence[Struct]) -> None:
        encoded = encode(self._response_of(tuple(entries)), self._version)
        before = len(self._start) + len(self._count(len(entries)))
        self._parts.append(encoded[before : len(encoded) - len(self._end)])
        self._entries += len(entries)
        self._note_made(len(self._parts[-1]))

    def whole(self) -> EncodedBody:
        return EncodedBody(b"".join((self._start, self._count(self._entries), *self._parts, self._end)))
