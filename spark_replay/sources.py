"""Which files make up a metadata log: found from whatever path a user points at."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, snapshot_id_of

METADATA_FOLDER = "__cluster_metadata-0"
SEARCH_DEPTH = 4

_SEGMENT = re.compile(r"(\d{20})\.log")


class FileKind(StrEnum):
    LOG = "log"
    SNAPSHOT = "snapshot"
    BOOTSTRAP = "bootstrap"


class NoLogFound(Exception):
    """The path holds nothing that looks like a metadata log; the message says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file of a log. `source` names the folder it was found in, for inputs that hold several logs.

    `base_offset` is of a segment's name; `end_offset` (exclusive) and `epoch` are of a snapshot's name.
    """

    path: str
    name: str
    source: str
    kind: FileKind
    size_in_bytes: int
    base_offset: int | None = None
    end_offset: int | None = None
    epoch: int | None = None

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """What `dataclasses.asdict` made, after a way through JSON."""
        return cls(**{**fields, "kind": FileKind(fields["kind"])})


def find_log_files(root: Path) -> tuple[LogFile, ...]:
    """The log files of a metadata folder, of `__cluster_metadata-0` itself, of one file, or of a folder of several.

    Ordered by source, segments before snapshots, each by offset. Raises NoLogFound.
    """
    if root.is_file():
        return (log_file(root, source=root.name),)
    if not root.is_dir():
        raise NoLogFound(f"{root} does not exist")
    files = tuple(_files_of_sources(root.resolve()))
    if not files:
        raise NoLogFound(
            f"{root} holds no metadata log: expected {METADATA_FOLDER}/, a folder with one inside, "
            "or files named <20 digits>.log or <20 digits>-<10 digits>.checkpoint"
        )
    return files


def log_file(path: Path, *, source: str) -> LogFile:
    """Describe one file by its name; what is named neither segment nor snapshot is read as a segment."""
    size = path.stat().st_size
    absolute = str(path.resolve())
    if (snapshot := snapshot_id_of(path.name)) is not None:
        return LogFile(
            path=absolute,
            name=path.name,
            source=source,
            kind=FileKind.SNAPSHOT,
            size_in_bytes=size,
            end_offset=snapshot.end_offset,
            epoch=snapshot.epoch,
        )
    kind = FileKind.BOOTSTRAP if path.name == BOOTSTRAP_CHECKPOINT_NAME else FileKind.LOG
    match = _SEGMENT.fullmatch(path.name)
    base_offset = int(match[1]) if match else None
    return LogFile(
        path=absolute, name=path.name, source=source, kind=kind, size_in_bytes=size, base_offset=base_offset
    )


def _files_of_sources(root: Path) -> Iterator[LogFile]:
    for folder in sorted(_log_folders(root, SEARCH_DEPTH)):
        yield from _files_of_folder(folder, _source_name(root, folder))


def _log_folders(folder: Path, depth: int) -> Iterator[Path]:
    """Folders which hold segments or snapshots, not looked for below one that does."""
    if _holds_log(folder):
        yield folder
    elif depth > 0:
        for child in folder.iterdir():
            if child.is_dir() and not child.name.startswith("."):
                yield from _log_folders(child, depth - 1)


def _holds_log(folder: Path) -> bool:
    if folder.name == METADATA_FOLDER:
        return any(is_log_name(path.name) for path in folder.iterdir())
    # A topic's partition folder has segments of the same names; only the metadata log has snapshots beside them.
    names = [path.name for path in folder.iterdir() if path.is_file()]
    if (folder / "partition.metadata").exists():
        return any(snapshot_id_of(name) for name in names) or "quorum-state" in names
    return any(is_log_name(name) for name in names)


def is_log_name(name: str) -> bool:
    """Whether a file of this name is a segment or a snapshot."""
    return _SEGMENT.fullmatch(name) is not None or snapshot_id_of(name) is not None


def _source_name(root: Path, folder: Path) -> str:
    """The metadata folder relative to the root, or its own name where the root is that folder or the log itself."""
    metadata_folder = folder.parent if folder.name == METADATA_FOLDER else folder
    if root in (folder, metadata_folder):
        return metadata_folder.name
    return str(metadata_folder.relative_to(root))


def _files_of_folder(folder: Path, source: str) -> list[LogFile]:
    paths = [path for path in folder.iterdir() if path.is_file() and is_log_name(path.name)]
    if folder.name == METADATA_FOLDER and (bootstrap := folder.parent / BOOTSTRAP_CHECKPOINT_NAME).is_file():
        paths.append(bootstrap)
    return sorted((log_file(path, source=source) for path in paths), key=_reading_order)


def _reading_order(file: LogFile) -> tuple[bool, int, int]:
    return (file.kind != FileKind.LOG, file.epoch or 0, file.base_offset or file.end_offset or 0)
