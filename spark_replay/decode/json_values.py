"""Whether the fields of a dataclass that was read from JSON have the types that they are declared with.

A file from elsewhere may hold anything under any name, and its reader should report what is wrong.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

# What an offset, a size or a time can be; -1 where it is not known.
_LEAST, _MOST = -1, 2**63 - 1


def check_values(read: object) -> None:
    """Raises ValueError, naming the field and what it holds."""
    kind: Any = type(read)
    for name, hint in _hints(kind).items():
        value = getattr(read, name)
        if not _is_of(value, hint):
            raise ValueError(f"{name} is {value!r}")


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_of(value: object, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return any(_is_of(value, each) for each in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(each, arguments[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(
            _is_of(key, arguments[0]) and _is_of(each, arguments[1]) for key, each in value.items()
        )
    if is_dataclass(hint) and isinstance(value, hint):  # type: ignore[arg-type]
        check_values(value)
        return True
    if hint is int:
        return type(value) is int and _LEAST <= value <= _MOST
    return isinstance(value, Enum) if issubclass(hint, Enum) else type(value) is hint
