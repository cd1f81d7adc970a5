"""The files of a metadata log, for the commands that read one: their names, their content, and where the log ends."""

import mmap
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from kquorum.cli.failures import CliError, ExitStatus
from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, SnapshotId, snapshot_id_of
from kquorum.spark_replay.decode.files import is_regular, map_listed, open_resolved, scan_resolved
from kquorum.spark_replay.decode.sources import (
    METADATA_FOLDER,
    FileKind,
    LogFile,
    NoLogFound,
    find_log_files,
    is_log_name,
    why_not_a_log,
)
from kquorum.storage.folder_lock import is_folder_in_use
from kquorum.storage.segment import UNPUBLISHED_SUFFIX
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.log_scan import Damage


def refuse_what_is_no_log(path: Path) -> None:
    """Raises CliError if the file is neither a log segment nor a snapshot, not even a damaged one."""
    reason = why_not_a_log(path.name, map_listed(path.resolve()))
    if reason is not None:
        raise CliError(f"{path} is not a Kafka log segment or snapshot: {reason}", status=ExitStatus.USAGE)


_NAMED_MAX = 6


@dataclass(frozen=True, slots=True)
class MetadataLogFiles:
    """Segments and snapshots of one log, ascending. `folder` is None for a single file, whose neighbours are
    not read; `bootstrap` is the checkpoint that a new cluster starts from, `misplaced` are folders and the like with
    the name of a segment or snapshot."""

    source: str
    folder: Path | None
    segments: tuple[LogFile, ...] = ()
    snapshots: dict[SnapshotId, Path] = field(default_factory=dict)
    bootstrap: Path | None = None
    misplaced: tuple[Path, ...] = ()

    @property
    def size_in_bytes(self) -> int:
        snapshot_bytes = sum(path.stat().st_size for path in self.snapshots.values())
        return snapshot_bytes + sum(segment.size_in_bytes for segment in self.segments)


def find_logs(path: Path) -> list[MetadataLogFiles]:
    """Every metadata log at or beneath `path`. Raises CliError where there is none."""
    try:
        files = find_log_files(path)
    except NoLogFound as error:
        empty = _folder_without_log(path)
        if empty is None:
            raise CliError(str(error), status=ExitStatus.USAGE) from None
        return [MetadataLogFiles(empty.parent.name, empty, misplaced=_misplaced(empty))]
    if path.is_file():
        refuse_what_is_no_log(path)
        return [_log_of(files[0].source, list(files), None)]
    by_source: dict[str, list[LogFile]] = {}
    for file in files:
        by_source.setdefault(file.source, []).append(file)
    return [_log_of(source, found, _folder_of(found)) for source, found in by_source.items()]


def the_log(path: Path) -> MetadataLogFiles:
    """The one metadata log at `path`. Raises CliError where there is none, or several."""
    logs = find_logs(path)
    if len(logs) > 1:
        names = ", ".join(log.source for log in logs[:_NAMED_MAX])
        if len(logs) > _NAMED_MAX:
            names += f" and {len(logs) - _NAMED_MAX} more"
        raise CliError(f"{path} holds {len(logs)} logs ({names}): name one", status=ExitStatus.USAGE)
    return logs[0]


def misplaced_snapshots(log: MetadataLogFiles) -> list[Path]:
    """Folders and the like with the name of a snapshot."""
    return [path for path in log.misplaced if snapshot_id_of(path.name) is not None]


def _folder_without_log(path: Path) -> Path | None:
    """A metadata folder in which nothing was written yet."""
    for candidate in (path.resolve(), path.resolve() / METADATA_FOLDER):
        if candidate.name == METADATA_FOLDER and candidate.is_dir() and not candidate.is_symlink():
            return candidate
    return None


def _misplaced(folder: Path) -> tuple[Path, ...]:
    with scan_resolved(folder) as entries:
        named_so = [each for each in entries if is_log_name(each.name)]
        return tuple(
            sorted(folder / each.name for each in named_so if not each.is_file(follow_symlinks=False))
        )


def _folder_of(files: list[LogFile]) -> Path:
    inside = [file for file in files if file.kind is not FileKind.BOOTSTRAP]
    return Path((inside or files)[0].path).parent


def _log_of(source: str, files: list[LogFile], folder: Path | None) -> MetadataLogFiles:
    segments = [file for file in files if file.kind is FileKind.LOG]
    snapshots = {
        SnapshotId(file.end_offset, file.epoch): Path(file.path)
        for file in files
        if file.end_offset is not None and file.epoch is not None
    }
    bootstrap = [Path(file.path) for file in files if file.name == BOOTSTRAP_CHECKPOINT_NAME]
    return MetadataLogFiles(
        source,
        folder,
        tuple(sorted(segments, key=lambda file: file.base_offset or 0)),
        dict(sorted(snapshots.items(), key=lambda item: item[0].order)),
        bootstrap[0] if bootstrap else None,
        () if folder is None else _misplaced(folder),
    )


_RELEASE_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


class FileCopy:
    """`view` is the content as of the opening; `release_to` keeps the resident part of a large file small.

    It is no mapping of the file itself: a node may cut that short meanwhile, or the disk may fail to deliver a page,
    and either would end the process with SIGBUS. A large file is copied into one of ours that has no name, where there
    is room for it in the folder for temporary files.
    """

    def __init__(self, path: Path) -> None:
        """`path` was resolved before. Raises OSError. `view` is what was left of a file that is cut meanwhile."""
        self._mapped: mmap.mmap | None = None
        self._released = 0
        self.view = memoryview(b"")
        try:
            with os.fdopen(open_resolved(path), "rb", buffering=0) as file:
                self._copy(file.fileno(), os.fstat(file.fileno()).st_size)
        except OSError as error:
            # Only the failed open names its file.
            raise OSError(error.errno, error.strerror, str(path)) from error

    def _copy(self, descriptor: int, size: int) -> None:
        if size > _RELEASE_BYTES:
            self._mapped = _space_on_disk(size)
        space = self._mapped
        if space is None and size:
            space = mmap.mmap(-1, size)
        if space is not None:
            copied = _fill(memoryview(space), descriptor)
            self.view = memoryview(space).toreadonly()[:copied]

    def release_to(self, position: int) -> None:
        """Bytes below `position` are not needed for now; they can be read again all the same."""
        if self._mapped is not None and position - self._released >= _RELEASE_BYTES:
            length = (position - self._released) // mmap.PAGESIZE * mmap.PAGESIZE
            self._mapped.madvise(mmap.MADV_DONTNEED, self._released, length)
            self._released += length


def _space_on_disk(size: int) -> mmap.mmap | None:
    """A mapped file without a name, all its blocks allocated; None where there is no room for it."""
    with suppress(OSError), tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), size)
    return None


def _fill(space: memoryview, descriptor: int) -> int:
    """Copy a file from its begin; how many bytes of it there were, `space` at most."""
    position = 0
    while position < len(space):
        count = os.preadv(descriptor, [space[position : position + _PIECE_BYTES]], position)
        if count == 0:
            break
        position += count
    return position


_SETTLES_WITHIN_S = 2.0
_LOOK_AGAIN_AFTER_S = 0.05


def within_its_end(
    log: MetadataLogFiles, warn: Callable[[str], None], *, keeps_newest: bool = False
) -> MetadataLogFiles:
    """The log without the snapshots that end behind its records; `warn` gets a line for each.

    All stay where no segment holds records, or where what was at the end cannot be read. With `keeps_newest` the newest
    one stays in any case: a node that starts on the folder drops its log for it, so that is the state it has.
    """
    if not any(segment.size_in_bytes for segment in log.segments):
        return log
    last = log.segments[-1]
    if all(each.end_offset <= (last.base_offset or 0) for each in log.snapshots):
        return log
    end = end_of_segment(Path(last.path), last.base_offset or 0)
    if end is None:
        return log
    # A snapshot behind the log's end: the node fetched it, and stopped before it dropped the log for it; or the log
    # lost its end. Only a start tells which, so the newest is a choice of the caller.
    newest = max(log.snapshots, key=lambda each: each.order, default=None) if keeps_newest else None
    for snapshot_id in log.snapshots:
        if snapshot_id.end_offset > end and snapshot_id == newest:
            warn(
                f"{snapshot_id.file_name}: the log ends before it, at offset {end}: a node that starts here begins "
                "with it, and that is the newest state; `kquorum log verify` says more"
            )
        elif snapshot_id.end_offset > end:
            warn(
                f"{snapshot_id.file_name} is passed over: the log ends before it, at offset {end}; "
                "`kquorum log verify` says more"
            )
    kept = {each: path for each, path in log.snapshots.items() if each.end_offset <= end or each == newest}
    return replace(log, snapshots=kept)


def end_of_segment(path: Path, base_offset: int) -> int | None:
    """The offset behind the last batch; None where bytes that cannot be read follow it, other than a torn write."""
    end: int | None = base_offset
    content = FileCopy(path)
    for found in walk_batches(content.view):
        content.release_to(found.position)
        if not isinstance(found, Damage):
            end = found.header.next_offset
        elif found.kind != "torn":
            end = None
    return end


def has_come_up_to(folder: Path, offset: int) -> bool:
    """Whether the log reaches an offset by now, or holds no records any more: a node may be writing it, or may just be
    dropping it for a snapshot that it fetched. A node at work is given a moment."""
    is_in_use = is_folder_in_use(folder.parent)
    deadline_s = time.monotonic() + (_SETTLES_WITHIN_S if is_in_use else 0)
    while True:
        # Segments are renamed and removed meanwhile; then it is looked for them again.
        with suppress(FileNotFoundError):
            end = _end_now(folder, (".log", f".log{UNPUBLISHED_SUFFIX}") if is_in_use else (".log",))
            if end is None or end >= offset:
                return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_LOOK_AGAIN_AFTER_S)  # noqa: TID251 - another process brings the condition about


def _end_now(folder: Path, suffixes: tuple[str, ...]) -> int | None:
    """None where no segment holds records. The last one has a name of its own until it is durable; what a node left of
    that when it was killed is no part of the log."""
    segments = {
        int(path.name.split(".")[0]): path
        for path in folder.iterdir()
        if path.name.endswith(suffixes) and path.name.split(".")[0].isdecimal() and is_regular(path)
    }
    if not any(path.stat().st_size for path in segments.values()):
        return None
    base_offset = max(segments)
    return end_of_segment(segments[base_offset], base_offset) or 0
