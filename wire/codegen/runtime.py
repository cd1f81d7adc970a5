"""What generated source calls off its fast path: long lengths, tagged fields, and the making of errors."""

import struct
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Final

from kquorum.wire.codegen import kinds
from kquorum.wire.errors import BufferUnderflow, DecodeError, TooManyElements, UnsupportedVersion
from kquorum.wire.primitives import MAX_STRING_BYTES, read_uvarint, write_uvarint


def read_length(buffer: bytes, position: int) -> tuple[int, int]:
    """A compact length; -1 stands for null."""
    length_plus_one, position = read_uvarint(buffer, position)
    return length_plus_one - 1, position


def read_text_length(buffer: bytes, position: int) -> tuple[int, int]:
    length, end = read_length(buffer, position)
    if length > MAX_STRING_BYTES:
        raise DecodeError(f"string of {length} bytes is longer than {MAX_STRING_BYTES}", position)
    return length, end


def write_text_length(out: bytearray, length_plus_one: int) -> None:
    if length_plus_one - 1 > MAX_STRING_BYTES:
        raise ValueError(f"string of {length_plus_one - 1} bytes is longer than {MAX_STRING_BYTES}")
    write_uvarint(out, length_plus_one)


def read_long_tag(buffer: bytes, position: int) -> tuple[int, int, int]:
    """The tag and size of a tagged field where one of the two takes more than a byte, and the position of its value."""
    tag, position = read_uvarint(buffer, position)
    size, position = read_uvarint(buffer, position)
    return tag, size, position


def write_tagged(
    out: bytearray, known: list[tuple[int, bytearray]], unknown: Sequence[tuple[int, bytes]]
) -> None:
    """Write the tagged section: known and unknown fields merged in ascending order of their tags."""
    fields: list[tuple[int, bytes | bytearray]] = [*known, *unknown]
    if unknown:
        fields.sort(key=lambda field: field[0])
        tags = [tag for tag, _ in fields]
        if len(set(tags)) != len(tags):
            raise ValueError(f"a tag occurs twice among the tagged fields {tags}")
    write_uvarint(out, len(fields))
    for tag, value in fields:
        if tag < 128 and len(value) < 128:
            out.append(tag)
            out.append(len(value))
        else:
            write_uvarint(out, tag)
            write_uvarint(out, len(value))
        out += value


# A buffer grows up to this size with the record batches of its message; then long batches stand beside it.
MOST_COPIED: Final = 32_768
LEAST_SPLICED: Final = 2_048


class MessageBuffer(bytearray):
    """A message that is being encoded, without its long record batches. These are kept as they are in `spliced`, with
    the number of bytes in front of each, so that they are copied at most once, when the parts are joined."""

    __slots__ = ("spliced",)
    spliced: (
        list[tuple[int, bytes | memoryview]] | None
    )  # None until there is one; set by the caller, as that is faster

    def add_batches(self, data: bytes | memoryview) -> None:
        if len(data) < LEAST_SPLICED or len(self) + len(data) < MOST_COPIED:
            self += data
            return
        if self.spliced is None:
            self.spliced = []
        self.spliced.append((len(self), data))

    def parts(self) -> list[bytes | memoryview]:
        """What the message is made of, in order."""
        parts: list[bytes | memoryview] = []
        start = 0
        for position, data in self.spliced or ():
            parts += (bytes(self[start:position]), data)
            start = position
        parts.append(bytes(self[start:]) if start else bytes(self))
        return parts


class ElementsLeft:
    """How many elements of arrays, and unknown tagged fields, may still be read: a byte can stand for an object a
    hundred times its size. Each thread that reads has a count of its own."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        # [the most that were allowed, those left], of this context, and so of this thread.
        self._counts: ContextVar[list[int]] = ContextVar("elements_left")

    def allow(self, most: int) -> None:
        self._counts.set([most, most])

    @property
    def taken(self) -> int:
        """Since `allow`."""
        most, left = self._counts.get()
        return most - left

    def take(self, count: int, position: int) -> None:
        counts = self._counts.get()
        counts[1] -= count
        if counts[1] < 0:
            raise TooManyElements(
                f"more than {counts[0]} elements of arrays and unknown tagged fields", position
            )


def underflow(needed: int, buffer: bytes, position: int) -> BufferUnderflow:
    return BufferUnderflow(f"{needed} bytes needed, {len(buffer) - position} left", position)


def negative_length(length: int, position: int) -> DecodeError:
    return DecodeError(f"length {length} is negative", position)


def unexpected_null(name: str, position: int) -> DecodeError:
    return DecodeError(f"{name} is null, but may not be", position)


def bad_presence(presence: int, name: str, position: int) -> DecodeError:
    return DecodeError(f"{name} is marked neither present (1) nor null (-1) but {presence}", position)


def bad_tag(tag: int, last_tag: int, size: int, buffer: bytes, position: int) -> DecodeError:
    if tag <= last_tag:
        return DecodeError(
            f"tagged field {tag} follows tagged field {last_tag}, but tags must ascend", position
        )
    return underflow(size, buffer, position)


def wrong_tag_size(tag: int, position: int) -> DecodeError:
    return DecodeError(f"the value of tagged field {tag} does not have the size that was announced", position)


def forbidden_tag(tag: int, version: int, position: int) -> DecodeError:
    return DecodeError(f"tagged field {tag} is not valid in version {version}", position)


def absent_field(entity: object, name: str, version: int) -> UnsupportedVersion:
    return UnsupportedVersion(f"{type(entity).__name__} version {version} has no field {name}, but it is set")


NAMESPACE: Final[Mapping[str, object]] = {
    **kinds.NAMESPACE,
    "read_uvarint": read_uvarint,
    "write_uvarint": write_uvarint,
    "read_length": read_length,
    "read_text_length": read_text_length,
    "write_text_length": write_text_length,
    "read_long_tag": read_long_tag,
    "write_tagged": write_tagged,
    "underflow": underflow,
    "negative_length": negative_length,
    "unexpected_null": unexpected_null,
    "bad_presence": bad_presence,
    "bad_tag": bad_tag,
    "wrong_tag_size": wrong_tag_size,
    "forbidden_tag": forbidden_tag,
    "absent_field": absent_field,
    "new": object.__new__,
    "unpack_array": struct.unpack_from,
    "pack_array": struct.pack,
}
