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
    record = _Draft()
    # Nearly every record of a metadata log has this shape: one-byte lengths, no timestamp delta, no key, no
    # headers. Then the length covers the value and six bytes more, and zigzag doubles both numbers.
    length, offset_delta, size = data[start], data[start + 3], data[start + 5]
    end = start + 1 + (length >> 1)
    if (
        length == size + 12
        and length < 128
        and not (length | offset_delta) & 1
        and offset_delta < 128
        and data[start + 2] == 0
        and data[start + 4] == 1
        and data[end - 1] == 0
    ):
        record.offset = base_offset + (offset_delta >> 1)
        record.timestamp_ms = base_timestamp_ms
        record.key, record.value, record.headers = None, data[start + 6 : end - 1], ()
        return record, end
    return _parse_any_record(record, data, start, base_offset, base_timestamp_ms)


def _parse_any_record(
    record: Any, data: bytes, start: int, base_offset: int, base_timestamp_ms: int
) -> tuple[Any, int]:
    length, position = _varint(data, start)
    end = position + length
    if length < _MIN_RECORD_BYTES - 1 or end > len(data):
        raise DecodeError(f"a record of {length} bytes, {len(data) - position} are left", start)
    timestamp_delta, position = read_varlong(data, position + 1)
    offset_delta, position = _varint(data, position)
    record.offset = base_offset + offset_delta
    record.timestamp_ms = base_timestamp_ms + timestamp_delta
    record.key, position = _parse_bytes(data, position, end)
    record.value, position = _parse_bytes(data, position, end)
    record.headers, position = _parse_headers(data, position, end)
    if position != end:
        raise DecodeError(f"a record's content ends {abs(end - position)} bytes off its length", start)
    return record, position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    return ((byte >> 1) ^ -(byte & 1), position + 1) if byte < 128 else read_varint(data, position)


def _parse_bytes(data: bytes, position: int, limit: int) -> tuple[bytes | None, int]:
    size, position = _varint(data, position)
    if size < 0:
        if size != -1:
            raise DecodeError(f"length {size} is negative", position)
        return None, position
    end = position + size
    if end > limit:
        raise DecodeError(f"{size} bytes in a record which has {limit - position} left", position)
    return data[position:end], end


def _parse_headers(data: bytes, position: int, limit: int) -> tuple[tuple[Header, ...], int]:
    count, position = _varint(data, position)
    if count == 0:
        return (), position
    if not 0 <= count <= limit - position:
        raise DecodeError(f"{count} record headers in {limit - position} bytes", position)
    headers = []
    for _ in range(count):
        size, position = _varint(data, position)
        if not 0 <= size <= limit - position:
            raise DecodeError(f"a header's key of {size} bytes in {limit - position} bytes", position)
        key, position = take(data, position, size)
        value, position = _parse_bytes(data, position, limit)
        try:
            headers.append((key.decode(), value))
        except UnicodeDecodeError as error:
            raise DecodeError(f"a header's key is not UTF-8: {error.reason}", position) from None
    return tuple(headers), position
