"""Snapshots in a folder: written beside, made durable, then given their name at once."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from snapshots.naming import (
    BOOTSTRAP_CHECKPOINT_NAME,
    CHECKPOINT_SUFFIX,
    DELETED_SUFFIX,
    PART_SUFFIX,
    SnapshotId,
    snapshot_id_of,
)
from snapshots.reader import SnapshotReader
from wire.errors import DecodeError


class SnapshotFileError(Exception):
    """A file of this folder is not the snapshot that it should be."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class SnapshotFolder:
    """The snapshots in the folder of the metadata log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> tuple[SnapshotId, ...]:
        """All finished snapshots, oldest first."""
        found = (snapshot_id_of(path.name) for path in self._folder.iterdir())
        return tuple(sorted((each for each in found if each is not None), key=lambda each: each.order))

    def latest(self) -> SnapshotId | None:
        snapshots = self.list()
        return snapshots[-1] if snapshots else None

    def path(self, snapshot_id: SnapshotId) -> Path:
        return self._folder / snapshot_id.file_name

    def read(self, snapshot_id: SnapshotId) -> SnapshotReader:
        """Raises SnapshotFileError when the file does not begin like a snapshot; OSError when there is none."""
        path = self.path(snapshot_id)
        try:
            return SnapshotReader(path.read_bytes())
        except DecodeError as error:
            raise SnapshotFileError(path, str(error)) from None

    def write(self, snapshot_id: SnapshotId, batches: Iterable[bytes]) -> Path:
        """Durable on return; a snapshot that exists already is left as it is. The file is read-only."""
        path = self.path(snapshot_id)
        if not path.exists():
            name = path.name.removesuffix(CHECKPOINT_SUFFIX)
            part = self._folder / f"{name}-{secrets.token_hex(8)}{PART_SUFFIX}"
            _write_durably(path, part, batches)
        return path

    def remove_leftovers(self) -> tuple[Path, ...]:
        """Delete what a crash left half written or half deleted; answers what was there."""
        leftovers = tuple(
            path
            for path in sorted(self._folder.iterdir())
            if path.name.endswith((PART_SUFFIX, DELETED_SUFFIX))
        )
        for path in leftovers:
            path.unlink()
        return leftovers


def write_bootstrap_file(folder: Path, content: bytes) -> Path:
    """Put `bootstrap.checkpoint` into a data folder; durable on return."""
    path = folder / BOOTSTRAP_CHECKPOINT_NAME
    _write_durably(path, folder / f"{path.name}.tmp", [content], mode=0o644)
    return path


def _write_durably(path: Path, part: Path, chunks: Iterable[bytes], mode: int = 0o444) -> None:
    try:
        with part.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(mode)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Without this a rename may be lost with the power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
