"""The names of partition folders in a log directory: `TOPIC-PARTITION`, and the three kinds that are set apart.

The last dash separates topic and partition. A folder whose log was removed, copied or not assigned to this broker has
`.UNIQUE-delete`, `.UNIQUE-future` or `.UNIQUE-stray` behind that, where UNIQUE is a random uuid in 32 hex digits.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

NAME_BYTES_MAX: Final = 255
_MARKED: Final = re.compile(r"(?P<plain>.*)\.(?P<unique>[0-9a-fA-F-]+)-(?P<kind>delete|future|stray)")
_INT32_MAX: Final = 2**31 - 1


class FolderKind(enum.Enum):
    CURRENT = ""
    DELETED = "delete"
    FUTURE = "future"
    STRAY = "stray"


@dataclass(frozen=True, slots=True)
class FolderName:
    """`topic` is shortened in the names of deleted and stray folders, where the whole would be too long."""

    topic: str
    partition: int
    kind: FolderKind = FolderKind.CURRENT


def folder_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def marked_folder_name(topic: str, partition: int, kind: FolderKind, unique: UUID) -> str:
    """Raises ValueError for a future folder whose name would be too long, which no topic name makes it."""
    suffix = f"-{partition}.{unique.hex}-{kind.value}"
    room = NAME_BYTES_MAX - len(suffix)
    if kind is FolderKind.FUTURE and len(topic) > room:
        raise ValueError(f"the folder of {topic}-{partition} would have a name of more than {NAME_BYTES_MAX}")
    return topic[:room] + suffix


def parse_folder_name(name: str) -> FolderName:
    """Raises ValueError with the reason."""
    plain, kind = name, FolderKind.CURRENT
    match = _MARKED.fullmatch(name)
    if match is not None:
        plain, kind = match["plain"], FolderKind(match["kind"])
    elif name.endswith(("-delete", "-future", "-stray")):
        raise ValueError(f"{name!r} ends as a folder set apart does, but has no unique part")
    topic, dash, number = plain.rpartition("-")
    if not dash or not topic or not re.fullmatch(r"[0-9]{1,10}", number) or int(number) > _INT32_MAX:
        raise ValueError(f"{name!r} is not TOPIC-PARTITION")
    return FolderName(topic, int(number), kind)
