"""The numbers of variable length in Kafka's flexible messages and in record batches, and what else readers share.

Every reader takes a buffer and a position, and returns the value and the position after it; every writer appends to a
bytearray. There are two codings: `uvarint` (plain, in messages, KIP-482) and `varint`/`varlong` (zigzag, in record
batches). Readers raise BufferUnderflow when the buffer is too short, and DecodeError for a number that is too large.
"""

import struct

from kquorum.wire.errors import BufferUnderflow, DecodeError

Buffer = bytes | bytearray | memoryview
MAX_STRING_BYTES = 32767
_INT16 = struct.Struct(">h")


def read_int16(buffer: Buffer, position: int) -> tuple[int, int]:
    try:
        (value,) = _INT16.unpack_from(buffer, position)
    except struct.error:
        raise _underflow(_INT16.size, buffer, position) from None
    return value, position + _INT16.size


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Unsigned 32 bits in at most 5 bytes, low 7 bits first."""
    value, end = _read_groups(buffer, position, 5)
    if value > 0xFFFF_FFFF:
        raise DecodeError("variable-length integer is larger than 32 bits", position)
    return value, end


def write_uvarint(out: bytearray, value: int) -> None:
    if value < 0:
        raise ValueError(f"an unsigned integer cannot be {value}")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Zigzag 32 bits in at most 5 bytes."""
    value, position = read_uvarint(buffer, position)
    return (value >> 1) ^ -(value & 1), position


def write_varint(out: bytearray, value: int) -> None:
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ValueError(f"{value} does not fit into 32 bits")
    write_uvarint(out, (value << 1) ^ (value >> 31))


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Zigzag 64 bits in at most 10 bytes."""
    value, end = _read_groups(buffer, position, 10)
    if value > 0xFFFF_FFFF_FFFF_FFFF:
        raise DecodeError("variable-length integer is larger than 64 bits", position)
    return (value >> 1) ^ -(value & 1), end


def write_varlong(out: bytearray, value: int) -> None:
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError(f"{value} does not fit into 64 bits")
    write_uvarint(out, (value << 1) ^ (value >> 63))


def take(buffer: Buffer, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(buffer):
        raise _underflow(size, buffer, position)
    return bytes(buffer[position:end]), end


def _read_groups(buffer: Buffer, position: int, max_bytes: int) -> tuple[int, int]:
    value = 0
    for index in range(max_bytes):
        if position + index >= len(buffer):
            raise _underflow(index + 1, buffer, position)
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise DecodeError(f"variable-length integer is longer than {max_bytes} bytes", position)


def _underflow(needed: int, buffer: Buffer, position: int) -> BufferUnderflow:
    return BufferUnderflow(f"{needed} bytes needed, {max(len(buffer) - position, 0)} left", position)
