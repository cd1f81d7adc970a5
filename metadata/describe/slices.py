"""Answers that are as long as the cluster has ACLs, users, quotas or names: made in slices.

A describe handler gives the elements of the answer's array one after the other, with a None after each slice of work
(`ordered` does so). `encoded_in_slices` encodes them as they come.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeVar

from kquorum.metadata.describe.describe_request import not_counted
from kquorum.wire import message_codec
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.arrays import array_length
from kquorum.wire.protocol.headers import EncodedBody

# Items of a slice, which takes some milliseconds.
AT_ONCE: Final = 300
_NO_TAGS_BYTES: Final = 1

Item = TypeVar("Item")
# None after each slice of work.
Steps = Iterator[Item | None]


@dataclass(frozen=True, slots=True)
class Elements:
    """An answer whose last field is an array: `empty` is the response without any element, `name` the field."""

    empty: Response
    name: str
    steps: Steps[Any]


def ordered(
    items: Iterable[Item], *, key: Callable[[Item], Any], is_wanted: Callable[[Item], bool] | None = None
) -> Steps[Item]:
    """What is wanted of the items, sorted; a None after each `AT_ONCE` that were looked at, and that were given."""
    left, runs = iter(items), list[list[Item]]()
    while some := list(islice(left, AT_ONCE)):
        runs.append(sorted(some if is_wanted is None else filter(is_wanted, some), key=key))
        if len(some) == AT_ONCE:
            yield None
    for number, item in enumerate(heapq.merge(*runs, key=key), 1):
        yield item
        if number % AT_ONCE == 0:
            yield None


def encoded_in_slices(
    answer: Response | Elements, version: int, note_made: Callable[[int], object] = not_counted
) -> Iterator[EncodedBody | None]:
    """None after each slice of work, and last the response. `note_made` is called with the number of bytes that a slice
    has made."""
    if not isinstance(answer, Elements):
        yield EncodedBody(message_codec.encode(answer, version))
        return
    is_flexible = answer.empty.is_flexible(version)
    empty = message_codec.encode(replace(answer.empty, **{answer.name: ()}), version)  # type: ignore[type-var]
    end_bytes = _NO_TAGS_BYTES if is_flexible else 0
    start = empty[: len(empty) - end_bytes - len(array_length(0, is_flexible=is_flexible))]
    end = empty[len(empty) - end_bytes :]

    def encoded(elements: list[Any]) -> bytes:
        response = replace(answer.empty, **{answer.name: tuple(elements)})  # type: ignore[type-var]
        begin = len(start) + len(array_length(len(elements), is_flexible=is_flexible))
        body = message_codec.encode(response, version)
        return body[begin : len(body) - end_bytes]

    parts, some, count = list[bytes](), list[Any](), 0
    for element in answer.steps:
        if element is not None:
            some.append(element)
            continue
        if some:
            parts.append(encoded(some))
            note_made(len(parts[-1]))
            count += len(some)
            some = []
        yield None
    parts.append(encoded(some))
    count += len(some)
    yield EncodedBody(b"".join((start, array_length(count, is_flexible=is_flexible), *parts, end)))
