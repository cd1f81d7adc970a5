"""A disk whose every write, flush and rename in one folder is recorded, and what a power cut may leave of them.

The model, no kinder than POSIX: content is sure once its file was flushed, names once their folder was. Of what came
after, the disk holds what it likes: some sectors and not others (these read as zeros where the file was shorter
before), a file that ends anywhere between, and names changed or not, in order or not.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

SECTOR_BYTES = 512
FOLDER = -2


@dataclass(frozen=True)
class Event:
    """`kind` is write, truncate or sync of an `inode`, or create, rename, unlink or sync_names of names."""

    kind: str
    inode: int = -1
    position: int = 0
    data: bytes = b""
    name: str = ""
    target: str = ""


@dataclass
class RecordedDisk:
    """`on_call` hears of every call (by its name) before it is made, and may raise in its place."""

    folder: Path
    events: list[Event] = field(default_factory=list)
    on_call: Callable[[str], None] = lambda _call: None
    inodes: dict[str, int] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    descriptors: dict[int, int] = field(default_factory=dict)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Have the real calls go on, recorded, for the files of this folder."""
        notes: dict[str, Callable[..., None]] = {
            "open": self._note_open,
            "close": lambda _result, descriptor: self.descriptors.pop(descriptor, None),
            "write": self._note_write,
            "pwrite": self._note_pwrite,
            "ftruncate": self._note_truncate,
            "fsync": self._note_sync,
            "fdatasync": self._note_sync,
            "rename": self._note_rename,
            "replace": self._note_rename,
            "unlink": self._note_unlink,
        }
        for name, note in notes.items():
            patch.setattr(os, name, self._wrapped(name, getattr(os, name), note))

    def _wrapped(self, name: str, real: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.on_call(name)
            result = real(*args, **options)
            note(result, *args)
            return result

        return call

    def _note_open(self, descriptor: int, path: str | Path, flags: int, *_: object) -> None:
        place = Path(path)
        if place == self.folder:
            self.descriptors[descriptor] = FOLDER
        if place.parent != self.folder:
            return
        if place.name not in self.inodes:
            inode = len([event for event in self.events if event.kind == "create"])
            self.inodes[place.name] = inode
            self.events.append(Event("create", inode, name=place.name))
        inode = self.descriptors[descriptor] = self.inodes[place.name]
        if flags & os.O_TRUNC:
            self.events.append(Event("truncate", inode))
        self.positions[descriptor] = os.fstat(descriptor).st_size

    def _note_write(self, written: int, descriptor: int, data: bytes) -> None:
        if descriptor in self.descriptors:
            position = self.positions[descriptor]
            self._note_pwrite(written, descriptor, data, position)
            self.positions[descriptor] = position + written

    def _note_pwrite(self, written: int, descriptor: int, data: bytes, position: int) -> None:
        if descriptor in self.descriptors:
            inode = self.descriptors[descriptor]
            self.events.append(Event("write", inode, position, bytes(data[:written])))

    def _note_truncate(self, _result: None, descriptor: int, size: int) -> None:
        if descriptor in self.descriptors:
            self.events.append(Event("truncate", self.descriptors[descriptor], size))
            self.positions[descriptor] = size

    def _note_sync(self, _result: None, descriptor: int) -> None:
        inode = self.descriptors.get(descriptor)
        if inode is not None:
            self.events.append(Event("sync_names") if inode == FOLDER else Event("sync", inode))

    def _note_rename(self, _result: object, path: Path, target: Path) -> None:
        if Path(path).parent == self.folder:
            name, new_name = Path(path).name, Path(target).name
            self.inodes[new_name] = self.inodes.pop(name)
            self.events.append(Event("rename", name=name, target=new_name))

    def _note_unlink(self, _result: None, path: Path, *_: object) -> None:
        if Path(path).parent == self.folder and self.inodes.pop(Path(path).name, None) is not None:
            self.events.append(Event("unlink", name=Path(path).name))

    def after_power_cut(self, count: int, dice: Random, target: Path) -> None:
        """Make `target` what the disk may hold when the power goes after the first `count` events."""
        events = self.events[:count]
        target.mkdir()
        for name, inode in names_left(events, dice).items():
            own = [event for event in events if event.inode == inode and event.kind != "create"]
            (target / name).write_bytes(content_left(own, dice))


def names_left(events: list[Event], dice: Random) -> dict[str, int]:
    changes = [event for event in events if event.kind in ("create", "rename", "unlink", "sync_names")]
    sure = max((at + 1 for at, event in enumerate(changes) if event.kind == "sync_names"), default=0)
    unsure = changes[sure:]
    if dice.random() < 0.5:
        unsure = unsure[: dice.randint(0, len(unsure))]
    else:
        unsure = [event for event in unsure if dice.random() < 0.5]
    names: dict[str, int] = {}
    for event in changes[:sure] + unsure:
        if event.kind == "create":
            names[event.name] = event.inode
        elif event.kind == "rename" and event.name in names:
            names[event.target] = names.pop(event.name)
        elif event.kind == "unlink":
            names.pop(event.name, None)
    return names


def content_left(events: list[Event], dice: Random) -> bytes:
    sure = max((at + 1 for at, event in enumerate(events) if event.kind == "sync"), default=0)
    before = applied(events[:sure])
    after = applied(events[: dice.randint(sure, len(events))])
    if after[: len(before)] != before or len(after) == len(before):
        # A cut, or a write in place (of less than a sector): done or not.
        return dice.choice((before, after))
    kept_size = dice.randint(len(before), len(after)) if dice.random() < 0.5 else len(after)
    left = bytearray(before.ljust(len(after), b"\x00"))
    share = dice.choice((0.0, 0.2, 0.8, 1.0))
    for position in range(len(before) // SECTOR_BYTES * SECTOR_BYTES, len(after), SECTOR_BYTES):
        if dice.random() < share:
            left[position : position + SECTOR_BYTES] = after[position : position + SECTOR_BYTES]
    return bytes(left[:kept_size])


def applied(events: list[Event]) -> bytes:
    content = bytearray()
    for event in events:
        if event.kind == "truncate":
            del content[event.position :]
            content.extend(bytes(event.position - len(content)))
        elif event.kind == "write":
            content.extend(bytes(max(0, event.position - len(content))))
            content[event.position : event.position + len(event.data)] = event.data
    return bytes(content)
