"""From what a file says to a value: Kafka's comma lists and booleans, beside TOML's own lists and booleans."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_FLAGS = {"true": True, "false": False}


def as_items(value: object) -> tuple[object, ...]:
    """The parts of a comma list or of a TOML list; blanks around and empty parts are dropped."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, Sequence):
        return tuple(value)
    return (value,)


def as_tuple(parse: Callable[[str], T]) -> Callable[[object], object]:
    """A validator that makes a tuple, each string in it parsed; other values pass, already parsed or to be refused."""

    def validate(value: object) -> object:
        return tuple(parse(item) if isinstance(item, str) else item for item in as_items(value))

    return validate


def as_optional(parse: Callable[[str], T]) -> Callable[[object], object]:
    """A validator for one value which may be empty."""

    def validate(value: object) -> object:
        if isinstance(value, str):
            return parse(value) if value.strip() else None
        return value

    return validate


def as_upper_names(value: object) -> object:
    """Listener names, upper-cased as Kafka does."""
    return tuple(item.upper() if isinstance(item, str) else item for item in as_items(value))


def as_flag(value: object) -> object:
    """Only `true` and `false`, in any case; Kafka knows no other words for them."""
    if isinstance(value, str):
        if value.strip().lower() not in _FLAGS:
            raise ValueError(f"{value!r} is neither true nor false")
        return _FLAGS[value.strip().lower()]
    return value


def as_text(value: object) -> str:
    """As a .properties file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.strip() if isinstance(value, str) else ",".join(map(str, as_items(value)))


_CLUSTER_ID = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


def check_cluster_id(text: str) -> str:
    """The id as it is. Kafka takes any text; what no tool makes is a slip, and would be in every folder for good.

    Raises ValueError.
    """
    if _CLUSTER_ID.fullmatch(text) is None:
        raise ValueError(
            f"{text!r} is no cluster id: letters, digits, '.', '_' and '-' are allowed, as in the 22 characters that "
            "`kquorum random-uuid` makes. Folders that are formatted keep theirs: leave cluster.id out for those"
        )
    return text
