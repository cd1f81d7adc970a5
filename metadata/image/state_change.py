"""A difference between two images as a value: what is it about, and which of its fields are others now."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from metadata.image.cluster import Endpoint, SupportedFeature
from wire.uuids import uuid_to_text

Plain = None | bool | int | float | str | tuple["Plain", ...]
_K = TypeVar("_K")
_V = TypeVar("_V")

WITHHELD = "(withheld)"


class StateKind(StrEnum):
    """In the order in which they are shown."""

    QUORUM = "quorum"
    FEATURE = "feature"
    BROKER = "broker"
    CONTROLLER = "controller"
    TOPIC = "topic"
    PARTITION = "partition"
    CONFIG = "config"
    CLIENT_QUOTA = "client quota"
    PRODUCER_IDS = "producer ids"
    ACL = "acl"
    SCRAM = "scram credential"
    DELEGATION_TOKEN = "delegation token"  # noqa: S105 - a kind's name


class Action(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """None stands for a field of something that is not there; secrets are told as WITHHELD on either side."""

    name: str
    before: Plain
    after: Plain


@dataclass(frozen=True, slots=True)
class StateChange:
    """`keys` name the subject for programs, `subject` for people."""

    kind: StateKind
    action: Action
    subject: str
    keys: tuple[tuple[str, Plain], ...]
    fields: tuple[FieldChange, ...]


def plain(value: object) -> Plain:
    """Ids, endpoints and supported features as text; tuples stay tuples."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case UUID():
            return uuid_to_text(value)
        case Endpoint():
            return f"{value.name}://{value.host}:{value.port}"
        case SupportedFeature():
            return f"{value.name} {value.min_supported_version}-{value.max_supported_version}"
        case tuple() | list():
            return tuple(plain(item) for item in value)
    return str(value)


def field_changes(
    before: object | None, after: object | None, names: tuple[str, ...]
) -> tuple[FieldChange, ...]:
    """The fields of these names that differ; where one side is missing, all that are set on the other."""
    found = []
    for name in names:
        old = None if before is None else getattr(before, name)
        new = None if after is None else getattr(after, name)
        is_told = old != new if before is not None and after is not None else (old or new) not in (None, ())
        if is_told:
            found.append(FieldChange(name, plain(old), plain(new)))
    return tuple(found)


def action_of(before: object | None, after: object | None) -> Action:
    return Action.ADDED if before is None else Action.REMOVED if after is None else Action.CHANGED


def differing(
    before: Mapping[_K, _V], after: Mapping[_K, _V], order: Callable[[_K], Any]
) -> Iterator[tuple[_K, _V | None, _V | None]]:
    """(key, value before, value after) of each key whose values differ, sorted."""
    if before is after:
        return
    keys = {key for key, value in before.items() if after.get(key) != value}
    keys |= {key for key in after if key not in before}
    for key in sorted(keys, key=order):
        yield key, before.get(key), after.get(key)
