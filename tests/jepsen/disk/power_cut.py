"""Takes back, after a process was killed, what a power cut would have: the shim's journals, applied."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.jepsen.disk import contents, names
from tests.jepsen.disk.journals import OF_FILE, OF_FOLDER, read_journals
from tests.support.fault_disk_parts import SECTOR_BYTES

JOURNALS, GRAVES, HOLD = "journal", "grave", "hold"


@dataclass
class Lost:
    """For the history: what was not durable, and what of it is gone."""

    tear: bool
    pending_changes: int = 0
    pending_names: int = 0
    names: list[str] = field(default_factory=list)
    files: dict[str, dict[str, int]] = field(default_factory=dict)

    def as_value(self) -> dict[str, Any]:
        return {
            "tear": self.tear,
            "pending-changes": self.pending_changes,
            "pending-names": self.pending_names,
            "names": self.names,
            "files": self.files,
            "bytes-cut": sum(file["bytes-cut"] for file in self.files.values()),
            "sectors-changed": sum(file["sectors-changed"] for file in self.files.values()),
        }


def cut_power(data_folder: Path, state_folder: Path, random_source: Random, *, tear: bool) -> dict[str, Any]:
    """With `tear`, the random source decides what is left of that which was not durable; without, nothing is."""
    lost = Lost(tear)
    chosen_by = random_source if tear else None
    _restore_names(data_folder, state_folder, chosen_by, lost)
    _restore_contents(data_folder, state_folder, chosen_by, lost)
    forget(state_folder)
    return lost.as_value()


def forget(state_folder: Path) -> None:
    """Take all for durable."""
    for name in (JOURNALS, GRAVES, HOLD):
        shutil.rmtree(state_folder / name, ignore_errors=True)
        (state_folder / name).mkdir()


def _folders(root: Path) -> dict[int, Path]:
    """By inode, those deep inside first."""
    found = [Path(path) for path, _folders, _files in os.walk(root, topdown=False)]
    return {path.stat().st_ino: path for path in found}


def _restore_names(root: Path, state: Path, random_source: Random | None, lost: Lost) -> None:
    folders = _folders(root)
    plan = names.Names(state / GRAVES, state / HOLD)
    for journal in read_journals(state / JOURNALS, OF_FOLDER):
        path = folders.get(journal.inode)
        history = names.history_of(journal, {} if path is None else names.entries_of(path))
        target = history.after_power_cut(random_source)
        plan.plan(journal.inode, history, target)
        lost.pending_names += len(history.folder.changes)
        if path is not None:
            entries = history.folder.entries
            changed = [name for name in {**entries, **target} if entries.get(name) != target.get(name)]
            lost.names += [str((path / name).relative_to(root)) for name in sorted(changed)]
    for inode, path in folders.items():
        if path.exists():
            plan.give(inode, path)


def _restore_contents(root: Path, state: Path, random_source: Random | None, lost: Lost) -> None:
    files = {path.lstat().st_ino: path for path in sorted(root.rglob("*")) if _is_file(path)}
    for journal in read_journals(state / JOURNALS, OF_FILE):
        path = files.get(journal.inode)
        if path is None:
            continue
        content = path.read_bytes()
        history = contents.history_of(journal, content)
        left = history.after_power_cut(random_source)
        lost.pending_changes += len(history.pending)
        if left != content:
            lost.files[str(path.relative_to(root))] = _difference(content, left)
            _rewrite(path, left)


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _difference(before: bytes, after: bytes) -> dict[str, int]:
    common = min(len(before), len(after))
    starts = range(0, common, SECTOR_BYTES)
    sectors = [slice(start, min(start + SECTOR_BYTES, common)) for start in starts]
    changed = sum(before[sector] != after[sector] for sector in sectors)
    return {
        "bytes-before": len(before),
        "bytes-after": len(after),
        "bytes-cut": max(0, len(before) - len(after)),
        "sectors-changed": changed,
    }


def _rewrite(path: Path, content: bytes) -> None:
    with _writable(path), path.open("r+b") as file:
        file.write(content)
        file.truncate()


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode | stat.S_IWUSR)
    try:
        yield
    finally:
        path.chmod(mode)
