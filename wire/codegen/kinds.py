"""The fixed-width kinds of field: how `struct` reads each, and the expressions between raw and Python values.

The expressions are templates of generated source; the functions they name are in `NAMESPACE`.
"""

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final
from uuid import UUID

from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.error_codes import ErrorCode

_ZERO_BYTES: Final = bytes(16)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS_PER_DAY: Final = 86_400_000
_LONGEST_MS: Final = dt.timedelta.max // dt.timedelta(milliseconds=1)
_SHORTEST_MS: Final = dt.timedelta.min // dt.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class FixedKind:
    """`layout` is a `struct` format of `size` bytes; "{0}" in the templates stands for the raw or the Python value."""

    layout: str
    size: int
    from_raw: str = "{0}"
    to_raw: str = "{0}"
    zero: object = 0

    @property
    def is_plain(self) -> bool:
        return self.from_raw == "{0}" and self.to_raw == "{0}"


# Topic, directory and incarnation ids recur in message after message, and building a UUID costs ten look-ups.
@lru_cache(maxsize=16384)
def uuid_of(raw: bytes) -> UUID:
    return UUID(bytes=raw)


@lru_cache(maxsize=16384)
def uuids_of(raw: bytes) -> tuple[UUID, ...]:
    """The uuids that stand in `raw` one after the other: the same few lists of directories recur too."""
    return tuple([uuid_of(raw[start : start + 16]) for start in range(0, len(raw), 16)])


def uuid_or_none(raw: bytes) -> UUID | None:
    """kio's reading of a uuid: all zeros is None."""
    return None if raw == _ZERO_BYTES else uuid_of(raw)


@lru_cache(maxsize=1024)
def duration_of(milliseconds: int) -> dt.timedelta:
    """2.7 million years, ahead or back, stand for what is longer: clients lawfully ask for the largest number there
    is."""
    return dt.timedelta(milliseconds=max(_SHORTEST_MS, min(milliseconds, _LONGEST_MS)))


@lru_cache(maxsize=1024)
def milliseconds_of(duration: dt.timedelta) -> int:
    return duration.days * _MS_PER_DAY + duration.seconds * 1000 + round(duration.microseconds / 1000)


def instant_of(milliseconds: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise DecodeError(f"a timestamp of {milliseconds} ms is out of range") from error


def instant_or_none(milliseconds: int) -> dt.datetime | None:
    """kio's reading of a nullable timestamp: -1 is None."""
    return None if milliseconds == -1 else instant_of(milliseconds)


def since_epoch(instant: dt.datetime | None) -> int:
    return -1 if instant is None else milliseconds_of(instant - _EPOCH)


@lru_cache(maxsize=256)
def error_code_of(code: int) -> ErrorCode:
    """A code of a newer Kafka reads as UNKNOWN_SERVER_ERROR, as Kafka's own clients do."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.unknown_server_error


# Arrays of fewer elements than these have a packer of their own for each length.
MOST_PACKED: Final = 16


@cache
def array_packers(length_layout: str, layout: str) -> tuple[Callable[..., bytes], ...]:
    """By the number of elements: what packs an array's length and its elements."""
    return tuple(struct.Struct(f">{length_layout}{count}{layout}").pack for count in range(MOST_PACKED))


@cache
def array_unpackers(layout: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    """By the number of elements: what unpacks an array's elements."""
    return tuple(struct.Struct(f">{count}{layout}").unpack_from for count in range(MOST_PACKED))


_UUID_BYTES = '{0}.int.to_bytes(16, "big")'
FIXED: Final[Mapping[str, FixedKind]] = {
    "bool": FixedKind("?", 1, zero=False),
    "int8": FixedKind("b", 1),
    "int16": FixedKind("h", 2),
    "int32": FixedKind("i", 4),
    "int64": FixedKind("q", 8),
    "uint8": FixedKind("B", 1),
    "uint16": FixedKind("H", 2),
    "uint32": FixedKind("I", 4),
    "uint64": FixedKind("Q", 8),
    "float64": FixedKind("d", 8, zero=0.0),
    "uuid": FixedKind("16s", 16, "uuid_of({0})", _UUID_BYTES, UUID(int=0)),
    "uuid_or_none": FixedKind(
        "16s", 16, "uuid_or_none({0})", f"(ZERO_BYTES if {{0}} is None else {_UUID_BYTES})", None
    ),
    "error_code": FixedKind("h", 2, "error_code_of({0})", zero=None),
    "timedelta_i32": FixedKind("i", 4, "duration_of({0})", "milliseconds_of({0})", dt.timedelta(0)),
    "timedelta_i64": FixedKind("q", 8, "duration_of({0})", "milliseconds_of({0})", dt.timedelta(0)),
    "datetime_i64": FixedKind("q", 8, "instant_of({0})", "since_epoch({0})", _EPOCH),
    "datetime_or_none": FixedKind("q", 8, "instant_or_none({0})", "since_epoch({0})", None),
}

NAMESPACE: Final[Mapping[str, object]] = {
    "uuid_of": uuid_of,
    "uuids_of": uuids_of,
    "uuid_or_none": uuid_or_none,
    "duration_of": duration_of,
    "milliseconds_of": milliseconds_of,
    "instant_of": instant_of,
    "instant_or_none": instant_or_none,
    "since_epoch": since_epoch,
    "ZERO_BYTES": _ZERO_BYTES,
    "error_code_of": error_code_of,
}
