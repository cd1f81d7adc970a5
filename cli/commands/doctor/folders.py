"""The folders of nodes on this machine: a quick check of what is in them, and how fast their logs grow.

`--deep` reads every batch, as `kquorum log verify` does.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kquorum.cli.commands.doctor.facts import Space
from kquorum.cli.commands.doctor.findings import Check, Finding, Severity
from kquorum.cli.commands.log.files import find_logs
from kquorum.cli.commands.log.partition_log import PartitionCheck, partition_folders
from kquorum.cli.commands.log.verification import verify_log
from kquorum.cli.failures import CliError
from kquorum.metadata.log_check.findings import Severity as CheckSeverity
from kquorum.node.config.model import NodeConfig
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from kquorum.raft.adapters.quorum_state_file import decode_quorum_state
from kquorum.storage.corruption_marker import FILE_NAME as CORRUPTION_MARKER
from kquorum.storage.meta_properties import FILE_NAME as META_PROPERTIES
from kquorum.storage.meta_properties import decode_meta_properties

_METADATA_FOLDER: Final = "__cluster_metadata-0"
_DAMAGED: Final = ".damaged"
_DAY_S: Final = 86_400
_FINDINGS_OF_A_FOLDER: Final = 5
# Severity, place, what was found, what to do.
_Make = Callable[[Severity, Path, str, str], Finding]


def folders_of(node: NodeConfig) -> list[Path]:
    return list(dict.fromkeys((node.metadata_log_dir, *node.log_dirs)))


def may_be_here(folder: Path) -> bool:
    """Whether the folder is on this machine, or another user's folder hides whether it is."""
    try:
        return stat.S_ISDIR(folder.stat().st_mode)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool | None:
    """None where there is nothing, or another user's folder hides it."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return None


def check_folder(node: NodeConfig, folder: Path, *, deep: bool) -> Iterator[Finding]:
    """What is wrong with a folder that exists on this machine."""

    def finding(severity: Severity, place: Path, found: str, remedy: str) -> Finding:
        return Finding(check=Check.FOLDERS, severity=severity, place=str(place), found=found, remedy=remedy)

    try:
        yield from _checked(node, folder, finding, deep=deep)
    except OSError as error:
        yield finding(
            Severity.WARNING,
            folder if error.filename is None else Path(os.fsdecode(error.filename)),
            f"it cannot be read by this user: {error.strerror}",
            "run the doctor as the user of the node",
        )


def _checked(node: NodeConfig, folder: Path, finding: _Make, *, deep: bool) -> Iterator[Finding]:
    """Raises OSError for what cannot be read."""
    format_it = f"format it if it is new: `kquorum format --node {node.node_id}`"
    names = {each.name for each in folder.iterdir()}
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & (stat.S_IWGRP | stat.S_IRWXO):
        yield finding(
            Severity.WARNING,
            folder,
            f"others may enter it (mode {mode:03o}), and it holds the keys of users",
            f"`chmod 700 {folder}`; the node does so at its next start",
        )
    if META_PROPERTIES not in names:
        severity = Severity.PROBLEM if names else Severity.WARNING
        yield finding(severity, folder, f"it has no {META_PROPERTIES}: it is not formatted", format_it)
        return
    yield from _identity(node, folder, finding)
    metadata = folder / _METADATA_FOLDER
    if metadata.is_dir():
        yield from _metadata(metadata, finding)
    if deep:
        yield from _deep(folder, metadata, finding)


def _identity(node: NodeConfig, folder: Path, finding: _Make) -> Iterator[Finding]:
    path = folder / META_PROPERTIES
    try:
        said = decode_meta_properties(path.read_bytes())
    except (OSError, ValueError) as error:
        yield finding(Severity.PROBLEM, path, f"it cannot be read: {error}", "restore the file from a backup")
        return
    remedy = "name the right folder in log.dirs, or the right node.id and cluster.id"
    if said.node_id != node.node_id:
        yield finding(
            Severity.PROBLEM,
            path,
            f"the folder is of node {said.node_id}, not of node {node.node_id}",
            remedy,
        )
    if node.cluster_id is not None and said.cluster_id != node.cluster_id:
        yield finding(
            Severity.PROBLEM,
            path,
            f"the folder is of cluster {said.cluster_id}, and the config of {node.cluster_id}",
            remedy,
        )


def _metadata(folder: Path, finding: _Make) -> Iterator[Finding]:
    names = {each.name for each in folder.iterdir()}
    if CORRUPTION_MARKER in names:
        yield finding(
            Severity.PROBLEM,
            folder / CORRUPTION_MARKER,
            "the log has lost records, and is not whole again",
            f"let the node run: it fetches them; `kquorum log verify {folder}` shows what is missing",
        )
    if damaged := sorted(name for name in names if name.endswith(_DAMAGED)):
        yield finding(
            Severity.WARNING,
            folder,
            f"damaged files were set aside here: {', '.join(damaged[:3])}",
            "see the disk; delete them once the node has caught up",
        )
    if QUORUM_STATE in names:
        path = folder / QUORUM_STATE
        try:
            decode_quorum_state(path.read_bytes())
        except (OSError, ValueError) as error:
            yield finding(
                Severity.PROBLEM,
                path,
                f"the election state cannot be read: {error}",
                "the node does not vote until it has caught up (docs/recovery-rules.md): let it run",
            )
    if not any(name.endswith(".log") for name in names):
        yield finding(
            Severity.NOTE, folder, "the metadata log is empty", "the node fetches it when it follows a leader"
        )


def _deep(folder: Path, metadata: Path, finding: _Make) -> Iterator[Finding]:
    look = f"`kquorum log verify {folder}` shows all of it"
    if metadata.is_dir():
        try:
            logs = find_logs(metadata)
        except CliError:
            logs = []
        for log in logs:
            for result in verify_log(log, lambda _: None, keep=_FINDINGS_OF_A_FOLDER).findings.results():
                for each in result.first:
                    if each.severity is not CheckSeverity.NOTE:
                        place = metadata / each.file if each.file else metadata
                        yield finding(Severity.PROBLEM, place, f"{each.check}: {each.reason}", each.remedy)
    for partition in partition_folders(folder):
        check = PartitionCheck(partition)
        check.run()
        wrong = [found for found in check.findings if found["severity"] != "note"]
        for found in wrong[:_FINDINGS_OF_A_FOLDER]:
            yield finding(Severity.PROBLEM, partition / str(found["file"]), str(found["reason"]), look)


def space_of(folder: Path, now_s: float) -> Space:
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return Space(path=str(folder), fault=error.strerror)
    return Space(
        path=str(folder),
        total_bytes=found.f_blocks * found.f_frsize,
        usable_bytes=found.f_bavail * found.f_frsize,
        total_inodes=found.f_files,
        usable_inodes=found.f_favail,
        written_per_day=written_in_a_day(folder, now_s),
    )


def written_in_a_day(folder: Path, now_s: float) -> int:
    """Bytes of segments that were written in the last day: a segment was written between the last change of the one
    before it and its own last change."""
    written = 0.0
    for log in _subfolders(folder):
        segments = _segments(log)
        if not segments:
            continue
        began_s = _began_s(log, segments)
        for size, changed_s in segments:
            lasted_s = max(changed_s - began_s, 1.0)
            in_window_s = min(max(changed_s - max(began_s, now_s - _DAY_S), 0.0), lasted_s)
            written += size * in_window_s / lasted_s
            began_s = changed_s
    return round(written)


def _subfolders(folder: Path) -> Iterable[Path]:
    try:
        return [Path(each.path) for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _segments(log: Path) -> Sequence[tuple[int, float]]:
    """Size and last change of each, in the order of their offsets."""
    found: list[tuple[str, int, float]] = []
    try:
        for each in os.scandir(log):
            if each.name.endswith(".log"):
                state = each.stat(follow_symlinks=False)
                found.append((each.name, state.st_size, state.st_mtime))
    except OSError:
        return []
    return [(size, changed_s) for _, size, changed_s in sorted(found)]


def _began_s(log: Path, segments: Sequence[tuple[int, float]]) -> float:
    """When the oldest segment began: with the folder, whose `partition.metadata` is as old, unless older segments have
    been deleted; then not before the folder was made, which says little, so the time of its own last change."""
    try:
        return min((log / "partition.metadata").stat().st_mtime, segments[0][1])
    except OSError:
        return segments[0][1] - _DAY_S
