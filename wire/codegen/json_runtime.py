"""What the generated makers of JSON texts call: each turns raw bytes or one value into its text."""

import base64
import math
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final
from uuid import UUID

from kquorum.wire.codegen.kinds import FIXED

INTEGERS: Final = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
# The same short lists of replicas and directories recur in record after record; long ones are not worth the memory.
MOST_KNOWN_BYTES: Final = 256


class Otherwise(Exception):
    """The message is not one that a text is made of directly."""


@lru_cache(maxsize=16384)
def uuid_text(raw: bytes) -> str:
    """Kafka's form of a uuid, without quotes."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def base64_text(raw: bytes) -> str:
    text = base64.b64encode(raw).decode("ascii")
    return f'"{text}"'


def float_text(number: float) -> str:
    """JSON has no word for NaN and infinity: these are strings."""
    return repr(number) if math.isfinite(number) else f'"{number}"'


def value_text(value: object) -> str:
    """The JSON of a field's default."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_text(value)
        case str():
            return encode_basestring(value)
        case bytes():
            return base64_text(value)
        case UUID():
            return f'"{uuid_text(value.bytes)}"'
        case tuple():
            return f"[{','.join(map(value_text, value))}]"
    raise AssertionError(f"no text for the default {value!r}")


@lru_cache(maxsize=32)
def array_texts_of(kind: str) -> tuple[Callable[[bytes], str], Callable[[bytes], str]]:
    """Two functions from the raw bytes of an array of integers or uuids to its text: one that remembers the texts it
    made, and one that does not."""
    made = _uuids_text if kind == "uuid" else _integers_text_of(kind)
    return lru_cache(maxsize=16384)(made), made


def _integers_text_of(kind: str) -> Callable[[bytes], str]:
    layout, size = FIXED[kind].layout, FIXED[kind].size

    def integers_text(raw: bytes) -> str:
        numbers = struct.unpack(f">{len(raw) // size}{layout}", raw)
        return f"[{','.join(map(str, numbers))}]"

    return integers_text


def _uuids_text(raw: bytes) -> str:
    quoted = [f'"{uuid_text(raw[at : at + 16])}"' for at in range(0, len(raw), 16)]
    return f"[{','.join(quoted)}]"


NAMESPACE: Final[Mapping[str, object]] = {
    "Otherwise": Otherwise,
    "quote": encode_basestring,
    "uuid_text": uuid_text,
    "base64_text": base64_text,
    "float_text": float_text,
}
