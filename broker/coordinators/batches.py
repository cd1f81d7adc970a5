"""Many records of a coordinator, in as many batches as the log takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from kquorum.broker.coordinators.answers import KeyValue

T = TypeVar("T")
_RECORDS: Final = 500
_BYTES: Final = 128 * 1024


def in_batches(items: Iterable[T], bytes_of: Callable[[T], int]) -> Iterator[list[T]]:
    """In their order. Each becomes a record. Records are counted and measured: clients choose the ids in their keys."""
    part: list[T] = []
    size = 0
    for item in items:
        more = bytes_of(item)
        if part and (len(part) == _RECORDS or size + more > _BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part


def record_bytes(record: KeyValue) -> int:
    key, value = record
    return len(key) + len(value or b"")
