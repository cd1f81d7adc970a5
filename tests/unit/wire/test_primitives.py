"""The primitive types: golden bytes, and what is refused."""

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire import primitives as p
from kquorum.wire.errors import BufferUnderflow, DecodeError

UUID_BYTES = bytes.fromhex("00112233445566778899aabbccddeeff")


@pytest.mark.parametrize(
    ("read", "write", "value", "encoded"),
    [
        (p.read_int8, p.write_int8, -2, "fe"),
        (p.read_int16, p.write_int16, -2, "fffe"),
        (p.read_int32, p.write_int32, 1, "00000001"),
        (p.read_int64, p.write_int64, 1700000000000, "0000018bcfe56800"),
        (p.read_uint16, p.write_uint16, 65535, "ffff"),
        (p.read_uint32, p.write_uint32, 2**32 - 1, "ffffffff"),
        (p.read_bool, p.write_bool, True, "01"),
        (p.read_float64, p.write_float64, 1.5, "3ff8000000000000"),
        (p.read_uuid, p.write_uuid, UUID(bytes=UUID_BYTES), UUID_BYTES.hex()),
        (p.read_uvarint, p.write_uvarint, 300, "ac02"),
        (p.read_uvarint, p.write_uvarint, 2**32 - 1, "ffffffff0f"),
        (p.read_varint, p.write_varint, -1, "01"),
        (p.read_varint, p.write_varint, 64, "8001"),
        (p.read_varint, p.write_varint, -(2**31), "ffffffff0f"),
        (p.read_varlong, p.write_varlong, -(2**63), "ffffffffffffffffff01"),
        (p.read_compact_string, p.write_compact_string, "foo", "04666f6f"),
        (p.read_nullable_compact_string, p.write_nullable_compact_string, None, "00"),
        (p.read_nullable_compact_string, p.write_nullable_compact_string, "", "01"),
        (p.read_compact_bytes, p.write_compact_bytes, b"", "01"),
        (p.read_nullable_compact_bytes, p.write_nullable_compact_bytes, None, "00"),
        (p.read_compact_array_length, p.write_compact_array_length, None, "00"),
        (p.read_compact_array_length, p.write_compact_array_length, 0, "01"),
    ],
)
def test_golden_bytes(read: Any, write: Any, value: Any, encoded: str) -> None:
    out = bytearray(b"x")
    write(out, value)
    assert out[1:].hex() == encoded
    for buffer in (bytes(out), out, memoryview(bytes(out))):
        assert read(buffer, 1) == (value, len(out))


@pytest.mark.parametrize(
    ("read", "cut"),
    [
        (p.read_int8, ""),
        (p.read_int64, "00000000000000"),
        (p.read_float64, "3ff8"),
        (p.read_uuid, "0011"),
        (p.read_uvarint, "80"),
        (p.read_varlong, "ffff"),
        (p.read_compact_string, "0466"),
        (p.read_compact_bytes, "05ff"),
        (p.read_compact_array_length, "0500"),
    ],
)
def test_short_buffers_underflow(read: Any, cut: str) -> None:
    with pytest.raises(BufferUnderflow, match="at byte"):
        read(bytes.fromhex(cut), 0)


@pytest.mark.parametrize(
    ("read", "encoded", "reason"),
    [
        (p.read_uvarint, "808080808001", "longer than 5 bytes"),
        (p.read_uvarint, "ffffffff1f", "larger than 32 bits"),
        (p.read_varlong, "80808080808080808080", "longer than 10 bytes"),
        (p.read_varlong, "ffffffffffffffffff03", "larger than 64 bits"),
        (p.read_compact_string, "00", "null where a string is required"),
        (p.read_compact_bytes, "00", "null where bytes are required"),
        (p.read_compact_string, "02ff", "not UTF-8"),
    ],
)
def test_invalid_input_is_refused(read: Any, encoded: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read(bytes.fromhex(encoded), 0)


def test_texts_have_at_most_32767_bytes() -> None:
    out = bytearray()
    p.write_compact_string(out, "x" * 32767)
    assert p.read_compact_string(out, 0) == ("x" * 32767, len(out))
    with pytest.raises(ValueError, match="longer than 32767"):
        p.write_compact_string(out, "x" * 32768)
    too_long = bytearray()
    p.write_compact_bytes(too_long, b"x" * 32768)
    with pytest.raises(DecodeError, match="longer than 32767"):
        p.read_compact_string(too_long, 0)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_round_trip(value: int) -> None:
    out = bytearray()
    p.write_varlong(out, value)
    assert p.read_varlong(out, 0) == (value, len(out))


@pytest.mark.parametrize(
    ("write", "value"),
    [(p.write_varint, 2**31), (p.write_varlong, 2**63), (p.write_uvarint, -1)],
)
def test_what_does_not_fit_is_not_written(write: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"fit|cannot be"):
        write(bytearray(), value)


def test_integers_that_do_not_fit_are_not_written() -> None:
    with pytest.raises(struct.error):
        p.write_int16(bytearray(), 40000)
