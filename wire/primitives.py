"""Readers and writers of the primitive types in Kafka's flexible messages and in record batches.

Every reader takes a buffer and a position and answers the value and the position after it; every writer
appends to a bytearray. Integers are big-endian. There are two variable-length codings: `uvarint` (plain, used
inside messages) and `varint`/`varlong` (zigzag, used inside record batches). Readers raise BufferUnderflow
when the buffer is too short and DecodeError when the bytes make no sense. Compact types: KIP-482.
"""

import struct
from collections.abc import Callable
from uuid import UUID

from kquorum.wire.errors import BufferUnderflow, DecodeError

Buffer = bytes | bytearray | memoryview
MAX_STRING_BYTES = 32767
_UUID_BYTES = 16


def _integer_reader(layout: str) -> Callable[[Buffer, int], tuple[int, int]]:
    packer = struct.Struct(">" + layout)

    def read(buffer: Buffer, position: int) -> tuple[int, int]:
        try:
            (value,) = packer.unpack_from(buffer, position)
        except struct.error:
            raise _underflow(packer.size, buffer, position) from None
        return value, position + packer.size

    return read


def _integer_writer(layout: str) -> Callable[[bytearray, int], None]:
    packer = struct.Struct(">" + layout)

    def write(out: bytearray, value: int) -> None:
        out += packer.pack(value)

    return write


read_int8, write_int8 = _integer_reader("b"), _integer_writer("b")
read_int16, write_int16 = _integer_reader("h"), _integer_writer("h")
read_int32, write_int32 = _integer_reader("i"), _integer_writer("i")
read_int64, write_int64 = _integer_reader("q"), _integer_writer("q")
read_uint16, write_uint16 = _integer_reader("H"), _integer_writer("H")
read_uint32, write_uint32 = _integer_reader("I"), _integer_writer("I")


def read_bool(buffer: Buffer, position: int) -> tuple[bool, int]:
    value, position = read_int8(buffer, position)
    return value != 0, position


def write_bool(out: bytearray, value: bool) -> None:
    out.append(1 if value else 0)


def read_float64(buffer: Buffer, position: int) -> tuple[float, int]:
    raw, position = take(buffer, position, 8)
    (value,) = struct.unpack(">d", raw)
    return value, position


def write_float64(out: bytearray, value: float) -> None:
    out += struct.pack(">d", value)


def read_uuid(buffer: Buffer, position: int) -> tuple[UUID, int]:
    raw, position = take(buffer, position, _UUID_BYTES)
    return UUID(bytes=raw), position


def write_uuid(out: bytearray, value: UUID) -> None:
    out += value.bytes


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
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} does not fit into 64 bits")
    write_uvarint(out, (value << 1) ^ (value >> 63))


def read_compact_string(buffer: Buffer, position: int) -> tuple[str, int]:
    value, end = read_nullable_compact_string(buffer, position)
    if value is None:
        raise DecodeError("null where a string is required", position)
    return value, end


def read_nullable_compact_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    raw, end = read_nullable_compact_bytes(buffer, position)
    if raw is None:
        return None, end
    if len(raw) > MAX_STRING_BYTES:
        raise DecodeError(f"string of {len(raw)} bytes is longer than {MAX_STRING_BYTES}", position)
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise DecodeError(f"string is not UTF-8: {error.reason}", position) from None


def write_compact_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    if len(raw) > MAX_STRING_BYTES:
        raise ValueError(f"string of {len(raw)} bytes is longer than {MAX_STRING_BYTES}")
    write_compact_bytes(out, raw)


def write_nullable_compact_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def read_compact_bytes(buffer: Buffer, position: int) -> tuple[bytes, int]:
    value, end = read_nullable_compact_bytes(buffer, position)
    if value is None:
        raise DecodeError("null where bytes are required", position)
    return value, end


def read_nullable_compact_bytes(buffer: Buffer, position: int) -> tuple[bytes | None, int]:
    length_plus_one, position = read_uvarint(buffer, position)
    if length_plus_one == 0:
        return None, position
    return take(buffer, position, length_plus_one - 1)


def write_compact_bytes(out: bytearray, value: bytes) -> None:
    write_uvarint(out, len(value) + 1)
    out += value


def write_nullable_compact_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


def read_compact_array_length(buffer: Buffer, position: int) -> tuple[int | None, int]:
    """The number of elements, or None for a null array; never more than the bytes that are left."""
    count_plus_one, end = read_uvarint(buffer, position)
    if count_plus_one == 0:
        return None, end
    if count_plus_one - 1 > len(buffer) - end:
        raise BufferUnderflow(
            f"array of {count_plus_one - 1} elements in {len(buffer) - end} bytes", position
        )
    return count_plus_one - 1, end


def write_compact_array_length(out: bytearray, count: int | None) -> None:
    write_uvarint(out, 0 if count is None else count + 1)


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
