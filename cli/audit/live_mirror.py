"""A copy of a node's metadata log in files, as the node would have them: segments, snapshots, whose log it is.

The log's own bytes have secrets in them, so nobody but the user who made the copy may read it.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, snapshot_id_of
from spark_replay.members import META_PROPERTIES, Member, member_of
from spark_replay.sources import METADATA_FOLDER, FileKind, files_of_folder
from spark_replay.stream.places import Place, latest_places
from wire.log_scan import ScannedBatch, scan_batches

SEGMENT_BYTES: Final = 64 * 1024 * 1024
PART: Final = ".part"


class MirrorRefused(Exception):
    """What came does not fit what is there; the message says why."""


class Mirror:
    """The copy of node `node_id` beneath `folder`. What a killed process had written in part only is taken away."""

    def __init__(self, folder: Path, node_id: int, cluster_id: str) -> None:
        """Raises MirrorRefused where the copy is of another node or cluster."""
        folder = folder.resolve()
        self.folder = folder / f"node-{node_id}"
        self._log_folder = self.folder / METADATA_FOLDER
        for path in (folder, self.folder, self._log_folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_identity(node_id, cluster_id)
        place = self._place()
        self.end_offset: int | None = place.offset if place.file else None
        self._epoch = place.epoch
        self._segment = self._log_folder / place.file if place.file else None

    def append(self, data: bytes) -> None:
        """Whole batches. Those that leave out offsets begin a new segment. Raises MirrorRefused."""
        batches = [item for item in scan_batches(data) if isinstance(item, ScannedBatch)]
        if not batches or sum(len(batch.data) for batch in batches) != len(data):
            raise MirrorRefused(
                "the node sent batches with a wrong checksum: is its log damaged? `kquorum log verify`"
            )
        first, last = batches[0].header, batches[-1].header
        if self.end_offset is not None and first.base_offset < self.end_offset:
            raise MirrorRefused(f"the node sent offset {first.base_offset} after {self.end_offset - 1}")
        if first.partition_leader_epoch < self._epoch:
            raise MirrorRefused(
                f"the node's epoch at offset {first.base_offset} is {first.partition_leader_epoch}, and was "
                f"{self._epoch} before: this is not the log that was copied"
            )
        if self._is_full() or first.base_offset != self.end_offset:
            self._segment = self._log_folder / f"{first.base_offset:020d}.log"
        assert self._segment is not None
        with _opened(self._segment) as file:
            file.write(data)
        self.end_offset, self._epoch = last.last_offset + 1, last.partition_leader_epoch

    def missing(self, snapshots: Sequence[str]) -> tuple[str, ...]:
        """Those of these names that are not here, and could be."""
        return tuple(name for name in snapshots if _is_snapshot(name) and not self._path_of(name).exists())

    def begin_file(self, name: str) -> Path:
        """Where the bytes of a snapshot go until it is whole."""
        part = self._path_of(name).with_name(name + PART)
        part.unlink(missing_ok=True)
        part.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
        return part

    def finish_file(self, name: str) -> None:
        path = self._path_of(name)
        path.with_name(name + PART).replace(path)

    def _check_identity(self, node_id: int, cluster_id: str) -> None:
        known = member_of(self._log_folder)
        if known == Member():
            text = f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n"
            with _opened(self.folder / META_PROPERTIES) as file:
                file.write(text.encode())
        elif (known.node_id, known.cluster_id) != (node_id, cluster_id):
            raise MirrorRefused(
                f"{self.folder} is a copy of node {known.node_id} of cluster {known.cluster_id}, and node {node_id} "
                f"of cluster {cluster_id} answers"
            )

    def _place(self) -> Place:
        """Where the copy ends; what is behind the last whole batch is cut off."""
        files = files_of_folder(self._log_folder, self.folder.name)
        place = latest_places(files, {}).get(self.folder.name, Place())
        for file in files:
            if file.kind is FileKind.LOG and file.name > place.file:
                Path(file.path).unlink()
            elif file.name == place.file and file.size_in_bytes > place.position:
                os.truncate(file.path, place.position)
        return place

    def _is_full(self) -> bool:
        return self._segment is not None and self._segment.stat().st_size >= SEGMENT_BYTES

    def _path_of(self, name: str) -> Path:
        return (self.folder if name == BOOTSTRAP_CHECKPOINT_NAME else self._log_folder) / name


def _is_snapshot(name: str) -> bool:
    """Names come from another machine: nothing else becomes a path."""
    return name == BOOTSTRAP_CHECKPOINT_NAME or snapshot_id_of(name) is not None


def _opened(path: Path) -> BinaryIO:
    """For the owner's eyes only, to be written on."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, stat.S_IRUSR | stat.S_IWUSR), "ab")
