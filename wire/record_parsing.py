"""The records inside a batch, once they are decompressed.

Each is: length, attributes (int8), timestamp delta, offset delta, key, value, headers; the lengths and deltas
are zigzag varints, and a length of -1 is null.
"""

from dataclasses import dataclass
from typing import Any, Final

from kquorum.wire.drafts import draft_of
from kquorum.wire.errors import BufferUnderflow, DecodeError
from kquorum.wire.primitives import Buffer, read_varint, read_varlong, take

Header = tuple[str, bytes | None]
_MIN_RECORD_BYTES: Final = 7
_SHORT_OVERHEAD_BYTES: Final = 7
# Of all records of a batch together. KRaft's have none; two bytes of one take a hundred times as many in memory.
MAX_BATCH_HEADERS: Final = 10_000


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
    data: bytes,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    fixed_timestamp_ms: int | None,
    *,
    most_headers: int = MAX_BATCH_HEADERS,
) -> tuple[Record, ...]:
    """Read exactly `count` records which fill `data`; DecodeError otherwise."""
    check_room(len(data), count)
    times = (base_timestamp_ms, fixed_timestamp_ms)
    records, position, _ = parse_some(data, 0, count, base_offset, times, most_headers)
    if position != len(data):
        raise left_over(data, count, position)
    return tuple(records)


def parse_some(
    data: bytes, position: int, count: int, base_offset: int, times: tuple[int, int | None], headers_left: int
) -> tuple[list[Record], int, int]:
    """The next `count` records, where they end, and how many headers those behind them may have.

    `times` are the base and the fixed timestamp of the batch. Raises DecodeError.
    """
    base_timestamp_ms, fixed_timestamp_ms = times
    timestamp_ms = base_timestamp_ms if fixed_timestamp_ms is None else fixed_timestamp_ms
    records = []
    try:
        for _ in range(count):
            record = _Draft()
            plain = _parse_plain(data, position)
            if plain is None:
                position = _parse_any_record(
                    record, data, position, base_offset, base_timestamp_ms, headers_left
                )
                headers_left -= len(record.headers)
                if fixed_timestamp_ms is not None:
                    record.timestamp_ms = fixed_timestamp_ms
            else:
                offset_delta, start, position = plain
                record.offset = base_offset + offset_delta
                record.timestamp_ms = timestamp_ms
                record.key = None
                record.value = data[start : position - 1]
                record.headers = ()
            record.__class__ = Record
            records.append(record)
    except IndexError:
        raise BufferUnderflow("the records are cut short", len(data)) from None
    return records, position, headers_left


def parse_values(data: bytes, count: int) -> list[bytes | None]:
    """The values alone of the records that `parse_records` would read; it raises what that would."""
    check_room(len(data), count)
    values: list[bytes | None] = []
    position, headers_left = 0, MAX_BATCH_HEADERS
    try:
        for _ in range(count):
            plain = _parse_plain(data, position)
            if plain is None:
                record = _Draft()
                position = _parse_any_record(record, data, position, 0, 0, headers_left)
                headers_left -= len(record.headers)
                values.append(record.value)
            else:
                _, start, position = plain
                values.append(data[start : position - 1])
    except IndexError:
        raise BufferUnderflow("the records are cut short", len(data)) from None
    if position != len(data):
        raise left_over(data, count, position)
    return values


def check_room(size: int, count: int) -> None:
    """Raises DecodeError unless `count` records can be in `size` bytes."""
    if count < 0 or count * _MIN_RECORD_BYTES > size:
        raise DecodeError(f"{count} records in {size} bytes")


def left_over(data: bytes, count: int, position: int) -> DecodeError:
    return DecodeError(f"{len(data) - position} bytes are left after {count} records", position)


def parse_short(buffer: Buffer, start: int, end: int, offset: int, timestamp_ms: int) -> Record | None:
    """The one record between `start` and `end`, if all its numbers take a byte each; None for any other.

    Most batches of an idle cluster's log hold one no-op: this reads it without a copy of the batch.
    """
    size = end - start - _SHORT_OVERHEAD_BYTES
    if (
        not 0 <= size < 58
        or buffer[start] != 2 * size + 12
        or buffer[start + 2]
        or buffer[start + 3]
        or buffer[start + 4] != 1
        or buffer[start + 5] != 2 * size
        or buffer[end - 1]
    ):
        return None
    record = _Draft()
    record.offset = offset
    record.timestamp_ms = timestamp_ms
    record.key = None
    record.value = bytes(buffer[start + 6 : end - 1])
    record.headers = ()
    record.__class__ = Record
    short: Record = record
    return short


def _parse_plain(data: bytes, position: int) -> tuple[int, int, int] | None:
    """Offset delta, where the value begins, and where the record ends, a byte behind its value.

    Nearly every record of a metadata log has this shape: no timestamp delta, no key, no headers, at most 8 KiB. None
    for any other record, or one that is wrong in any way: the numbers below are still in zigzag, doubled.
    """
    length = data[position]
    if length < 128:
        # A record of one-byte numbers: its length covers the value and six bytes more, which zigzag doubles.
        end = position + 1 + (length >> 1)
        delta = data[position + 3]
        if (
            length == data[position + 5] + 12
            and delta < 128
            and not (length | delta) & 1
            and data[position + 4] == 1
            and not data[position + 2]
            and not data[end - 1]
        ):
            return delta >> 1, position + 6, end
    else:
        high = data[position + 1]
        if high > 127:
            return None
        length += (high << 7) - 128
        position += 1
    end = position + 1 + (length >> 1)
    delta = data[position + 3]
    if length & 1 or data[position + 2] or end > len(data):
        return None
    position += 4
    if delta > 127:
        high = data[position]
        position += 1
        delta += (high << 7) - 128
        if high > 127:
            high = data[position]
            position += 1
            delta += (high << 14) - (128 << 7)
            if high > 127:
                return None
    size = data[position + 1]
    if delta & 1 or data[position] != 1:
        return None
    position += 2
    if size > 127:
        high = data[position]
        if high > 127:
            return None
        size += (high << 7) - 128
        position += 1
    if size & 1 or position + (size >> 1) + 1 != end or data[end - 1]:
        return None
    return delta >> 1, position, end


def _parse_any_record(
    record: Any, data: bytes, start: int, base_offset: int, base_timestamp_ms: int, headers_left: int
) -> int:
    """Fill the draft `record`, which may have `headers_left` headers at most; answers where it ends."""
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
    record.headers, position = _parse_headers(data, position, end, headers_left)
    if position != end:
        raise DecodeError(f"a record's content ends {abs(end - position)} bytes off its length", start)
    return position


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


def _parse_headers(data: bytes, position: int, limit: int, most: int) -> tuple[tuple[Header, ...], int]:
    count, position = _varint(data, position)
    if count == 0:
        return (), position
    if not 0 <= count <= limit - position:
        raise DecodeError(f"{count} record headers in {limit - position} bytes", position)
    if count > most:
        raise DecodeError(f"the records of a batch have more than {MAX_BATCH_HEADERS} headers", position)
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
