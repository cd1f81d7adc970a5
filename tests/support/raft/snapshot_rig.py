"""A Raft driver with snapshots in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.driver_snapshots import Snapshots
from kquorum.raft.adapters.snapshot_files import SnapshotDamaged, SnapshotGone
from kquorum.raft.messages import (
    FetchSnapshotResponse,
)
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import OutboundResponse, Ready, SnapshotChunk
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.driver_parts import (
    PausePoint,
    Rig,
    now_ms,
)

ID = OffsetAndEpoch(5, 1)


@dataclass
class FakeStore:
    pieces: list[bytes] = field(default_factory=list)
    finished: Callable[[OffsetAndEpoch], None] = lambda _: None
    content: bytes | None = b"0123456789"
    error: type[SnapshotGone] = SnapshotDamaged

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        self.pieces.append(chunk.data)

    def finish(self, snapshot_id: OffsetAndEpoch) -> None:
        self.finished(snapshot_id)

    def read(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[bytes, int]:
        if self.content is None:
            raise self.error(f"{snapshot_id} cannot be served")
        return self.content[position : position + max_bytes], len(self.content)


class SnapshotRig(Rig):
    def __init__(self, node: RaftNode | None = None, store: "FakeStore | None" = None) -> None:
        super().__init__()
        self.store = store or FakeStore()
        self.load_pause = PausePoint()
        self.unsound: list[OffsetAndEpoch] = []
        self.forgotten = 0
        self.driver = RaftDriver(
            node or self.script,
            self.log,
            self.state_store,
            now_ms,
            self.fatal.append,
            snapshots=Snapshots(
                store=self.store,
                load=self._load,
                forget=self._forget,
                handle_unsound=self.unsound.append,
            ),
        )

    def _forget(self) -> None:
        self.forgotten += 1

    def _load(self, snapshot_id: OffsetAndEpoch) -> object:
        self.load_pause.pass_through()
        return f"state at {snapshot_id.offset}"

    def answered(self, *responses: FetchSnapshotResponse) -> Ready:
        return Ready(responses=tuple(OutboundResponse(9, response) for response in responses))
