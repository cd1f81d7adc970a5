"""A file's content and a folder's names on `FaultFileSystem`: as they are read, and as the disk may hold them."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

SECTOR_BYTES = 512
ROOT = -1
# A change of content: bytes at a position, or a new size.
Change = tuple[int, bytes | None]
# A change of names: each gets an inode, or goes. Whole or not at all.
NameChange = tuple[tuple[str, int | None], ...]


@dataclass
class Inode:
    """`data` is what is read, `durable` what the disk surely holds, `changes` what came since."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    changes: list[Change] = field(default_factory=list)
    allocated: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def taken(self) -> int:
        """Bytes of the disk."""
        return max(len(self.data), self.allocated)

    def write(self, position: int, data: bytes) -> None:
        self._do((position, data))

    def truncate(self, size: int) -> None:
        self.allocated = min(self.allocated, size)
        self._do((size, None))

    def allocate(self, size: int) -> None:
        self.allocated = max(self.allocated, size)
        self._do((max(size, self.size), None))

    def _do(self, change: Change) -> None:
        apply(self.data, change)
        self.changes.append(change)

    def sync(self) -> None:
        if self.changes:
            after = bytearray(self.durable)
            for change in self.changes:
                apply(after, change)
            self.durable = bytes(after)
            self.changes.clear()

    def forget_changes(self) -> None:
        """Take for written what was not: only the file's size is as it should be."""
        self.durable = self.durable[: self.size].ljust(self.size, b"\x00")
        self.changes.clear()

    def replace(self, content: bytes) -> None:
        self.data, self.durable = bytearray(content), content
        self.changes.clear()

    def copy(self) -> "Inode":
        return Inode(bytearray(self.data), self.durable, list(self.changes), self.allocated)

    def after_power_cut(self, random_source: Random) -> "Inode":
        content = content_left(self.durable, self.changes, random_source) if self.changes else self.durable
        return Inode(bytearray(content), content)


def apply(content: bytearray, change: Change) -> None:
    position, data = change
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    if data is None:
        del content[position:]
    else:
        content[position : position + len(data)] = data


def content_left(durable: bytes, changes: list[Change], random_source: Random) -> bytes:
    """All, nothing, the changes in order up to somewhere within one of them, or any version of each sector."""
    choice = random_source.random()
    if choice < 0.1:
        return durable
    versions = [bytearray(durable)]
    for change in changes:
        versions.append(bytearray(versions[-1]))
        apply(versions[-1], change)
    if choice < 0.2:
        return bytes(versions[-1])
    if choice < 0.5:
        at = random_source.randrange(len(changes))
        position, data = changes[at]
        torn = versions[at]
        if data is not None:
            apply(torn, (position, data[: random_source.randint(0, len(data))]))
        return bytes(torn)
    return _any_sectors(versions, random_source)


def _any_sectors(versions: list[bytearray], random_source: Random) -> bytes:
    """Each sector as it ever was since the flush, in a file as long as it ever was, or anything between."""
    sizes = [len(version) for version in versions]
    size = (
        random_source.choice(sizes)
        if random_source.random() < 0.5
        else random_source.randint(min(sizes), max(sizes))
    )
    share = random_source.choice((0.0, 0.2, 0.8, 1.0))
    left = bytearray()
    for start in range(0, size, SECTOR_BYTES):
        oldest, newest = versions[0], versions[-1]
        version = (
            newest
            if random_source.random() < share
            else random_source.choice((oldest, random_source.choice(versions)))
        )
        left += version[start : start + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\x00")
    return bytes(left[:size])


@dataclass
class Folder:
    """`entries` is what is found, `durable` what the disk surely holds, `changes` what came since. A name leads to the
    number of a file (positive) or of a folder (negative)."""

    entries: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)
    changes: list[NameChange] = field(default_factory=list)

    def change(self, *names: tuple[str, int | None]) -> None:
        apply_names(self.entries, names)
        self.changes.append(names)

    def sync(self) -> None:
        for change in self.changes:
            apply_names(self.durable, change)
        self.changes.clear()

    def forget_changes(self) -> None:
        self.changes.clear()

    def mentioned(self) -> set[int]:
        changed = {inode for change in self.changes for _name, inode in change if inode is not None}
        return changed | set(self.entries.values()) | set(self.durable.values())

    def copy(self) -> "Folder":
        return Folder(dict(self.entries), dict(self.durable), list(self.changes))

    def after_power_cut(self, random_source: Random) -> "Folder":
        """The first changes, or any of them, or any of them in any order."""
        kept = list(self.changes)
        choice = random_source.random()
        if choice < 0.4:
            kept = kept[: random_source.randint(0, len(kept))]
        else:
            kept = [change for change in kept if random_source.random() < 0.6]
            if choice < 0.7:
                random_source.shuffle(kept)
        entries = dict(self.durable)
        for change in kept:
            apply_names(entries, change)
        return Folder(entries, dict(entries))


def apply_names(entries: dict[str, int], change: NameChange) -> None:
    for name, inode in change:
        if inode is None:
            entries.pop(name, None)
        else:
            entries[name] = inode


@dataclass
class OpenFile:
    """Of a file or of a folder."""

    flags: int
    inode: Inode | None = None
    folder: Path | None = None
    position: int = 0

    @property
    def content(self) -> Inode:
        assert self.inode is not None, "a folder has no content"
        return self.inode
