"""The numbers of variable length: golden bytes, and what is refused."""

from typing import Any

import pytest

from kquorum.wire import primitives as p
from kquorum.wire.errors import BufferUnderflow, DecodeError


@pytest.mark.parametrize(
    ("read", "write", "value", "encoded"),
    [
        (p.read_uvarint, p.write_uvarint, 300, "ac02"),
        (p.read_uvarint, p.write_uvarint, 2**32 - 1, "ffffffff0f"),
        (p.read_varint, p.write_varint, -1, "01"),
        (p.read_varint, p.write_varint, 64, "8001"),
        (p.read_varint, p.write_varint, -(2**31), "ffffffff0f"),
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
        (p.read_uvarint, "80"),
        (p.read_varlong, "ffff"),
        (p.read_int16, "7f"),
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
    ],
)
def test_invalid_input_is_refused(read: Any, encoded: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (300, "d804"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varlongs_are_zigzag(value: int, encoded: str) -> None:
    assert p.read_varlong(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("write", "value"),
    [(p.write_varint, 2**31), (p.write_uvarint, -1)],
)
def test_what_does_not_fit_is_not_written(write: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"fit|cannot be"):
        write(bytearray(), value)
