"""Finds the next sound batch behind bytes that are no batch, by the fields that all batches of a log have alike."""

import re

from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import BatchHeader, check_batch

# The magic, 26 bytes on the producer id, producer epoch and base sequence: -1 in every KRaft batch.
_MAGIC_POSITION = 16
_WITHOUT_PRODUCER = re.compile(rb"\x02(?=.{26}\xff{14})", re.DOTALL)
# In the log of a partition a producer id may stand there. What is alike then: attributes and the distance
# to the last offset are not negative, and the producer fields are all -1 or begin with an id.
_WITH_PRODUCER = re.compile(
    rb"\x02(?=.{4}\x00[\x00-\x7f]{2}.{3}.{16}(?:\xff{14}|[\x00-\x7f].{13}))", re.DOTALL
)
_ALIKE_BYTES = 1 + 26 + 14
_CHUNK_BYTES = 1 << 20


def next_batch_position(
    view: memoryview, position: int, base_offsets: range | None = None, *, has_producers: bool = False
) -> int | None:
    """Where the first sound batch at or behind `position` begins; None when there is none.

    Its checksum is right, and its base offset one of `base_offsets`, if these are given. Batches with a producer id are
    found with `has_producers` only.
    """
    alike = _WITH_PRODUCER if has_producers else _WITHOUT_PRODUCER
    start = position + _MAGIC_POSITION
    while start < len(view):
        # Each chunk begins at a place where the one before cannot have found anything.
        for found in alike.finditer(bytes(view[start : start + _CHUNK_BYTES + _ALIKE_BYTES - 1])):
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
