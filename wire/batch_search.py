"""Finds the next sound batch behind bytes that are none, by the fields that every batch of KRaft has alike."""

import re

from wire.errors import DecodeError
from wire.record_batch import BatchHeader, check_batch

# The magic, 26 bytes on the producer id, producer epoch and base sequence: -1 in every KRaft batch.
_MAGIC_POSITION = 16
_ALIKE = re.compile(rb"\x02(?=.{26}\xff{14})", re.DOTALL)
_ALIKE_BYTES = 1 + 26 + 14
_CHUNK_BYTES = 1 << 20


def next_batch_position(view: memoryview, position: int, base_offsets: range | None = None) -> int | None:
    """Where the first sound batch at or behind `position` begins; None when there is none.

    Its checksum is right, and its base offset one of `base_offsets`, if these are given.
    """
    start = position + _MAGIC_POSITION
    while start < len(view):
        # Each chunk begins at a place where the one before cannot have found anything.
        for found in _ALIKE.finditer(bytes(view[start : start + _CHUNK_BYTES + _ALIKE_BYTES - 1])):
            candidate = start + found.start() - _MAGIC_POSITION
            header = sound_header(view, candidate)
            if header is not None and (base_offsets is None or header.base_offset in base_offsets):
                return candidate
        start += _CHUNK_BYTES
    return None


def sound_header(view: memoryview, position: int) -> BatchHeader | None:
    """The header of the batch at `position`, if it is whole and its checksum right."""
    try:
        return check_batch(view, position)
    except DecodeError:
        return None
