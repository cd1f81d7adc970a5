"""What a leader has to know of the records of a batch before it takes them, found without a value for each record.

Every record is walked once and its parts must fill it exactly; a batch whose survey breaks no rule is not looked at
again. Of many records only the lengths are followed one by one; their other numbers are read by columns. Layout:
`wire.record_parsing`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kquorum.wire.errors import BufferUnderflow, DecodeError, TooMuchData
from kquorum.wire.primitives import read_varint, read_varlong, write_varint, write_varlong

_LEAST_BODY_BYTES: Final = 6
# Measured: columns take some 100 microseconds whatever there is to read, a record by itself takes one.
_BY_COLUMNS_FROM: Final = 100
# To walk from record to record takes a microsecond for each: of so many a walk takes 20 ms. More are read by columns
# only, and refused where that cannot be.
_MOST_WALKED: Final = 1 << 14
# Of a batch: as many as its readers take (`wire.data_batch`). Records with more than a few are walked.
_MOST_HEADERS: Final = 500_000
_FEW_HEADERS: Final = 16
_MOST_WALKED_HEADERS: Final = 1 << 14
MOST_OUTLIERS: Final = 100
_VARINT_BYTES, _VARLONG_BYTES = 5, 10
_LARGEST_UINT32: Final = 0xFFFF_FFFF

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class RecordSurvey:
    """Of the records of one batch: deltas are those of their timestamps (ms) to the batch's base timestamp."""

    least_timestamp_delta: int
    greatest_timestamp_delta: int
    index_of_greatest: int
    """Of the first record with the greatest timestamp."""
    has_every_key: bool
    is_sequential: bool
    """True where the offset deltas are 0, 1, 2 and so on."""


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """One record: its deltas, and where its key's length (`key_at`) begins and the record ends."""

    timestamp_delta: int
    offset_delta: int
    has_key: bool
    key_at: int
    end: int


def survey_records(data: bytes, position: int, end: int, count: int) -> RecordSurvey:
    """Walk `count` records that fill `data` between `position` and `end`. Raises DecodeError where they do not, and
    TooMuchData for more headers than a reader takes."""
    if count >= _BY_COLUMNS_FROM:
        survey = _survey_by_columns(data, position, end, count)
        if survey is not None:
            return survey
        if count > _MOST_WALKED:
            raise DecodeError(f"{count} records do not fill their {end - position} bytes", position)
    headers_left = _MOST_WALKED_HEADERS
    least = greatest = index_of_greatest = 0
    has_every_key = is_sequential = True
    try:
        for index in range(count):
            delta, offset_delta, key_size, position, headers_left = _walk_record(
                data, position, end, headers_left
            )
            if not index:
                least = greatest = delta
            elif delta > greatest:
                greatest = delta
                index_of_greatest = index
            elif delta < least:
                least = delta
            if offset_delta != index:
                is_sequential = False
            if key_size < 0:
                has_every_key = False
    except IndexError:
        raise BufferUnderflow("the records are cut short", len(data)) from None
    if position != end:
        raise DecodeError(f"{end - position} bytes are left after {count} records", position)
    return RecordSurvey(least, greatest, index_of_greatest, has_every_key, is_sequential)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The numbers of all records of a batch, in their order."""

    timestamp_deltas: Numbers
    offset_deltas: Numbers
    key_sizes: Numbers


def _survey_by_columns(data: bytes, position: int, end: int, count: int) -> RecordSurvey | None:
    """None where anything is unusual: the walk from record to record says what it is."""
    columns = _columns(data, position, end, count)
    if columns is None:
        return None
    deltas = columns.timestamp_deltas
    index_of_greatest = int(deltas.argmax())
    return RecordSurvey(
        int(deltas.min()),
        int(deltas[index_of_greatest]),
        index_of_greatest,
        bool(columns.key_sizes.min() >= 0),
        bool((columns.offset_deltas == np.arange(count)).all()),
    )


def _columns(data: bytes, position: int, end: int, count: int) -> _Columns | None:
    bounds = _bounds(data, position, end, count)
    if bounds is None:
        return None
    raw = np.frombuffer(data, np.uint8)
    starts, ends = bounds[:-1], bounds[1:]
    sizes, at, is_sound = _numbers(raw, starts, _VARINT_BYTES)
    deltas, at, is_delta = _numbers(raw, at + 1, _VARLONG_BYTES)
    offset_deltas, at, is_offset = _numbers(raw, at, _VARINT_BYTES)
    keys, at, is_key = _numbers(raw, at, _VARINT_BYTES)
    at += np.maximum(keys, 0)
    values, at, is_value = _numbers(raw, at, _VARINT_BYTES)
    at += np.maximum(values, 0)
    least_size = min(keys.min(), values.min())
    if not (is_sound and is_delta and is_offset and is_key and is_value) or least_size < -1:
        return None
    if sizes.min() < 0:  # `_bounds` does not look at the sign
        return None
    if (at >= ends).any():
        return None
    behind = _behind_headers(data, raw, at, ends)
    if behind is None or (behind != ends).any():
        return None
    return _Columns(deltas, offset_deltas, keys)


def _behind_headers(data: bytes, raw: Numbers, at: Numbers, ends: Numbers) -> Numbers | None:
    """The positions behind the headers of each record, which begin at `at`. Raises DecodeError, and TooMuchData."""
    counts, behind, is_sound = _numbers(raw, at, _VARINT_BYTES)
    if not is_sound or counts.min() < 0 or (counts > ends - behind).any():
        return None
    if int(counts.sum()) > _MOST_HEADERS:
        raise _too_many_headers(_MOST_HEADERS)
    left = np.flatnonzero((counts > 0) & (counts <= _FEW_HEADERS))
    number = 0
    while len(left):
        place, end = behind[left], ends[left]
        key_sizes, place, is_key = _numbers(raw, place, _VARINT_BYTES)
        if not is_key or key_sizes.min() < 0 or (key_sizes >= end - place).any():
            return None
        value_sizes, place, is_value = _numbers(raw, place + key_sizes, _VARINT_BYTES)
        if not is_value or value_sizes.min() < -1 or (value_sizes > end - place).any():
            return None
        behind[left] = place + np.maximum(value_sizes, 0)
        number += 1
        left = left[counts[left] > number]
    walked = np.flatnonzero(counts > _FEW_HEADERS)
    if len(walked) and int(counts[walked].sum()) > _MOST_WALKED_HEADERS:
        raise _too_many_headers(_MOST_WALKED_HEADERS)
    for index in walked.tolist():
        behind[index] = _skip_headers(data, int(at[index]), int(ends[index]), _MOST_WALKED_HEADERS)[0]
    return behind


def _too_many_headers(limit: int) -> TooMuchData:
    return TooMuchData(f"the records of a batch have more than {limit} headers together")


def first_at_or_after(
    data: bytes, position: int, end: int, count: int, *, least_delta: int, least_offset_delta: int
) -> tuple[int, int] | None:
    """The timestamp delta and offset delta of the first of `count` records with deltas of at least these; None without
    one. Raises DecodeError."""
    columns = _columns(data, position, end, count) if count >= _BY_COLUMNS_FROM else None
    if columns is None:
        for span in iterated_spans(data, position, end, count):
            if span.timestamp_delta >= least_delta and span.offset_delta >= least_offset_delta:
                return span.timestamp_delta, span.offset_delta
        return None
    fits = (columns.timestamp_deltas >= least_delta) & (columns.offset_deltas >= least_offset_delta)
    index = int(fits.argmax())
    if not fits[index]:
        return None
    return int(columns.timestamp_deltas[index]), int(columns.offset_deltas[index])


def outliers(
    data: bytes,
    position: int,
    end: int,
    count: int,
    *,
    deltas: tuple[int, int],
    exempt_delta: int | None = None,
    needs_key: bool = False,
) -> tuple[int, list[tuple[int, int, bool]]]:
    """Of records that `survey_records` went through without an error: how many lack a key that they need, or have a
    timestamp delta outside of the bounds `deltas` that is not `exempt_delta`; and the first MOST_OUTLIERS of them as
    (index, timestamp delta, has a key)."""
    least, greatest = deltas
    columns = _columns(data, position, end, count) if count >= _BY_COLUMNS_FROM else None
    if columns is not None:
        times, has_key = columns.timestamp_deltas, columns.key_sizes >= 0
        is_out = (times < least) | (times > greatest)
        if exempt_delta is not None:
            is_out &= times != exempt_delta
        if needs_key:
            is_out |= ~has_key
        found = np.flatnonzero(is_out)
        some = found[:MOST_OUTLIERS].tolist()
        return len(found), [(index, int(times[index]), bool(has_key[index])) for index in some]
    out = [
        (index, span.timestamp_delta, span.has_key)
        for index, span in enumerate(iterated_spans(data, position, end, count))
        if not (least <= span.timestamp_delta <= greatest or span.timestamp_delta == exempt_delta)
        or (needs_key and not span.has_key)
    ]
    return len(out), out[:MOST_OUTLIERS]


def _bounds(data: bytes, position: int, end: int, count: int) -> Numbers | None:
    """Where each of `count` records begins, and where the last one ends; None unless that is at `end`.

    It does not look at the sign of a length of one or two bytes: the caller does that for all records at once.
    """
    bounds = [position]
    try:
        for _ in range(count):
            size = data[position]
            if size < 128:
                position += 1 + (size >> 1)
            elif data[position + 1] < 128:
                position += 2 + ((size + (data[position + 1] << 7) - 128) >> 1)
            else:
                size, position = read_varint(data, position)
                position += size
            if position > end or size < 0:
                return None
            bounds.append(position)
    except (IndexError, DecodeError):
        return None
    return np.array(bounds, np.int64) if position == end else None


def _numbers(raw: Numbers, at: Numbers, most_bytes: int) -> tuple[Numbers, Numbers, bool]:
    """The zigzag numbers at these positions, the positions behind them, and whether all are sound."""
    last = len(raw) - 1
    byte = raw[np.minimum(at, last)]
    at = at + 1
    number = byte.astype(np.uint64)
    is_longer = byte > 127
    group = 0
    for group in range(1, most_bytes):
        if not is_longer.any():
            break
        byte = np.where(is_longer, raw[np.minimum(at, last)], 0)
        # The bit that says "one more byte" of the byte before is in the way.
        number = number - np.where(is_longer, np.uint64(128 << 7 * (group - 1)), np.uint64(0))
        number += byte.astype(np.uint64) << np.uint64(7 * group)
        at = at + is_longer
        is_longer = byte > 127
    is_sound = not is_longer.any()
    if most_bytes == _VARINT_BYTES:
        is_sound &= bool(number.max() <= _LARGEST_UINT32)
    elif is_sound:
        # `byte` is that of the last group read: of ten only one bit is left for a number of 64.
        is_sound = group < most_bytes - 1 or bool(byte.max() <= 1)
    halves = (number >> np.uint64(1)).view(np.int64)
    return halves ^ -(number & np.uint64(1)).view(np.int64), at, is_sound


def _walk_record(data: bytes, position: int, end: int, headers_left: int) -> tuple[int, int, int, int, int]:
    """Timestamp delta, offset delta, the key's length, the position behind the record, and how many headers the records
    behind it may have."""
    start = position
    size, position = _number(data, position)
    record_end = position + size
    if size < _LEAST_BODY_BYTES or record_end > end:
        raise DecodeError(f"a record has {size} bytes, {end - position} are left", start)
    position += 1
    timestamp_delta = data[position]
    if timestamp_delta < 128:
        timestamp_delta = (timestamp_delta >> 1) ^ -(timestamp_delta & 1)
        position += 1
    else:
        timestamp_delta, position = read_varlong(data, position)
    offset_delta, position = _number(data, position)
    key_size, position = _number(data, position)
    if key_size > 0:
        position += key_size
    if position >= record_end:
        raise _overrun(start)
    size, position = _number(data, position)
    if size > 0:
        position += size
    if position >= record_end:
        raise _overrun(start)
    if size < -1 or key_size < -1:
        raise DecodeError(f"a key or value has length {min(size, key_size)}", start)
    if data[position]:
        position, headers_left = _skip_headers(data, position, record_end, headers_left)
    else:
        position += 1
    if position != record_end:
        raise _overrun(start)
    return timestamp_delta, offset_delta, key_size, position, headers_left


def _number(data: bytes, position: int) -> tuple[int, int]:
    low = data[position]
    if low < 128:
        return (low >> 1) ^ -(low & 1), position + 1
    high = data[position + 1]
    if high < 128:
        low += (high << 7) - 128
        return (low >> 1) ^ -(low & 1), position + 2
    return read_varint(data, position)


def record_spans(data: bytes, position: int, end: int, count: int) -> list[RecordSpan]:
    """The records that `survey_records` went through without an error, one by one: two microseconds for each."""
    return list(iterated_spans(data, position, end, count))


def iterated_spans(data: bytes, position: int, end: int, count: int) -> Iterator[RecordSpan]:
    """As `record_spans`, each when it is asked for."""
    for _ in range(count):
        size, position = read_varint(data, position)
        record_end = position + size
        timestamp_delta, position = read_varlong(data, position + 1)
        offset_delta, position = read_varint(data, position)
        key_size, _ = read_varint(data, position)
        yield RecordSpan(timestamp_delta, offset_delta, key_size >= 0, position, record_end)
        position = record_end
    assert position == end


def renumbered(data: bytes, spans: list[RecordSpan], base_timestamp_delta: int) -> bytes:
    """The same records with the offset deltas 0, 1, 2 and so on, and timestamps as they are seen from a base timestamp
    that lies `base_timestamp_delta` ms above theirs. Keys, values and headers are copied as they are."""
    out = bytearray()
    for index, span in enumerate(spans):
        head = bytearray(1)
        write_varlong(head, span.timestamp_delta - base_timestamp_delta)
        write_varint(head, index)
        write_varint(out, len(head) + span.end - span.key_at)
        out += head
        out += data[span.key_at : span.end]
    return bytes(out)


def _skip_headers(data: bytes, position: int, end: int, headers_left: int) -> tuple[int, int]:
    start = position
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise DecodeError(f"{count} record headers in {end - position} bytes", start)
    if count > headers_left:
        raise _too_many_headers(_MOST_WALKED_HEADERS)
    for _ in range(count):
        size, position = read_varint(data, position)
        if not 0 <= size < end - position:
            raise DecodeError(f"a header's key of {size} bytes in {end - position} bytes", start)
        size, position = read_varint(data, position + size)
        if not -1 <= size <= end - position:
            raise DecodeError(f"a header's value of {size} bytes in {end - position} bytes", start)
        position += max(size, 0)
    return position, headers_left - count


def _overrun(position: int) -> DecodeError:
    return DecodeError("the parts of a record do not fill it exactly", position)
