"""What gathers in a replica between two `take_ready` calls, on its way into the next `Ready`."""

from dataclasses import dataclass, field

from raft.ready import (
    OutboundRequest,
    OutboundResponse,
    QuorumState,
    ReadConfirmed,
    ReadRefused,
    RoleChanged,
    SnapshotChunk,
)
from wire.log_batch import LogBatch, OffsetAndEpoch


@dataclass(slots=True)
class Outbox:
    truncate_to: int | None = None
    append: list[LogBatch] = field(default_factory=list)
    snapshot_chunks: list[SnapshotChunk] = field(default_factory=list)
    load_snapshot: OffsetAndEpoch | None = None
    quorum_state: QuorumState | None = None
    requests: list[OutboundRequest] = field(default_factory=list)
    responses: list[OutboundResponse] = field(default_factory=list)
    reads: list[ReadConfirmed | ReadRefused] = field(default_factory=list)
    role_changes: list[RoleChanged] = field(default_factory=list)
    has_caught_up: bool = False

    def cut(self, end_offset: int, stored_end_offset: int) -> bool:
        """Drop what has not left yet from `end_offset` on; answers whether the store must be cut as well, and has not
        been told to by this outbox before."""
        self.append = [batch for batch in self.append if batch.next_offset <= end_offset]
        if end_offset >= stored_end_offset:
            return False
        is_first = self.truncate_to is None
        self.truncate_to = end_offset
        return is_first
