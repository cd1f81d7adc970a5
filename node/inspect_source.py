"""A node as its gRPC server reads it."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from kquorum.metadata.grpc.source import NoSuchSnapshot, NotTheLeader
from kquorum.metadata.image.image import MetadataImage
from kquorum.node.commit_watch import CommitWatch
from kquorum.node.quorum_member import QuorumMember
from kquorum.raft.adapters.snapshot_files import list_snapshots, snapshot_path
from kquorum.raft.errors import NotLeaderError
from kquorum.regular_files import open_regular
from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME

ImageCallback = Callable[[object, MetadataImage], None]


class NodeInspectSource:
    """Implements metadata.grpc.source.InspectSource; `publish` is called after each commit."""

    def __init__(
        self,
        member: QuorumMember,
        commits: CommitWatch,
        image: Callable[[], MetadataImage],
        local_image: Callable[[], MetadataImage] | None = None,
        min_insync_replicas: int = 1,
    ) -> None:
        """`local_image` is the newest where that is another than the committed one: at a controller."""
        self._member = member
        self._commits = commits
        self._image = image
        self._local_image = local_image or image
        self.min_insync_replicas = min_insync_replicas
        self._callbacks: list[ImageCallback] = []

    @property
    def node_id(self) -> int:
        return self._member.node.node_id

    @property
    def cluster_id(self) -> str:
        return self._member.cluster_id

    def committed_image(self) -> MetadataImage:
        return self._image()

    def local_image(self) -> MetadataImage:
        return self._local_image()

    async def read_linearizable(self) -> int:
        try:
            return await self._member.driver.read_linearizable()
        except NotLeaderError:
            raise NotTheLeader(self._member.who_leads("a linearizable read")) from None

    def leader(self) -> tuple[int, int] | None:
        replica = self._member.node.replica
        return (self._member.driver.leader_id, replica.epoch) if self._member.is_led() else None

    def log_end_offset(self) -> int:
        return self._member.log.end_offset

    def high_watermark(self) -> int:
        """Of the log that `read_log` reads: the replica may know of a commit before the log has the records, within a
        turn of the driver or while it waits for the disk."""
        return min(self._member.node.high_watermark, self._member.log.end_offset)

    def log_start_offset(self) -> int:
        return self._member.log.log_start_offset

    def read_log(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        if self._member.driver.is_cutting_log:
            return b""
        return self._member.log.read(start_offset, max_bytes, end_offset)

    async def snapshots(self) -> tuple[str, ...]:
        return await asyncio.to_thread(_snapshot_names, self._member.metadata_log)

    async def read_snapshot(self, name: str, position: int, max_bytes: int) -> tuple[bytes, int]:
        if name not in await self.snapshots():
            raise NoSuchSnapshot(f"node {self.node_id} has no snapshot {name}, any more at least")
        return await asyncio.to_thread(
            _read, _snapshot_path(self._member.metadata_log, name), position, max_bytes
        )

    def subscribe(self, callback: ImageCallback) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def publish(self, delta: object, image: MetadataImage) -> None:
        for callback in tuple(self._callbacks):
            callback(delta, image)

    def ms_since_commit(self) -> int | None:
        return self._commits.freshness().ms_since_commit

    def is_cut_off(self) -> bool:
        return self._commits.freshness().is_cut_off

    def is_ready(self) -> bool:
        return self._commits.freshness().is_ready


def _snapshot_names(log_folder: Path) -> tuple[str, ...]:
    names = tuple(snapshot_path(log_folder, each).name for each in list_snapshots(log_folder))
    bootstrap = _snapshot_path(log_folder, BOOTSTRAP_CHECKPOINT_NAME)
    has_bootstrap = bootstrap.is_file() and not bootstrap.is_symlink()
    return (BOOTSTRAP_CHECKPOINT_NAME, *names) if has_bootstrap else names


def _snapshot_path(log_folder: Path, name: str) -> Path:
    """The bootstrap checkpoint lies beside the folder of the log."""
    return (log_folder.parent if name == BOOTSTRAP_CHECKPOINT_NAME else log_folder) / name


def _read(path: Path, position: int, max_bytes: int) -> tuple[bytes, int]:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            size = file.seek(0, 2)
            file.seek(position)
            return file.read(max_bytes), size
    except FileNotFoundError:
        raise NoSuchSnapshot(f"{path.name} has just been removed") from None
