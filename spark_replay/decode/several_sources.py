"""The logs of several paths at once: the folders of the voters of one quorum, an archive, files given by name."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from kquorum.spark_replay.sources import (
    LogFile,
    NoLogFound,
    distinct_names,
    find_log_files,
    log_file,
    metadata_folder_of,
    reading_order,
    source_name,
)


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
