"""Encodes and decodes the messages of `wire.messages`, in any version.

Compiled once per class, version and direction from the declarations of `wire.message_schema`. A field that the version
lacks reads as its default. Unknown tagged fields, which a newer peer may lawfully send (KIP-482), are skipped, and an
error code of a newer peer reads as UNKNOWN_SERVER_ERROR.
"""

import struct
from typing import Final, TypeVar

from kquorum.wire.codegen.compiler import Decoder, Encoder, compile_decoder, compile_encoder
from kquorum.wire.codegen.plan import StructPlan
from kquorum.wire.codegen.runtime import ElementsLeft, MessageBuffer
from kquorum.wire.errors import BufferUnderflow, DecodeError
from kquorum.wire.message_schema import Message, plan_of
from kquorum.wire.primitives import Buffer

M = TypeVar("M", bound=Message)
_Key = tuple[type[Message], int]

_ENCODERS: Final[dict[_Key, tuple[Encoder, bool]]] = {}
_DECODERS: Final[dict[_Key, Decoder]] = {}
_BOUNDED: Final[dict[_Key, Decoder]] = {}
_ELEMENTS: Final = ElementsLeft()


def encoder_of(cls: type[Message], version: int) -> tuple[Encoder, bool]:
    """The encoder, and whether the message has record batches. Raises UnsupportedVersion."""
    found = _ENCODERS.get((cls, version))
    if found is None:
        plan = plan_of(cls, version)
        found = _ENCODERS[cls, version] = compile_encoder(plan), _has_records(plan)
    return found


def _has_records(plan: StructPlan) -> bool:
    return any(
        field.kind == "records" or (field.nested is not None and _has_records(field.nested))
        for field in plan.fields
    )


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
    out = _encoded(message, version)
    return b"".join(out.parts()) if type(out) is MessageBuffer and out.spliced else bytes(out)


def encode_parts(message: Message, version: int) -> list[bytes | memoryview]:
    """As `encode`, in pieces to be sent one after the other. Each long record batch is a piece, which is not copied."""
    out = _encoded(message, version)
    return out.parts() if isinstance(out, MessageBuffer) else [bytes(out)]


def _encoded(message: Message, version: int) -> bytearray:
    encoder, has_records = encoder_of(type(message), version)
    out = bytearray()
    if has_records:
        out = MessageBuffer()
        out.spliced = None
    try:
        encoder(message, out)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{type(message).__name__} version {version} cannot be encoded: {error}") from error
    return out


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
