"""What the driver needs of the core, of the log and of the network, beyond the core's own ports."""

from collections.abc import Callable, Sequence
from typing import Protocol

from kquorum.raft.inputs import Input
from kquorum.raft.ports import LogStore, RaftPort
from kquorum.raft.ready import OutboundRequest, OutboundResponse, Ready, SnapshotChunk
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch


class ConsensusCore(RaftPort, Protocol):
    """`raft.node.RaftNode`, or a scripted one in tests."""

    def step(self, now_ms: int, event: Input) -> None: ...

    def take_ready(self, now_ms: int) -> Ready: ...


class BatchLog(LogStore, Protocol):
    """A `LogStore` that also answers its newest batches as values, without parsing them again.

    `truncate_to` must be durable on return, and is called in the disk thread while nothing else is.
    """

    def read_batches(
        self, start_offset: int, max_bytes: int, end_offset: int | None = None
    ) -> Sequence[LogBatch]: ...

    def truncate_fully_to(self, offset: int) -> None:
        """Drop all, and begin where a snapshot in the folder ends; called as `truncate_to` is."""
        ...

    def advance_log_start(self, offset: int) -> None:
        """Begin at a later offset, where a snapshot ends; what lies below goes with the next flush."""
        ...


class SnapshotPort(Protocol):
    """Snapshot files, in a thread of their own; each method is `raft.adapters.snapshot_files.SnapshotStore`'s."""

    def read(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[bytes, int]: ...

    def write_chunk(self, chunk: SnapshotChunk) -> None: ...

    def finish(self, snapshot_id: OffsetAndEpoch) -> None: ...


class Transport(Protocol):
    """Sends requests to other replicas; the `Receive` that it was made with gets the outcome of each."""

    def send(self, request: OutboundRequest) -> None: ...


class Responder(Protocol):
    """Answers the requests of other replicas."""

    def respond(self, response: OutboundResponse) -> None: ...


Receive = Callable[[Input], None]
Clock = Callable[[], int]
