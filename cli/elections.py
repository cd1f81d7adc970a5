"""The elections of a quorum, gathered: from the folders of its nodes, or from the nodes themselves over gRPC."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CliError
from cli.exit_status import ExitStatus
from raft.adapters.election_log import read_role_events
from raft.adapters.file_log import FOLDER_NAME
from raft.elections_history import LeaderChangeAt, RoleEvent, leader_change_at
from storage.errors import MetaPropertiesDamaged, NotFormatted
from storage.file_system import read_regular
from storage.meta_properties import read_meta_properties
from wire.errors import DecodeError
from wire.log_batch import LogBatch, log_batch
from wire.record_batch import BatchHeader, read_batch_header


@dataclass(frozen=True, slots=True)
class Noted:
    """What one place knows of elections."""

    place: str
    events: tuple[RoleEvent, ...]
    leader_changes: tuple[LeaderChangeAt, ...]


def read_folder(folder: Path) -> Noted:
    """A data folder or its `__cluster_metadata-0`, ours or Kafka's; nothing in it is changed, and it may be in use.

    Raises OSError.
    """
    inner = folder / FOLDER_NAME
    metadata_log = inner if inner.is_dir() else folder
    return Noted(str(folder), tuple(read_role_events(metadata_log)), tuple(_leader_changes(metadata_log)))


def read_folders(folders: Iterable[Path]) -> list[Noted]:
    """Raises CliError for one that is no folder or holds no metadata log, and for folders of different clusters."""
    found = []
    clusters: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise CliError(
                f"{folder} {what}: name a data folder or its {FOLDER_NAME}", status=ExitStatus.USAGE
            )
        noted = read_folder(folder)
        if not noted.events and not noted.leader_changes:
            within = sorted(each.parent for each in folder.glob(f"*/{FOLDER_NAME}"))
            names = " ".join(map(str, within)) if within else f"a data folder or its {FOLDER_NAME}"
            raise CliError(
                f"{folder} holds neither a metadata log with a leader change nor notes of elections; name {names}",
                status=ExitStatus.USAGE,
            )
        if (cluster_id := _cluster_of(folder)) is not None:
            clusters.setdefault(cluster_id, folder)
        if len(clusters) > 1:
            told = ", ".join(f"{place} is of cluster {cluster_id}" for cluster_id, place in clusters.items())
            raise CliError(f"{told}: ask for the history of one cluster at a time", status=ExitStatus.USAGE)
        found.append(noted)
    return found


def _cluster_of(folder: Path) -> str | None:
    """None where no file says it, as for the copy of a log alone."""
    try:
        return read_meta_properties(folder if (folder / FOLDER_NAME).is_dir() else folder.parent).cluster_id
    except (NotFormatted, MetaPropertiesDamaged):
        return None


def _leader_changes(metadata_log: Path) -> Iterator[LeaderChangeAt]:
    """A LeaderChange opens each epoch; what follows a damaged place is left out, as a node would."""
    epoch, previous_ms = -1, None
    for header, data in _batches(metadata_log):
        if header.partition_leader_epoch > epoch:
            epoch = header.partition_leader_epoch
            change = _leader_change_of(data, previous_ms)
            if change is not None:
                yield change
        previous_ms = header.max_timestamp_ms


def _batches(metadata_log: Path) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The headers and bytes of all batches that are whole, segment by segment."""
    for path in _segments(metadata_log):
        data = memoryview(read_regular(path))
        position = 0
        while position < len(data):
            try:
                header = read_batch_header(data, position)
            except DecodeError:
                return
            end = position + header.size_in_bytes
            if header.size_in_bytes <= 0 or end > len(data):
                return
            yield header, data[position:end]
            position = end


def _segments(metadata_log: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in metadata_log.glob("*.log") if path.stem.isdecimal()))


def _leader_change_of(data: memoryview, previous_ms: int | None) -> LeaderChangeAt | None:
    try:
        batch: LogBatch = log_batch(bytes(data))
        return leader_change_at(batch, previous_ms)
    except DecodeError:
        return None
