"""The shim's journals, as a killed process left them (journal.c has the format)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

_MAGIC = 0x4A44514B
_HEADER = struct.Struct("<QQQQQ")
_RECORD = struct.Struct("<IIQQQQQ")
OF_FILE, OF_FOLDER = "f", "d"


class Kind(IntEnum):
    WRITE = 1
    RESIZE = 2
    APPEAR = 3
    VANISH = 4
    RENAME = 5
    SYNCED = 6
    FAILED = 7

    @property
    def is_mark(self) -> bool:
        return self in (Kind.SYNCED, Kind.FAILED)


@dataclass(frozen=True, slots=True)
class Record:
    """`position` is where it stands in its journal; the rest as journal.c says."""

    position: int
    kind: Kind
    first: int
    second: int
    size: int
    grave: int
    data: bytes

    @property
    def names(self) -> list[str]:
        return [name.decode("utf-8", "surrogateescape") for name in self.data.split(b"\0")[:-1]]


@dataclass(frozen=True, slots=True)
class Settled:
    """So many of the changes, from where the last flush ended, were flushed, or lost by a flush that failed."""

    end: int
    is_synced: bool


@dataclass(frozen=True, slots=True)
class Journal:
    inode: int
    changes: list[Record]
    settled: list[Settled]


def read_journals(folder: Path, kind: str) -> Iterator[Journal]:
    for path in sorted(folder.glob(f"{kind}[0-9]*")):
        yield _journal(int(path.name[1:]), list(_records(path.read_bytes())))


def _journal(inode: int, records: list[Record]) -> Journal:
    changes = [record for record in records if not record.kind.is_mark]
    settled = [
        Settled(sum(change.position < mark.first for change in changes), mark.kind is Kind.SYNCED)
        for mark in records
        if mark.kind.is_mark
    ]
    return Journal(inode, changes, settled)


def _records(content: bytes) -> Iterator[Record]:
    """Without half a record at the end: what it was to undo was never done."""
    if len(content) < _HEADER.size:
        return
    position = _HEADER.unpack_from(content)[2]
    while position + _RECORD.size <= len(content):
        magic, kind, length, first, second, size, grave = _RECORD.unpack_from(content, position)
        assert magic == _MAGIC, f"no record at {position}"
        end = position + length
        if end > len(content):
            return
        data = content[position + _RECORD.size : end]
        yield Record(position, Kind(kind), first, second, size, grave, data)
        position = end
