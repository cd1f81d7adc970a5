"""Requests with as many entries as fit into few bytes: what an attacker sends for a long answer."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct


def longest_answer(entries: int) -> int:
    """Of a refusal: some fields for each entry, and the reason beside the first ones."""
    return 40 * entries + 100 * 150


def requests_of_many_entries(
    cls: type[Request[Response]], count: int
) -> Iterator[tuple[str, Request[Response]]]:
    """One request for each array of the request, with `count` of its shortest entries, and the array's name."""
    yield from _with_many(cls, count)


def _with_many(cls: type[Struct], count: int) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(cls)
    for field in fields(cls):  # type: ignore[arg-type]
        kind = _entry_type(hints[field.name])
        if kind is None:
            continue
        yield field.name, replace(cls(), **{field.name: tuple(_distinct(kind, count))})  # type: ignore[type-var]
        if issubclass(kind, Struct):
            for name, entry in _with_many(kind, count):
                yield f"{field.name}.{name}", replace(cls(), **{field.name: (entry,)})  # type: ignore[type-var]


def _entry_type(hint: Any) -> type | None:
    """Of an array, which may be nullable."""
    for each in (hint, *get_args(hint)):
        if get_origin(each) is tuple:
            found = get_args(each)[0]
            return found if isinstance(found, type) else None
    return None


def _distinct(kind: type, count: int) -> Iterator[Any]:
    """Answers that name an entry once must not hide the others: what has a name has one of its own."""
    for number in range(count):
        if kind is str:
            yield str(number)
        elif kind is int:
            yield number % 128
        elif not issubclass(kind, Struct):
            yield UUID(int=number) if kind is UUID else kind()
        else:
            names = [name for name, hint in get_type_hints(kind).items() if hint in (str, str | None)]
            yield kind(**{name: str(number) for name in names[:1]})
