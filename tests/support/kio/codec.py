"""Encodes and decodes kio's entities: requests, responses, headers and the rest, of any API and version.

Compiled once per class from the field metadata of kio's classes. Unknown tagged fields, which a newer peer
may lawfully send (KIP-482), are skipped.
"""

import io
import struct
from typing import Any, Final, TypeVar

from kio.serial import entity_writer

from kquorum.wire.codegen.compiler import Codec, compile_codec
from kquorum.wire.codegen.runtime import ElementsLeft
from kquorum.wire.errors import BufferUnderflow, DecodeError
from kquorum.wire.primitives import Buffer
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.kio.plans import plan_of

E = TypeVar("E")


_CODECS: Final[dict[type[Any], Codec]] = {}
_BOUNDED: Final[dict[type[Any], Codec]] = {}
_ELEMENTS: Final = ElementsLeft()


def codec_of(cls: type[Any]) -> Codec:
    """The compiled codec of a kio class."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = compile_codec(plan_of(cls))
    return codec


def bounded_codec_of(cls: type[Any]) -> Codec:
    """What `decode_bounded` reads with; to be had before the first message comes."""
    codec = _BOUNDED.get(cls)
    if codec is None:
        codec = _BOUNDED[cls] = compile_codec(plan_of(cls), _ELEMENTS)
    return codec


def encode(entity: Any) -> bytes:
    """The bytes of a kio entity, in the version of its class.

    Raises ValueError if a value does not fit its field: that is a mistake of the caller, not of a peer.
    """
    if isinstance(entity, EncodedBody):
        return entity.data
    out = bytearray()
    encode_into(entity, out)
    return bytes(out)


def encode_into(entity: Any, out: bytearray) -> None:
    """Append the bytes of a kio entity to `out`."""
    try:
        codec_of(type(entity)).encode(entity, out)
    except (struct.error, AttributeError, TypeError) as error:
        name = f"{type(entity).__module__}.{type(entity).__name__}"
        raise ValueError(f"{name} cannot be encoded: {error}") from error


def decode(cls: type[E], buffer: Buffer, position: int = 0) -> tuple[E, int]:
    """Read a kio entity of class `cls`; answer it and the position after its last byte.

    Raises DecodeError (BufferUnderflow if the buffer is too short).
    """
    return _decoded(codec_of(cls), cls, buffer, position)


def decode_bounded(cls: type[E], buffer: Buffer, position: int, most_elements: int) -> tuple[E, int]:
    """Like decode, for untrusted input. Raises TooManyElements before it creates any element, if all arrays together,
    nested arrays and unknown tagged fields included, have more elements than `most_elements`."""
    codec = bounded_codec_of(cls)
    _ELEMENTS.allow(most_elements)
    return _decoded(codec, cls, buffer, position)


def elements_read() -> int:
    """How many elements the last `decode_bounded` of this thread has read."""
    return _ELEMENTS.taken


def _decoded(codec: Codec, cls: type[E], buffer: Buffer, position: int) -> tuple[E, int]:
    data = buffer if type(buffer) is bytes else bytes(buffer)
    try:
        return codec.decode(data, position)
    except (struct.error, IndexError):
        raise BufferUnderflow(f"{cls.__name__} is cut short", len(data)) from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string of {cls.__name__} is not UTF-8: {error.reason}") from None


def kio_encode(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()
