"""What a power cut leaves of a folder's names, and how the folder is made to have them."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.jepsen.disk.journals import Journal, Kind, Record
from tests.support.fault_disk_parts import Folder, NameChange, apply_names

Entries = dict[str, int]


def entries_of(folder: Path) -> Entries:
    with os.scandir(folder) as found:
        return {entry.name: entry.inode() for entry in found}


@dataclass
class NamesHistory:
    """`graves` tells where a file is that has lost a name."""

    folder: Folder
    graves: dict[int, int] = field(default_factory=dict)

    def after_power_cut(self, random_source: Random | None) -> Entries:
        """Without a random source nothing of what is pending is left."""
        return (
            self.folder.durable
            if random_source is None
            else self.folder.after_power_cut(random_source).entries
        )


def history_of(journal: Journal, entries: Entries) -> NamesHistory:
    before = dict(entries)
    changes: list[NameChange] = []
    graves: dict[int, int] = {}
    for record in reversed(journal.changes):
        changes.append(_undo(before, record))
        if record.grave:
            graves[record.size if record.kind is Kind.RENAME else record.first] = record.grave
    changes.reverse()
    begin = 0
    for settled in journal.settled:
        if settled.is_synced:
            for change in changes[begin : settled.end]:
                apply_names(before, change)
        begin = max(begin, settled.end)
    pending = [change for change in changes[begin:] if change]
    return NamesHistory(Folder(dict(entries), before, pending), graves)


def _undo(entries: Entries, record: Record) -> NameChange:
    """Take one change back; answers it, or nothing if the process was killed before it."""
    name = record.names[0]
    if record.kind is Kind.APPEAR:
        inode = entries.pop(name, None)
        return () if inode is None else ((name, inode),)
    if record.kind is Kind.VANISH:
        if entries.get(name) == record.first:
            return ()
        entries[name] = record.first
        return ((name, None),)
    target = record.names[1]
    if entries.get(target) != record.first:
        return ()
    del entries[target]
    if record.size:
        entries[target] = record.size
    entries[name] = record.first
    return ((target, record.first), (name, None))


class Names:
    """Gives folders the names they should have; everything that any of them needs is held meanwhile."""

    def __init__(self, graveyard: Path, hold: Path) -> None:
        self._graveyard = graveyard
        self._hold = hold
        self._histories: dict[int, tuple[NamesHistory, Entries]] = {}

    def plan(self, inode: int, history: NamesHistory, target: Entries) -> None:
        self._histories[inode] = (history, target)

    def give(self, inode: int, path: Path) -> None:
        """To the folder of this inode, which is at `path`."""
        planned = self._histories.get(inode)
        if planned is None:
            return
        history, target = planned
        entries = entries_of(path)
        wrong = {name for name, inode in entries.items() if target.get(name) != inode}
        missing = {name: inode for name, inode in target.items() if entries.get(name) != inode}
        places = {inode: path / name for name, inode in entries.items()}
        for wanted in set(missing.values()):
            self._keep(wanted, places.get(wanted), history.graves.get(wanted))
        for name in wrong:
            _remove(path / name)
        for name, wanted in missing.items():
            self._place(wanted, path / name)

    def _keep(self, inode: int, place: Path | None, grave: int | None) -> None:
        held = self._hold / str(inode)
        if place is not None and place.is_dir() and not place.is_symlink():
            place.rename(held)
        elif place is not None or grave is not None:
            source = self._graveyard / str(grave) if place is None else place
            os.link(source, held, follow_symlinks=False)

    def _place(self, inode: int, path: Path) -> None:
        held = self._hold / str(inode)
        if held.is_dir() and not held.is_symlink():
            held.rename(path)
        elif held.exists():
            os.link(held, path, follow_symlinks=False)
        else:
            # A folder that was removed; what was in it has a history of its own.
            path.mkdir()
            self.give(inode, path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
