"""The value of a data record in the metadata log: frame version, record type, schema version, then the message.

The three numbers are unsigned varints; the frame version is always 1. Kafka has no tolerant reader: an
unknown type or version is fatal for a node that replays the log. `decode_record` is strict in the same way;
`decode_record_lenient` is for tools which show what is there.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kquorum.wire.codegen.compiler import compile_shape
from kquorum.wire.errors import BufferUnderflow, DecodeError, UnsupportedVersion
from kquorum.wire.metadata_records.registry import BY_API_KEY
from kquorum.wire.primitives import read_uvarint, write_uvarint
from kquorum.wire.schema import MetadataRecord, codec_of, plan_of

FRAME_VERSION: Final = 1
_MAX_NUMBER: Final = 32767
SHORT_FRAME_BYTES: Final = 3

_RecordEncoder = Callable[[MetadataRecord, bytearray], None]
_RecordDecoder = Callable[[bytes, int], tuple[MetadataRecord, int]]
_ShapeDecoder = Callable[[bytes], MetadataRecord | None]

_LEARN_AFTER: Final = 256
_SHAPES_A_SIZE: Final = 4
_SIZES_KNOWN: Final = 1024


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """What could be read of a record's value: `record` is None and `problem` says why where it could not.

    `api_key` and `version` are -1 where the frame itself is unreadable.
    """

    api_key: int
    version: int
    record: MetadataRecord | None
    value: bytes
    problem: str | None


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """Frame and encode `record`, in its highest version unless another is given.

    Raises UnsupportedVersion if the version is unknown or lacks a field that is set, ValueError if a value
    does not fit its field.
    """
    found = _ENCODERS.get((type(record), version))
    if found is None:
        found = _ENCODERS[type(record), version] = _compile_encoder(type(record), version)
    prefix, encode = found
    out = bytearray(prefix)
    try:
        encode(record, out)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{record} cannot be encoded: {error}") from error
    return bytes(out)


def _compile_encoder(cls: type[MetadataRecord], version: int | None) -> tuple[bytes, _RecordEncoder]:
    lowest, highest = cls.versions
    version = highest if version is None else version
    if not lowest <= version <= highest:
        raise UnsupportedVersion(f"{cls.__name__} has versions {lowest} to {highest}, not {version}")
    prefix = bytearray()
    for number in (FRAME_VERSION, cls.api_key, version):
        write_uvarint(prefix, number)
    return bytes(prefix), codec_of(cls, version).encode


def decode_record(value: bytes) -> MetadataRecord:
    """Read a record's value. Raises UnsupportedVersion for a type or version unknown to us, else DecodeError."""
    if len(value) == _SHARED_BYTES and (shared := _SHARED.get(value)) is not None:
        return shared
    known = _SHAPES.get(value[:3])
    try:
        if known is not None:
            for decode_shape in known.get(len(value), ()):
                record = decode_shape(value)
                if record is not None:
                    return record
        return _decode_any(value)
    except (struct.error, IndexError):
        raise BufferUnderflow("the record is cut short", len(value)) from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string of the record is not UTF-8: {error.reason}") from None


def _decode_any(value: bytes) -> MetadataRecord:
    decode = _DECODERS.get(value[:3])
    position = SHORT_FRAME_BYTES
    if decode is None:
        decode, position = _read_frame(value)
    record, end = decode(value, position)
    if end != len(value):
        raise DecodeError(f"{len(value) - end} bytes are left after the record", end)
    if len(value) == _SHARED_BYTES:
        _SHARED[value] = record
    elif position == SHORT_FRAME_BYTES:
        _maybe_learn_shape(type(record), value)
    return record


def _maybe_learn_shape(cls: type[MetadataRecord], value: bytes) -> None:
    """Compile a decoder for records like this one, once there were many of its type and size that had none.

    Compiling takes as long as reading a few hundred records.
    """
    frame, size = value[:SHORT_FRAME_BYTES], len(value)
    count = _UNSHAPED_COUNTS.get((frame, size), 0) + 1
    if count == 1 and len(_UNSHAPED_COUNTS) >= _SIZES_KNOWN:
        return
    _UNSHAPED_COUNTS[frame, size] = count
    if count % _LEARN_AFTER or count > _LEARN_AFTER * _SHAPES_A_SIZE:
        return
    decode = compile_shape(plan_of(cls, value[2]), value, SHORT_FRAME_BYTES)
    if decode is not None:
        of_frame = _SHAPES.setdefault(frame, {})
        of_frame[size] = (*of_frame.get(size, ()), decode)


def decode_record_lenient(value: bytes) -> DecodedRecord:
    """Read as much as possible of a record's value; never raises."""
    api_key, version = -1, -1
    try:
        api_key, version, _ = _read_numbers(value)
        return DecodedRecord(api_key, version, decode_record(value), value, None)
    except DecodeError as error:
        return DecodedRecord(api_key, version, None, value, str(error))


def _read_frame(value: bytes) -> tuple[_RecordDecoder, int]:
    api_key, version, position = _read_numbers(value)
    decode = _decoder(api_key, version)
    if position == SHORT_FRAME_BYTES:
        _DECODERS[value[:position]] = decode
    return decode, position


def _read_numbers(value: bytes) -> tuple[int, int, int]:
    """The record type, its version, and the position of the message."""
    frame_version, position = _read_number(value, 0)
    if frame_version != FRAME_VERSION:
        raise UnsupportedVersion(f"frame version {frame_version} is not {FRAME_VERSION}", 0)
    api_key, position = _read_number(value, position)
    version, position = _read_number(value, position)
    return api_key, version, position


def _read_number(value: bytes, position: int) -> tuple[int, int]:
    number, end = read_uvarint(value, position)
    if number > _MAX_NUMBER:
        raise DecodeError(f"{number} in the frame is larger than {_MAX_NUMBER}", position)
    return number, end


def _decoder(api_key: int, version: int) -> _RecordDecoder:
    cls = BY_API_KEY.get(api_key)
    if cls is None:
        raise UnsupportedVersion(f"record type {api_key} is unknown")
    lowest, highest = cls.versions
    if not lowest <= version <= highest:
        raise UnsupportedVersion(
            f"{cls.__name__} version {version} is unknown; known are {lowest} to {highest}"
        )
    return codec_of(cls, version).decode


_ENCODERS: Final[dict[tuple[type[MetadataRecord], int | None], tuple[bytes, _RecordEncoder]]] = {}

# All three numbers of every record known today take one byte, so three bytes of a value name its decoder. Compiled on
# first use: all of them would cost every command 50 ms.
_DECODERS: Final[dict[bytes, _RecordDecoder]] = {}

# Nine of ten records of an idle cluster's log are no-ops of the same four bytes: one frozen value serves them all.
_SHARED: Final[dict[bytes, MetadataRecord]] = {}
_SHARED_BYTES: Final = 4

# Decoders for what recurs, by the first three bytes and the size of a record's value; how often a value had none.
_SHAPES: Final[dict[bytes, dict[int, tuple[_ShapeDecoder, ...]]]] = {}
_UNSHAPED_COUNTS: Final[dict[tuple[bytes, int], int]] = {}
