"""Messages of magic 0 and 1, which Kafka wrote before 0.11 and old folders still hold. They are read, never written.

A message: offset int64, size int32, CRC-32 of what follows it, magic, attributes, in magic 1 a timestamp, then key and
value, each behind an int32 length (-1 for null). The value of a compressed message is a set of messages: their offsets
are absolute in magic 0, and in magic 1 relative, so that the last one's is the outer message's offset (KIP-31, KIP-32).
"""

import struct
import zlib
from typing import Final

from kquorum.wire.compression import CompressionCodec, decompress
from kquorum.wire.drafts import draft_of
from kquorum.wire.errors import BufferUnderflow, CorruptBatch, DecodeError
from kquorum.wire.primitives import Buffer
from kquorum.wire.record_batch import LOG_OVERHEAD_BYTES, BatchHeader
from kquorum.wire.record_parsing import Record

LEAST_MESSAGE_BYTES: Final = 14
"""CRC, magic, attributes and two lengths."""

_CODEC_BITS: Final = 0x07
_USED_ATTRIBUTES: Final = 0x0F
_UNKNOWN: Final = -1
_LZ4_DESCRIPTOR_AT: Final = 4

_HEAD: Final = struct.Struct(">qiIbb")
_TIMESTAMP: Final = struct.Struct(">q")
_SIZE: Final = struct.Struct(">i")
_Draft: Final = draft_of(BatchHeader)


def read_legacy_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The message at `position` as a batch: its offset is the last record's, its count -1 where it is compressed.

    Raises BufferUnderflow where it is cut short before its timestamp, CorruptBatch for sizes that cannot be right.
    """
    try:
        offset, size, crc, magic, attributes = _HEAD.unpack_from(buffer, position)
        timestamp_ms = _UNKNOWN
        if magic:
            (timestamp_ms,) = _TIMESTAMP.unpack_from(buffer, position + _HEAD.size)
    except struct.error:
        raise BufferUnderflow(f"{len(buffer) - position} bytes of a message are left", position) from None
    least = LEAST_MESSAGE_BYTES + (_TIMESTAMP.size if magic else 0)
    if size < least:
        raise CorruptBatch(f"a message of magic {magic} has {size} bytes, at least {least} are due", position)
    header = _Draft()
    header.base_offset = offset
    header.batch_length = size
    header.partition_leader_epoch = _UNKNOWN
    header.magic = magic
    header.crc = crc
    header.attributes = attributes & _USED_ATTRIBUTES
    header.last_offset_delta = 0
    header.base_timestamp_ms = header.max_timestamp_ms = timestamp_ms
    header.producer_id = header.producer_epoch = header.base_sequence = _UNKNOWN
    header.record_count = _UNKNOWN if attributes & _CODEC_BITS else 1
    header.__class__ = BatchHeader
    read: BatchHeader = header
    return read


def read_legacy_records(
    buffer: Buffer, position: int, header: BatchHeader, max_plain_bytes: int
) -> tuple[Record, ...]:
    """The record of the message at `position`, or those that are compressed in it.

    Raises DecodeError if they are malformed, an inner checksum is wrong, or they unfold to more than `max_plain_bytes`.
    """
    record = _message(bytes(buffer[position : position + header.size_in_bytes]), header)
    if not header.attributes & _CODEC_BITS:
        return (record,)
    if record.value is None:
        raise DecodeError("a compressed message has no value", position)
    inner = _inner_messages(_decompressed(header, record.value, max_plain_bytes))
    if not inner:
        raise DecodeError("a compressed message holds no messages", position)
    if not header.magic:
        return tuple(inner)
    # Certain versions of librdkafka produced 0 in the outer message.
    base_offset = header.base_offset - inner[-1].offset if header.base_offset else 0
    if base_offset < 0:
        raise DecodeError(
            f"a compressed message has offset {header.base_offset}, its last one {inner[-1].offset}", position
        )
    fixed = header.base_timestamp_ms if header.is_log_append_time else None
    return tuple(
        Record(
            base_offset + each.offset,
            each.timestamp_ms if fixed is None else fixed,
            each.key,
            each.value,
        )
        for each in inner
    )


def _message(data: bytes, header: BatchHeader) -> Record:
    position = _HEAD.size + (_TIMESTAMP.size if header.magic else 0)
    key, position = _part(data, position)
    value, position = _part(data, position)
    if position != len(data):
        raise DecodeError(f"{len(data) - position} bytes are left after a message's value", position)
    return Record(header.base_offset, header.base_timestamp_ms, key, value)


def _part(data: bytes, position: int) -> tuple[bytes | None, int]:
    try:
        (size,) = _SIZE.unpack_from(data, position)
    except struct.error:
        raise BufferUnderflow("a message is cut short", position) from None
    position += _SIZE.size
    if size < 0:
        return None, position
    if size > len(data) - position:
        raise BufferUnderflow(f"{size} bytes in a message that has {len(data) - position} left", position)
    return data[position : position + size], position + size


def _inner_messages(data: bytes) -> list[Record]:
    records, position = [], 0
    while len(data) - position >= LOG_OVERHEAD_BYTES + LEAST_MESSAGE_BYTES:
        header = read_legacy_header(data, position)
        end = position + header.size_in_bytes
        if end > len(data):
            break
        if header.magic not in (0, 1) or header.attributes & _CODEC_BITS:
            raise DecodeError(
                "a message inside a compressed one is compressed, or of another format", position
            )
        if zlib.crc32(data[position + 16 : end]) != header.crc:
            raise CorruptBatch("the checksum of a message inside a compressed one is wrong", position)
        records.append(_message(data[position:end], header))
        position = end
    return records


def _decompressed(header: BatchHeader, value: bytes, limit: int) -> bytes:
    codec = header.codec
    if codec == CompressionCodec.ZSTD:
        raise DecodeError(f"a message of magic {header.magic} cannot be compressed with zstd")
    if codec == CompressionCodec.LZ4 and not header.magic:
        value = _with_right_checksum(value)
    return decompress(codec, value, limit)


def _with_right_checksum(frame: bytes) -> bytes:
    """The lz4 frame with the checksum of its header made right: writers of magic 0 took the frame's magic into it."""
    descriptor = frame[_LZ4_DESCRIPTOR_AT : _LZ4_DESCRIPTOR_AT + 2]
    if len(descriptor) < 2:
        return frame
    size = 2 + 8 * (descriptor[0] >> 3 & 1)
    end = _LZ4_DESCRIPTOR_AT + size
    checksum = _xxh32(frame[_LZ4_DESCRIPTOR_AT:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def _xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes. Source: the xxHash specification, "XXH32 algorithm description"."""
    one, two, three = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
    four, five = 0x27D4EB2F, 0x165667B1
    mask = 0xFFFF_FFFF
    accumulator = (five + len(data)) & mask
    words = len(data) // 4
    for index in range(words):
        word = int.from_bytes(data[4 * index : 4 * index + 4], "little")
        accumulator = (accumulator + word * three) & mask
        accumulator = (accumulator << 17 | accumulator >> 15) & mask
        accumulator = accumulator * four & mask
    for byte in data[4 * words :]:
        accumulator = (accumulator + byte * five) & mask
        accumulator = (accumulator << 11 | accumulator >> 21) & mask
        accumulator = accumulator * one & mask
    accumulator = (accumulator ^ accumulator >> 15) * two & mask
    accumulator = (accumulator ^ accumulator >> 13) * three & mask
    return accumulator ^ accumulator >> 16
