"""Which files make up a metadata log: found from whatever paths a user points at."""

import hashlib
import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, snapshot_id_of
from kquorum.spark_replay.decode.files import is_regular, scan_resolved
from kquorum.wire.errors import BufferUnderflow, CorruptBatch
from kquorum.wire.record_batch import HEADER_BYTES, MAGIC, read_batch_header
from kquorum.wire.safe_text import safe_text

log = logging.getLogger(__name__)

METADATA_FOLDER = "__cluster_metadata-0"
# In the folder `--out` of `audit build` from before the first table on: it is known for a build's although it failed.
BUILD_MARKER = ".kquorum-audit"
STREAM_FOLDER = ".stream"
AUDIT_MANIFEST = "audit.json"
SEARCH_DEPTH = 4

# Names of folders have at most 255 bytes, and before a source's goes `source=`.
_LONGEST_NAME = 240
_HASH_BYTES = 13
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_SEGMENT = re.compile(r"(\d{20})\.log")
_PARTITION = re.compile(r".+-\d+(\.[0-9a-fA-F-]+-(delete|future|stray))?")
_BESIDE_PARTITIONS = frozenset({"recovery-point-offset-checkpoint", "replication-offset-checkpoint"})
# A batch begins with its base offset.
_OFFSET_BYTES = 8
# What a file system or another program keeps beside logs; the first is root's alone on every ext4 disk.
_NO_LOG_FOLDERS = frozenset({"lost+found"})


class FileKind(StrEnum):
    LOG = "log"
    SNAPSHOT = "snapshot"
    BOOTSTRAP = "bootstrap"


class NoLogFound(Exception):
    """The path holds nothing that looks like a metadata log; the message says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file of a log. `source` names the folder it was found in, for inputs that hold several logs.

    `base_offset` is of a segment's name; `end_offset` (exclusive) and `epoch` are of a snapshot's name. `name` and
    `source` are text that can be printed; `path` opens the file whatever bytes its name is made of.
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

    Ordered by source, segments before snapshots, each by offset. Raises NoLogFound, and OSError where a folder cannot
    be read: a log that may lie in there must not be missed in silence.
    """
    if root.is_file():
        # A link that is named is followed; those in a folder are not.
        return (log_file(root.resolve(), source=source_name(root, root.name)),)
    if not root.is_dir():
        what = "is neither a file nor a folder" if root.exists() else "does not exist"
        raise NoLogFound(f"{printable(str(root))} {what}")
    files = tuple(_files_of_sources(root.resolve()))
    if not files:
        raise NoLogFound(
            _what_of_an_audit(root)
            or f"{printable(str(root))} holds no metadata log: expected {METADATA_FOLDER}/, a folder with one inside, "
            "or files named <20 digits>.log or <20 digits>-<10 digits>.checkpoint"
        )
    return files


def _what_of_an_audit(folder: Path) -> str | None:
    """What is said of a folder of tables; None for any other."""
    name = printable(str(folder))
    if (folder / AUDIT_MANIFEST).is_file():
        return f"{name} holds the tables of an audit, not a log: `kquorum audit` has commands that read it"
    if (folder / BUILD_MARKER).is_file():
        return (
            f"{name} holds an audit that is not finished: wait for the `audit build` that is at work, or, if it was "
            "interrupted or failed, run it again with --overwrite"
        )
    if (folder / STREAM_FOLDER).is_dir():
        return (
            f"{name} holds tables of `audit stream` that are not finished: wait for its first batch, or run it again "
            "with the same --out"
        )
    return None


def log_file(path: Path, *, source: str) -> LogFile:
    """Describe one file by its name; what is named neither segment nor snapshot is read as a segment. `path` is of a
    folder that was resolved before."""
    size = path.lstat().st_size
    absolute, name = str(path), printable(path.name)
    if (snapshot := snapshot_id_of(path.name)) is not None:
        return LogFile(
            path=absolute,
            name=name,
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
        path=absolute, name=name, source=source, kind=kind, size_in_bytes=size, base_offset=base_offset
    )


def files_of_folder(folder: Path, source: str) -> list[LogFile]:
    """The segments and snapshots that lie in `folder` itself, and the bootstrap checkpoint of its node. The path of
    `folder` was resolved before.

    Links, pipes and the like are reported and passed over.

    A file that a running node removes meanwhile is left out, as are those that it is about to remove
    (`*.deleted`), to swap in (`.cleaned`, `.swap`) or has not finished (`.part`), and what it notes of producers
    (`*.snapshot`): none of them has the name of a segment or snapshot.
    """
    with scan_resolved(folder) as entries:
        paths = [folder / entry.name for entry in entries if is_log_name(entry.name)]
    if folder.name == METADATA_FOLDER:
        paths.append(folder.parent / BOOTSTRAP_CHECKPOINT_NAME)
    return sorted(_described(paths, source), key=reading_order)


def is_log_name(name: str) -> bool:
    """Whether a file of this name is a segment or a snapshot."""
    return _SEGMENT.fullmatch(name) is not None or snapshot_id_of(name) is not None


def _first_offset(name: str) -> bytes:
    """The bytes that a file of this name begins with: a snapshot counts from 0."""
    segment = _SEGMENT.fullmatch(name)
    return (0 if segment is None else int(segment[1])).to_bytes(_OFFSET_BYTES, "big")


def reading_order(file: LogFile) -> tuple[bool, int, int]:
    """Segments before snapshots, each by offset."""
    return (file.kind != FileKind.LOG, file.epoch or 0, file.base_offset or file.end_offset or 0)


def metadata_folder_of(log_folder: Path) -> Path:
    """The folder of a node, which has its meta.properties. `log_folder` is the folder in it with the segments."""
    return log_folder.parent if log_folder.name == METADATA_FOLDER else log_folder


def printable(name: str) -> str:
    """A name of the file system as text: bytes that are no UTF-8, and what a terminal would obey, are spelled out."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return safe_text(text)


def source_name(folder: Path, text: str) -> str:
    """`text` (a path) as the name of a source, which names folders of the audit too.

    What is too long for these, or means "no value" there, gets a hash of the folder's path.
    """
    name = printable(text) or "/"
    if name != _HIVE_NULL and sum(map(_escaped_bytes, name)) <= _LONGEST_NAME:
        return name
    kept = name
    while sum(map(_escaped_bytes, kept)) > _LONGEST_NAME - _HASH_BYTES:
        kept = kept[1:]
    return hashed_name(folder, kept)


def hashed_name(folder: Path, name: str) -> str:
    """`name`, told apart from the same name of another folder."""
    return f"{name}~{hashlib.sha256(os.fsencode(folder)).hexdigest()[: _HASH_BYTES - 1]}"


def distinct_names(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """Of folders whose names look the same (`printable`) only one that is spelled so keeps it."""
    counts = Counter(wanted.values())
    return {
        folder: name
        if counts[name] == 1 or os.fsencode(folder).endswith(os.fsencode(name))
        else hashed_name(folder, name)
        for folder, name in wanted.items()
    }


def _escaped_bytes(character: str) -> int:
    """At most, in the name of a folder."""
    return max(1 if character.isalnum() else 3, len(character.encode()))


def _described(paths: list[Path], source: str) -> Iterator[LogFile]:
    for path in paths:
        try:
            if is_regular(path):
                yield log_file(path, source=source)
            else:
                _report_passed_over(path)
        except FileNotFoundError:
            continue


def _files_of_sources(root: Path) -> Iterator[LogFile]:
    folders = sorted(_log_folders(root, SEARCH_DEPTH))
    wanted = {metadata_folder_of(folder): _source_name(root, folder) for folder in folders}
    names = distinct_names(wanted)
    for folder in folders:
        yield from files_of_folder(folder, names[metadata_folder_of(folder)])


def _log_folders(folder: Path, depth: int) -> Iterator[Path]:
    """Folders which hold segments or snapshots, not looked for below one that does. Links to folders are reported and
    passed over."""
    if _holds_log(folder):
        yield folder
    elif depth > 0:
        with scan_resolved(folder) as entries:
            listed = [each for each in entries if not each.name.startswith(".")]
        found = [each for each in listed if _may_be_folder(each)]
        if any(each.name in _BESIDE_PARTITIONS for each in listed):
            # A broker's log directory: what has a partition's name is one, also without the partition.metadata that
            # Kafka writes since 2.8.
            found = [
                each for each in found if each.name == METADATA_FOLDER or not _PARTITION.fullmatch(each.name)
            ]
        for entry in sorted(found, key=lambda each: each.name):
            if entry.is_symlink():
                _report_passed_over(folder / entry.name)
            elif entry.name not in _NO_LOG_FOLDERS:
                yield from _log_folders(folder / entry.name, depth - 1)


def _holds_log(folder: Path) -> bool:
    is_metadata_log = folder.name == METADATA_FOLDER
    with scan_resolved(folder) as entries:
        names = {entry.name for entry in entries if is_metadata_log or entry.is_file(follow_symlinks=False)}
    return holds_log(folder.name, names)


def holds_log(folder_name: str, file_names: Collection[str]) -> bool:
    """Whether a folder of these files is a metadata log.

    A topic's partition folder has segments of the same names; only the metadata log has snapshots beside them.
    """
    if folder_name != METADATA_FOLDER and "partition.metadata" in file_names:
        return any(snapshot_id_of(name) for name in file_names) or "quorum-state" in file_names
    return any(is_log_name(name) for name in file_names)


@lru_cache(maxsize=1024)
def _report_passed_over(path: Path) -> None:
    """Once for each link, pipe or the like; a folder with the name of a file is left to `log verify`. Raises
    FileNotFoundError."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        log.warning("%s is passed over: it is a symbolic link; name what it leads to", printable(str(path)))
    elif not stat.S_ISDIR(mode):
        log.warning("%s is passed over: it is no regular file", printable(str(path)))


def _may_be_folder(entry: os.DirEntry[str]) -> bool:
    """True for a link as well that leads to a folder, or to a place that cannot be looked at."""
    try:
        return entry.is_dir()
    except OSError:
        return True


def _source_name(root: Path, folder: Path) -> str:
    """The metadata folder relative to the root, or its own name where the root is that folder or the log itself."""
    metadata_folder = metadata_folder_of(folder)
    if root in (folder, metadata_folder):
        return source_name(metadata_folder, metadata_folder.name)
    return source_name(metadata_folder, str(metadata_folder.relative_to(root)))


# The logs of several paths at once: the folders of the voters of one quorum, an archive, files given by name.


def find_log_files_of(roots: Sequence[Path | str]) -> tuple[LogFile, ...]:
    """The log files of all `roots`, each once, in the order of `find_log_files`; every log has a name of its own.

    Files named one by one belong together if they lie in one folder. Raises NoLogFound, also for the address of an
    object store (`spark_replay.remote` makes paths of those), and OSError.
    """
    paths = [_local(root) for root in roots]
    if len(paths) == 1:
        return find_log_files(paths[0])
    logs: dict[Path, list[LogFile]] = {}
    known = set[str]()
    for path in paths:
        for file in _files_of(path):
            if file.path not in known:
                known.add(file.path)
                logs.setdefault(_folder_of(file), []).append(file)
    names = _distinct({folder: _wanted_name(files) for folder, files in logs.items()})
    files = [replace(file, source=names[folder]) for folder in logs for file in logs[folder]]
    return tuple(sorted(files, key=lambda file: (file.source, reading_order(file))))


def is_remote(path: Path | str) -> bool:
    """Whether a path names a file system, as in `s3a://bucket/archive`: Hadoop's, read through Spark."""
    scheme, found, _ = str(path).partition("://")
    return bool(found) and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()


def _local(root: Path | str) -> Path:
    if is_remote(root):
        raise NoLogFound(f"{root} is no path of this machine: it is read through Spark, by `audit build`")
    return Path(root)


def _files_of(path: Path) -> Iterable[LogFile]:
    """Of a file named alone the folder is its source, which further files may come from."""
    if not path.is_file():
        return find_log_files(path)
    node = metadata_folder_of(path.resolve().parent)
    return (log_file(path.resolve(), source=source_name(node, node.name)),)


def _folder_of(file: LogFile) -> Path:
    """The bootstrap checkpoint lies beside the folder of the log."""
    return metadata_folder_of(Path(file.path).parent)


def _wanted_name(files: list[LogFile]) -> str:
    return files[0].source


def _distinct(wanted: dict[Path, str]) -> dict[Path, str]:
    """Folders that would have one name get the paths from the folder that they have in common."""
    names = dict[Path, str]()
    by_name = sorted(wanted, key=lambda folder: (wanted[folder], folder))
    for name, group in groupby(by_name, key=lambda folder: wanted[folder]):
        folders = list(group)
        if len(folders) == 1:
            names[folders[0]] = name
            continue
        common = os.path.commonpath(folders)
        names |= {folder: source_name(folder, os.path.relpath(folder, common)) for folder in folders}
    if len(set(names.values())) < len(names):
        return distinct_names({folder: source_name(folder, str(folder)) for folder in wanted})
    dotless = {
        folder: source_name(folder, folder.name) if name == "." else name for folder, name in names.items()
    }
    return distinct_names(dotless)


# Tells a file that is no log at all from a log that is damaged: the first is the user's slip, the second a finding.

_MAGIC_POSITION = 16


def why_not_a_log(name: str, buffer: memoryview) -> str | None:
    """What shows that the file `name` is not a Kafka log or snapshot; None if it is one, however damaged."""
    if len(buffer) == 0:
        return None if is_log_name(name) else "it is empty"
    if not any(bytes(buffer[:HEADER_BYTES])):
        return None if is_log_name(name) else "it begins with zeros"
    try:
        read_batch_header(buffer)
    except CorruptBatch as error:
        begins_as_named = is_log_name(name) and bytes(buffer[:_OFFSET_BYTES]) == _first_offset(name)
        return None if begins_as_named else f"it does not begin with a record batch ({error.reason})"
    except BufferUnderflow as error:
        has_magic = len(buffer) > _MAGIC_POSITION and buffer[_MAGIC_POSITION] == MAGIC
        may_be_torn = is_log_name(name) and (has_magic or len(buffer) <= _MAGIC_POSITION)
        return None if may_be_torn else f"it is too short for one record batch ({error.reason})"
    return None
