"""The records inside a batch, once they are decompressed.

Each is: length, attributes (int8), timestamp delta, offset delta, key, value, headers; the lengths and deltas
are zigzag varints, and a length of -1 is null.
"""

from dataclasses import dataclass
from typing import Any, Final

from wire.drafts import draft_of
from wire.errors import BufferUnderflow, DecodeError
from wire.primitives import read_varint, read_varlong, take

Header = tuple[str, bytes | None]
_MIN_RECORD_BYTES: Final = 7


@dataclass(frozen=True, slots=True)
class Record:
    """A record with its absolute offset and timestamp (ms)."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


_Draft: Final = draft_of(Record)


def parse_records(
    data: bytes, *, count: int, base_offset: int, base_timestamp_ms: int, fixed_timestamp_ms: int | None
) -> tuple[Record, ...]:
    """Read exactly `count` records which fill `data`; DecodeError otherwise."""
    if count < 0 or count * _MIN_RECORD_BYTES > len(data):
        raise DecodeError(f"{count} records in {len(data)} bytes")
    records = []
    position = 0
    try:
        for _ in range(count):
            record, position = _parse_record(data, position, base_offset, base_timestamp_ms)
            if fixed_timestamp_ms is not None:
                record.timestamp_ms = fixed_timestamp_ms
            record.__class__ = Record
            records.append(record)
    except IndexError:
        raise BufferUnderflow("the records are cut short", len(data)) from None
    if position != len(data):
        raise DecodeError(f"{len(data) - position} bytes are left after {count} records", position)
    return tuple(records)


def _parse_record(data: bytes, start: int, base_offset: int, base_timestamp_ms: int) -> tuple[Any, int]:
    # One-byte varints, which nearly all of these are, are read in place: v < 128 stands for (v >> 1) ^ -(v &
    # 1).
    length, position = data[start], start + 1
    length, position = (length >> 1 ^ -(length & 1), position) if length < 128 else read_varint(data, start)
    end = position + length
    if length < _MIN_RECORD_BYTES - 1 or end > len(data):
        raise DecodeError(f"a record of {length} bytes, {len(data) - position} are left", start)
    position += 1
    delta = data[position]
    timestamp_delta, position = (
        (delta >> 1 ^ -(delta & 1), position + 1) if delta < 128 else read_varlong(data, position)
    )
    delta = data[position]
    offset_delta, position = (
        (delta >> 1 ^ -(delta & 1), position + 1) if delta < 128 else read_varint(data, position)
    )
    record = _Draft()
    record.offset = base_offset + offset_delta
    record.timestamp_ms = base_timestamp_ms + timestamp_delta
    record.key, position = _parse_bytes(data, position, end)
    record.value, position = _parse_bytes(data, position, end)
    if data[position] == 0:
        record.headers, position = (), position + 1
    else:
        record.headers, position = _parse_headers(data, position, end)
    if position != end:
        raise DecodeError(f"a record's content ends {abs(end - position)} bytes off its length", start)
    return record, position


def _parse_bytes(data: bytes, position: int, limit: int) -> tuple[bytes | None, int]:
    size = data[position]
    size, position = (size >> 1 ^ -(size & 1), position + 1) if size < 128 else read_varint(data, position)
    if size < 0:
        if size != -1:
            raise DecodeError(f"length {size} is negative", position)
        return None, position
    end = position + size
    if end > limit:
        raise DecodeError(f"{size} bytes in a record which has {limit - position} left", position)
    return data[position:end], end


def _parse_headers(data: bytes, position: int, limit: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= limit - position:
        raise DecodeError(f"{count} record headers in {limit - position} bytes", position)
    headers = []
    for _ in range(count):
        size, position = read_varint(data, position)
        if not 0 <= size <= limit - position:
            raise DecodeError(f"a header's key of {size} bytes in {limit - position} bytes", position)
        key, position = take(data, position, size)
        value, position = _parse_bytes(data, position, limit)
        try:
            headers.append((key.decode(), value))
        except UnicodeDecodeError as error:
            raise DecodeError(f"a header's key is not UTF-8: {error.reason}", position) from None
    return tuple(headers), position
