"""What a path given to `log verify`, `log diff` or `snapshot` holds: one or several metadata logs and their files."""

from dataclasses import dataclass, field
from pathlib import Path

from cli.commands.log_dump import refuse_what_is_no_log
from cli.errors import CliError
from cli.exit_status import ExitStatus
from snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, SnapshotId, snapshot_id_of
from spark_replay.files import scan_resolved
from spark_replay.sources import METADATA_FOLDER, FileKind, LogFile, NoLogFound, find_log_files, is_log_name

_NAMED_MAX = 6


@dataclass(frozen=True, slots=True)
class MetadataLogFiles:
    """Segments and snapshots of one log, ascending. `folder` is None for a single file, of which nothing else is
    looked at; `bootstrap` is the checkpoint that a new cluster starts from, `misplaced` are folders and the like with
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
