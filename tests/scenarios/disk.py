"""The disk of one replica: what was flushed outlives a crash, what was not does not; the election state always does."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import QuorumRecord, quorum_records
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch


@dataclass
class Disk:
    """`bootstrap` is what a bootstrap checkpoint says (offset -1). A log may begin at a snapshot."""

    batches: list[LogBatch] = field(default_factory=list)
    flushed_batches: int = 0
    state: QuorumState | None = None
    start_offset: int = 0
    snapshots: tuple[OffsetAndEpoch, ...] = ()
    bootstrap: tuple[QuorumRecord, ...] = ()

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    @property
    def flushed_offset(self) -> int:
        return (
            self.batches[self.flushed_batches - 1].next_offset if self.flushed_batches else self.start_offset
        )

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.end_offset, (batch.base_offset, self.end_offset)
            self.batches.append(batch)

    def truncate_to(self, end_offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.next_offset <= end_offset]
        assert self.end_offset == end_offset, f"offset {end_offset} is inside a batch"
        self.flushed_batches = min(self.flushed_batches, len(self.batches))

    def begin_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """Drop the log for a snapshot, which is durable."""
        self.batches, self.flushed_batches = [], 0
        self.start_offset, self.snapshots = snapshot_id.offset, (snapshot_id,)

    def flush(self, end_offset: int | None = None) -> None:
        """Make all durable, or only what ends at or below `end_offset`."""
        kept = [batch for batch in self.batches if end_offset is None or batch.next_offset <= end_offset]
        self.flushed_batches = max(self.flushed_batches, len(kept))

    def crash(self) -> int:
        """Lose what was not flushed; answers how many records that was."""
        lost_from = self.flushed_offset
        lost = self.end_offset - lost_from
        del self.batches[self.flushed_batches :]
        return lost

    def between(self, start_offset: int, end_offset: int) -> list[LogBatch]:
        return [
            batch
            for batch in self.batches
            if batch.last_offset >= start_offset and batch.next_offset <= end_offset
        ]

    def read(self, start_offset: int, max_bytes: int) -> bytes:
        """Whole batches from `start_offset`, at least one."""
        data = b""
        for batch in self.between(start_offset, self.end_offset):
            if data and len(data) + len(batch.data) > max_bytes:
                break
            data += batch.data
        return data

    def summary(self) -> LogSummary:
        epochs: dict[int, int] = {}
        for batch in self.batches:
            epochs.setdefault(batch.leader_epoch, batch.base_offset)
        records = [record for batch in self.batches for record in quorum_records(batch)]
        return LogSummary(
            log_start_offset=self.start_offset,
            log_end_offset=self.end_offset,
            epochs=tuple(epochs.items()),
            snapshots=self.snapshots,
            quorum_records=(*self.bootstrap, *records),
        )
