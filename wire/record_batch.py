"""Record batches of magic 2: the 61-byte header, the records after it, and the checksum over both.

All integers of the header are big-endian. The CRC-32C covers everything from the attributes on, so base offset,
length and leader epoch can change without it. Records use zigzag varints; their timestamps and offsets are
relative to the header's. Batches of the metadata log have one timestamp (ms) and no keys in data records.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from crc32c import crc32c

from kquorum.wire.compression import CompressionCodec, compress, decompress
from kquorum.wire.drafts import draft_of
from kquorum.wire.errors import BufferUnderflow, CorruptBatch, DecodeError
from kquorum.wire.primitives import Buffer, write_varint
from kquorum.wire.record_parsing import Record, check_room, parse_records, parse_short, parse_values

# Records and codecs have modules of their own, but callers find all that concerns a batch here.
__all__ = [
    "HEADER_BYTES",
    "LOG_OVERHEAD_BYTES",
    "MAGIC",
    "MAX_BATCH_BYTES",
    "MAX_BATCH_RECORDS",
    "MAX_DECOMPRESSED_BYTES",
    "BatchHeader",
    "CompressionCodec",
    "Record",
    "check_batch",
    "plain_size",
    "read_batch_header",
    "read_records",
    "read_values",
    "write_batch",
]

HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
MAGIC: Final = 2

# KRaft builds every batch of the log and of snapshots in a buffer of so many bytes, before it is compressed. What says
# that it holds more was not written by a KRaft node: it is refused, or a few KiB of it could take all memory.
MAX_DECOMPRESSED_BYTES: Final = 8 * 1024 * 1024
# Compressed data can be a little longer than they were.
MAX_BATCH_BYTES: Final = 2 * MAX_DECOMPRESSED_BYTES
# The shortest metadata record is a NoOpRecord of four bytes, and seven bytes around them.
MAX_BATCH_RECORDS: Final = MAX_DECOMPRESSED_BYTES // 11

_DELETE_HORIZON: Final = 0x40
_CONTROL: Final = 0x20
_TRANSACTIONAL: Final = 0x10
_LOG_APPEND_TIME: Final = 0x08
_CODEC_MASK: Final = 0x07
_CRC_START: Final = 21
_NOTHING: Final = -1
_COPIED_BYTES: Final = 4096

_unpack_header: Final = struct.Struct(">qiibIhiqqqhii").unpack_from
_UNCHECKED: Final = struct.Struct(">qiibI")
_CHECKED: Final = struct.Struct(">hiqqqhii")


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header as it stands in the bytes. `batch_length` counts from after itself to the batch's end."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        return LOG_OVERHEAD_BYTES + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        return self.attributes & _CONTROL != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def is_log_append_time(self) -> bool:
        """True where the broker stamped its time: it is the maximum timestamp, and that of every record."""
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones and markers of a compacted batch may go; the base timestamp holds it (KIP-534)."""
        return self.base_timestamp_ms if self.attributes & _DELETE_HORIZON else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > _NOTHING

    @property
    def last_sequence(self) -> int:
        """-1 without a base sequence. Sequences count modulo 2^31, by offsets: a compacted batch keeps its last."""
        if self.base_sequence == _NOTHING:
            return _NOTHING
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    @property
    def codec(self) -> CompressionCodec:
        """Raises DecodeError for the ids 5 to 7, which mean nothing."""
        number = self.attributes & _CODEC_MASK
        if number > CompressionCodec.ZSTD:
            raise DecodeError(f"compression codec {number} does not exist")
        return CompressionCodec(number)


_Draft: Final = draft_of(BatchHeader)


def read_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; neither the checksum nor the presence of the records is checked.

    Raises BufferUnderflow with fewer than 61 bytes left, CorruptBatch if magic or lengths cannot be right.
    """
    header = _Draft()
    try:
        (
            header.base_offset,
            header.batch_length,
            header.partition_leader_epoch,
            header.magic,
            header.crc,
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp_ms,
            header.max_timestamp_ms,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        ) = _unpack_header(buffer, position)
    except struct.error:
        left = len(buffer) - position
        raise BufferUnderflow(f"a batch header has {HEADER_BYTES} bytes, {left} are left", position) from None
    header.__class__ = BatchHeader
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch has magic {header.magic} instead of {MAGIC}", position)
    if not HEADER_BYTES <= header.batch_length + LOG_OVERHEAD_BYTES <= MAX_BATCH_BYTES:
        raise CorruptBatch(f"batch length {header.batch_length} is not sensible", position)
    checked: BatchHeader = header
    return checked


def check_batch(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header, and check that the whole batch is there and its checksum and counts are right.

    Raises BufferUnderflow if the batch is cut short, else CorruptBatch.
    """
    header = read_batch_header(buffer, position)
    end = position + LOG_OVERHEAD_BYTES + header.batch_length
    if end > len(buffer):
        missing = end - len(buffer)
        raise BufferUnderflow(
            f"the last {missing} of {header.size_in_bytes} bytes of a batch are missing", position
        )
    if type(buffer) is memoryview:
        computed = crc32c(buffer[position + _CRC_START : end])
    else:
        computed = _crc_of(buffer, position + _CRC_START, end)
    if computed != header.crc:
        raise CorruptBatch(f"batch has CRC {header.crc:#010x}, but its bytes give {computed:#010x}", position)
    if header.record_count < 0 or header.last_offset_delta < 0:
        counts = f"{header.record_count} records, last offset delta {header.last_offset_delta}"
        raise CorruptBatch(f"batch has negative counts: {counts}", position)
    if header.record_count > MAX_BATCH_RECORDS:
        limit = f"a batch holds {MAX_BATCH_RECORDS} at most"
        raise CorruptBatch(f"batch has {header.record_count} records, but {limit}", position)
    return header


def _crc_of(buffer: Buffer, start: int, end: int) -> int:
    # A view of a bytearray is let go here, before any error is raised: a caller that keeps the error could
    # not resize the bytearray.
    if end - start < _COPIED_BYTES:
        return crc32c(buffer[start:end])
    return crc32c(memoryview(buffer)[start:end])


def read_records(buffer: Buffer, position: int, header: BatchHeader) -> tuple[Record, ...]:
    """The records of the batch at `position`, decompressed where needed, with absolute offsets and timestamps.

    Raises DecodeError if they are malformed, or fewer or more than the header says.
    """
    attributes = header.attributes
    if header.record_count == 1 and not attributes & (_CODEC_MASK | _LOG_APPEND_TIME):
        start, end = position + HEADER_BYTES, position + LOG_OVERHEAD_BYTES + header.batch_length
        if end <= len(buffer):
            record = parse_short(buffer, start, end, header.base_offset, header.base_timestamp_ms)
            if record is not None:
                return (record,)
    is_fixed = attributes & _LOG_APPEND_TIME
    return parse_records(
        records_data(buffer, position, header),
        header.record_count,
        header.base_offset,
        header.base_timestamp_ms,
        header.max_timestamp_ms if is_fixed else None,
    )


def read_values(buffer: Buffer, position: int, header: BatchHeader) -> list[bytes | None]:
    """The values alone of the records that `read_records` would read; it raises what that would."""
    return parse_values(records_data(buffer, position, header), header.record_count)


def records_data(buffer: Buffer, position: int, header: BatchHeader) -> bytes:
    """What follows the header of the batch at `position`, decompressed; raises DecodeError."""
    data = buffer[position + HEADER_BYTES : position + LOG_OVERHEAD_BYTES + header.batch_length]
    if type(data) is not bytes:
        data = bytes(data)
    if header.attributes & _CODEC_MASK:
        return decompress(header.codec, data, MAX_DECOMPRESSED_BYTES)
    return data


def plain_size(buffer: Buffer, position: int, header: BatchHeader) -> int:
    """How many bytes `records_data` answers; raises DecodeError as that does, or where they are fewer than the records
    that the header announces take at least."""
    if header.attributes & _CODEC_MASK:
        size = len(records_data(buffer, position, header))
    else:
        size = header.batch_length + LOG_OVERHEAD_BYTES - HEADER_BYTES
    check_room(size, header.record_count)
    return size


def write_batch(
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    records: Sequence[tuple[bytes | None, bytes | None]],
    control: bool = False,
    codec: CompressionCodec = CompressionCodec.NONE,
) -> bytes:
    """One batch of (key, value) records as a KRaft leader writes it: one timestamp, no producer, no headers.

    Raises ValueError for no records at all.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    body = _values_body(records)
    payload = body if codec == CompressionCodec.NONE else compress(codec, bytes(body))
    checked = _CHECKED.pack(
        (_CONTROL if control else 0) | codec,
        len(records) - 1,
        timestamp_ms,
        timestamp_ms,
        _NOTHING,
        _NOTHING,
        _NOTHING,
        len(records),
    )
    crc = crc32c(payload, crc32c(checked))
    batch_length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload)
    return _UNCHECKED.pack(base_offset, batch_length, leader_epoch, MAGIC, crc) + checked + payload


def _values_body(records: Sequence[tuple[bytes | None, bytes | None]]) -> bytearray:
    body = bytearray()
    for offset_delta, (key, value) in enumerate(records[:64]):
        _write_record(body, offset_delta, key, value)
    if len(records) <= 64:
        return body
    # Large batches are of values without keys, nearly always: little but the varint of the offset differs then.
    parts: list[bytes] = []
    for offset_delta, (key, value) in enumerate(records[64:], 64):
        if key is not None or value is None:
            record = bytearray()
            _write_record(record, offset_delta, key, value)
            parts.append(bytes(record))
            continue
        delta = _varint(offset_delta)
        before, between = _around_delta(len(value), len(delta))
        parts += (before, delta, between, value, b"\0")
    body += b"".join(parts)
    return body


def _write_record(out: bytearray, offset_delta: int, key: bytes | None, value: bytes | None) -> None:
    size = len(value) if value is not None else 0
    if key is None and value is not None and size < 50 and offset_delta < 64:
        # Zigzag varints below 64 are one byte: length, no attributes, no timestamp delta, offset delta, no key.
        out += bytes((2 * (size + 6), 0, 0, 2 * offset_delta, 1, 2 * size))
        out += value
        out.append(0)
        return
    if key is None and value is not None:
        delta = _varint(offset_delta)
        before, between = _around_delta(size, len(delta))
        out += before
        out += delta
        out += between
        out += value
        out.append(0)
        return
    record = bytearray(b"\x00\x00")
    write_varint(record, offset_delta)
    for part in (key, value):
        write_varint(record, -1 if part is None else len(part))
        record += part or b""
    record.append(0)
    write_varint(out, len(record))
    out += record


@lru_cache(maxsize=16384)
def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


@lru_cache(maxsize=4096)
def _around_delta(value_size: int, delta_size: int) -> tuple[bytes, bytes]:
    """What stands before and behind the offset delta of a record without key: its length, no attributes, no timestamp
    delta; no key, the value's length."""
    between = b"\x01" + _varint(value_size)
    return _varint(2 + delta_size + len(between) + value_size + 1) + b"\x00\x00", between
