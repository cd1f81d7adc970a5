"""The names of topics, read from the bytes of a log without taking its records apart."""

import struct
from uuid import UUID

from kquorum.wire.errors import DecodeError
from kquorum.wire.primitives import read_uvarint
from kquorum.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, read_batch_header, records_data
from kquorum.wire.uuids import uuid_to_text

# Frame version, api key 2 and version 0 of a TopicRecord, all of one byte; before them a record has no key (-1, as
# zigzag 1) and its value's length.
_FRAME = b"\x01\x02\x00"
_NO_KEY = 1
_UUID_BYTES = 16
# Of a batch's header: its length, and the attributes, whose low byte holds the codec.
_LENGTH = struct.Struct(">8xi9xH")
_CODEC_MASK = 0x07


def names_in_batches(view: memoryview, end: int) -> dict[str, str] | None:
    """Those of all batches before the byte `end`, which only their headers are read of, unless they are compressed.

    None if no batch begins at `end`, as far as the headers' lengths tell, or one cannot be decompressed.
    """
    names: dict[str, str] = {}
    position = plain_from = 0
    while position < end:
        if position + HEADER_BYTES > end:
            return None
        length, attributes = _LENGTH.unpack_from(view, position)
        if length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            return None
        if attributes & _CODEC_MASK:
            names |= names_in_bytes(bytes(view[plain_from:position]))
            try:
                names |= names_in_batch(view, position)
            except DecodeError:
                return None
            plain_from = position + LOG_OVERHEAD_BYTES + length
        position += LOG_OVERHEAD_BYTES + length
    return names | names_in_bytes(bytes(view[plain_from:end])) if position == end else None


def names_in_batch(view: memoryview, position: int = 0) -> dict[str, str]:
    """Those of the batch at `position`. Raises DecodeError if it cannot be decompressed."""
    return names_in_bytes(records_data(view, position, read_batch_header(view, position)))


def names_in_bytes(data: bytes) -> dict[str, str]:
    """Names by the text of the topic's id, of all TopicRecords in these bytes, which are not compressed.

    What only looks like one is left out: name, id and tags must fill the value's length exactly.
    """
    names: dict[str, str] = {}
    place = data.find(_FRAME)
    while place >= 0:
        found = _topic_at(data, place)
        if found is not None:
            names[found[0]] = found[1]
        place = data.find(_FRAME, place + 1)
    return names


def _topic_at(data: bytes, place: int) -> tuple[str, str] | None:
    try:
        length, start = read_uvarint(data, place + len(_FRAME))
        end = start + length - 1
        # Tags that this program does not know may follow the id; such a record is not told from chance.
        if length <= 1 or data[end + _UUID_BYTES : end + _UUID_BYTES + 1] != b"\x00":
            return None
        if not _has_value_of(data, place, end + _UUID_BYTES + 1 - place):
            return None
        return uuid_to_text(UUID(bytes=data[end : end + _UUID_BYTES])), data[start:end].decode()
    except (DecodeError, UnicodeDecodeError):
        return None


def _has_value_of(data: bytes, place: int, size: int) -> bool:
    """Whether a record without a key and with a value of this size begins its value at `place`."""
    zigzag = size << 1
    coded = bytes([zigzag]) if zigzag < 0x80 else bytes([zigzag & 0x7F | 0x80, zigzag >> 7])
    return data[max(place - len(coded) - 1, 0) : place] == bytes([_NO_KEY]) + coded
