"""The values of a large batch's records, found by columns.

A leader's large batches are nearly always alike: no keys, no headers, one timestamp, offsets one after the other. Where
each record begins must be found one after the other; that all of it is as it must be is then seen at once.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kquorum.wire.primitives import Buffer
from kquorum.wire.record_batch import read_batch_header, records_data
from kquorum.wire.record_parsing import MAX_BATCH_HEADERS, check_room, left_over, parse_some

# Fewer records are quicker read one by one.
WORTH_COLUMNS: Final = 64
# Numbers are zigzag varints, doubled thus: of so many bytes below these.
_ONE_BYTE, _TWO_BYTES, _THREE_BYTES = 1 << 7, 1 << 14, 1 << 21


def plain_values(buffer: Buffer, position: int = 0) -> list[bytes] | None:
    """The values of the batch at `position`, whose records have the offsets from its base offset on.

    None if they are few, or anything is unusual or wrong with one: `read_records` tells then. Raises DecodeError for a
    batch that cannot be decompressed.
    """
    header = read_batch_header(buffer, position)
    if header.record_count < WORTH_COLUMNS:
        return None
    data = records_data(buffer, position, header)
    starts = _starts(data, 0, header.record_count)
    return None if starts is None or starts[-1] != len(data) else _values(data, starts, 0)


def located_in_slices(buffer: Buffer, at_once: int) -> Iterator[list[tuple[int, bytes | None]]]:
    """The offsets and values of a long batch's records, so many at a time; what has been decompressed comes first,
    without records. Raises DecodeError, also behind records that were answered."""
    header = read_batch_header(buffer)
    data, count = records_data(buffer, 0, header), header.record_count
    check_room(len(data), count)
    times = (header.base_timestamp_ms, None)
    position, headers_left = 0, MAX_BATCH_HEADERS
    yield []
    for first in range(0, count, at_once):
        wanted = min(at_once, count - first)
        starts = _starts(data, position, wanted)
        values = None if starts is None else _values(data, starts, first)
        if starts is not None and values is not None:
            position = starts[-1]
            yield list(enumerate(values, header.base_offset + first))
            continue
        records, position, headers_left = parse_some(
            data, position, wanted, header.base_offset, times, headers_left
        )
        yield [(record.offset, record.value) for record in records]
    if position != len(data):
        raise left_over(data, count, position)


def _starts(data: bytes, position: int, count: int) -> list[int] | None:
    """Where each record begins, and where the last ends, if that is in the data."""
    starts = [position]
    try:
        for _ in range(count):
            length = data[position]
            if length < _ONE_BYTE:
                position += 1 + (length >> 1)
            else:
                high = data[position + 1]
                if high >= _ONE_BYTE:
                    return None
                position += 2 + ((length + (high << 7) - _ONE_BYTE) >> 1)
            starts.append(position)
    except IndexError:
        return None
    return starts if position <= len(data) else None


def _values(data: bytes, starts: list[int], first_delta: int) -> list[bytes] | None:
    """Each record is: length, attributes, timestamp delta 0, offset delta, no key, value, no headers."""
    count = len(starts) - 1
    deltas = 2 * np.arange(first_delta, first_delta + count)
    if deltas[-1] >= _THREE_BYTES:
        return None
    begin, stop = starts[0], starts[-1]
    # What is behind the end of the data is zeros; who reads there finds something wrong.
    raw = np.frombuffer(data[begin:stop] + bytes(16), dtype=np.uint8).astype(np.int64)
    bounds = np.array(starts) - begin
    begins, ends = bounds[:-1], bounds[1:]
    at = begins + 2 + (raw[begins] >= _ONE_BYTE)
    is_plain = (raw[begins] & 1 == 0) & (raw[at] == 0)
    for low, bits, high in ((0, 0, _ONE_BYTE), (_ONE_BYTE, 7, _TWO_BYTES), (_TWO_BYTES, 14, _THREE_BYTES)):
        has_byte = deltas >= low
        at = at + has_byte
        is_plain &= ~has_byte | (raw[at] == (deltas >> bits & 127) + 128 * (deltas >= high))
    at = at + 1
    size, upper = raw[at + 1], raw[at + 2]
    has_upper = size >= _ONE_BYTE
    is_plain &= (raw[at] == 1) & (size & 1 == 0) & ~(has_upper & (upper >= _ONE_BYTE))
    size = np.where(has_upper, size + (upper << 7) - _ONE_BYTE, size) >> 1
    firsts = at + 2 + has_upper
    is_plain &= (firsts + size + 1 == ends) & (raw[ends - 1] == 0)
    if not is_plain.all():
        return None
    return [data[first : end - 1] for first, end in zip((firsts + begin).tolist(), starts[1:], strict=True)]
