"""Encodes and decodes the messages of `wire.messages`, in any version.

Compiled once per class, version and direction from the declarations of `wire.message_schema`. A field that the version
lacks reads as its default. Unknown tagged fields, which a newer peer may lawfully send (KIP-482), are skipped, and an
error code of a newer peer reads as UNKNOWN_SERVER_ERROR.
"""

import struct
from typing import Final, TypeVar

from wire.codegen.compiler import Decoder, Encoder, compile_decoder, compile_encoder
from wire.codegen.runtime import ElementsLeft, MessageBuffer
from wire.errors import BufferUnderflow, DecodeError
from wire.message_schema import Message, plan_of
from wire.primitives import Buffer

M = TypeVar("M", bound=Message)
_Key = tuple[type[Message], int]

_ENCODERS: Final[dict[_Key, Encoder]] = {}
_DECODERS: Final[dict[_Key, Decoder]] = {}
_BOUNDED: Final[dict[_Key, Decoder]] = {}
_ELEMENTS: Final = ElementsLeft()


def encoder_of(cls: type[Message], version: int) -> Encoder:
    """Raises UnsupportedVersion."""
    encoder = _ENCODERS.get((cls, version))
    if encoder is None:
        encoder = _ENCODERS[cls, version] = compile_encoder(plan_of(cls, version))
    return encoder


def decoder_of(cls: type[Message], version: int) -> Decoder:
    """Raises UnsupportedVersion."""
    decoder = _DECODERS.get((cls, version))
    if decoder is None:
        decoder = _DECODERS[cls, version] = compile_decoder(plan_of(cls, version))
    return decoder


def bounded_decoder_of(cls: type[Message], version: int) -> Decoder:
    """What `decode_bounded` reads with. Raises UnsupportedVersion."""
    decoder = _BOUNDED.get((cls, version))
    if decoder is None:
        decoder = _BOUNDED[cls, version] = compile_decoder(plan_of(cls, version), _ELEMENTS)
    return decoder


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message.

    Raises ValueError if a value does not fit its field, and UnsupportedVersion if the version does not exist or if it
    lacks a field of a request that is set and may not be ignored: both are mistakes of the caller, not of a peer.
    """
    parts = encode_parts(message, version)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def encode_parts(message: Message, version: int) -> list[bytes | memoryview]:
    """As `encode`, in pieces to be sent one after the other. Each long record batch is a piece, which is not copied."""
    encoder = encoder_of(type(message), version)
    out = MessageBuffer()
    try:
        encoder(message, out)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{type(message).__name__} version {version} cannot be encoded: {error}") from error
    return out.parts()


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Read a message; answer it and the position after its last byte.

    Raises UnsupportedVersion, and DecodeError (BufferUnderflow if the buffer is too short).
    """
    return _decoded(decoder_of(cls, version), cls, buffer, position)


def decode_bounded(
    cls: type[M], version: int, buffer: Buffer, position: int, most_elements: int
) -> tuple[M, int]:
    """Like `decode`, for untrusted input: raises TooManyElements, before it makes them, for arrays that have more
    elements than that together, those of nested arrays and unknown tagged fields counted too."""
    decoder = bounded_decoder_of(cls, version)
    _ELEMENTS.allow(most_elements)
    return _decoded(decoder, cls, buffer, position)


def elements_read() -> int:
    """How many elements the last `decode_bounded` of this thread has read."""
    return _ELEMENTS.taken


def _decoded(decoder: Decoder, cls: type[M], buffer: Buffer, position: int) -> tuple[M, int]:
    data = buffer if type(buffer) is bytes else bytes(buffer)
    try:
        return decoder(data, position)
    except (struct.error, IndexError):
        raise BufferUnderflow(f"{cls.__name__} is cut short", len(data)) from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string of {cls.__name__} is not UTF-8: {error.reason}") from None
